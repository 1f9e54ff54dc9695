/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_HOTSPOT_X86_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_HOTSPOT_X86_BPF_H

/*
 * HotSpot's code on x86-64.
 *
 * At the entry of an interpreted method the frame is not made yet: the return address is on top of
 * the stack, the method in rbx, the caller's sp in r13.
 *
 * A blob with frames of size 0 leaves the return address on top of the stack, or pushes some
 * registers onto it, or keeps a frame pointer. The call before the return address proves the
 * address: its target is near.
 */

#include "lib/runtime_hotspot_code.bpf.h"

/* Numbers of registers in unwind tables. */
#define HOTSPOT_RAX 0
#define HOTSPOT_RBX 3
#define HOTSPOT_R13 13

/* Bytes of code that are searched for the end of the prologue. */
#define HOTSPOT_PROLOGUE 32
/* Beside the bytes of a frame, which are a multiple of 8. */
#define HOTSPOT_FP_KEPT	 4

/* ---------------------------------------------------------------- plans */

/* 1 if the two words before a return address end with a call of code near @pc, at or before @pc:
 *
 *	call n, or mov $n,%r10; call *%r10
 */
WALK_INLINE __u64 hotspot_calls(const __u64 *before, __u64 ra, __u64 pc)
{
	const __u64 direct = plan_zero((before[1] >> 24 & 0xff) ^ 0xe8);
	const __u64 by_register = plan_zero(before[1] >> 40 ^ 0xd2ff41);
	const __u64 to = ra + (__s64)(__s32)(before[1] >> 32);
	const __u64 at = before[0] >> 40 | before[1] << 24;

	return (direct & plan_between(pc - to, 0, HOTSPOT_STUB_BYTES)) |
	       (by_register & plan_between(pc - at, 0, HOTSPOT_STUB_BYTES));
}

/* 1 if w->ra is the return address of a call of the stub at w->pc. */
WALK_INLINE __u64 hotspot_returns(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;

	if (!hotspot_in_code(p, w->ra) || window_read(c->space, plan_words(c), 16, w->ra - 16))
		return 0;
	return hotspot_calls(plan_words(c), w->ra, w->pc);
}

/* It begins with mov m(%r15),%rsp. */
WALK_INLINE __u64 hotspot_is_barrier(__u64 code)
{
	return plan_zero((code & HOTSPOT_BARRIER_X86_MASK) ^ HOTSPOT_BARRIER_X86);
}

WALK_INLINE __u64 hotspot_is_call(__u64 before)
{
	return plan_zero((before >> 24 & 0xff) ^ 0xe8) |     /* n */
	       plan_zero((before >> 48 & 0xf8ff) ^ 0xd0ff) | /* *%rax */
	       plan_zero((before >> 40 & 0xf8ff) ^ 0x50ff) | /* *m8(%rax) */
	       plan_zero((before >> 16 & 0xf8ff) ^ 0x90ff);  /* *m32(%rax) */
}

/* The frame pointer's frame has made a call of the stub at w->pc. */
WALK_INLINE __u64 hotspot_has_fp(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;

	return plan_between(w->fp, w->sp, w->sp + 4096) &&
	       !window_word(c->space, c->win, &w->place, w->fp + 8, &w->ra) &&
	       hotspot_returns(c, p);
}

/* In a stub with some words pushed, or with a frame pointer. */
WALK_INLINE __u32 hotspot_in_stub(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;

	if (hotspot_has_fp(c, p))
		return plan_by_fp(w);
	WALK_FENCE();
	hotspot_search(c, p, w->sp + 8);
	WALK_FENCE();
	if (w->ra && hotspot_returns(c, p))
		return plan_by_sp(w, w->ra_at + 8 - w->sp, 0);
	return plan_by_fp(w);
}

/* Code that makes no frame of a known size. */
WALK_INLINE __u32 hotspot_unsized(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;
	__u64 *code = plan_words(c);

	if (window_read(c->space, code, 8, w->pc)) {
		w->cause = SAMPLE_END_UNREADABLE;
		return SAMPLE_END_UNREADABLE;
	}
	if (!plan_interrupted(w)) {
		if (!hotspot_is_barrier(code[0]))
			return plan_by_fp(w);
		WALK_FENCE();
		return hotspot_out_of_barrier(c, p);
	}
	if ((code[0] & 0xffffff) == 0xec8b48) /* mov %rsp,%rbp */
		return plan_by_sp(w, 16, w->sp);
	if (window_word(c->space, c->win, &w->place, w->sp, &w->ra)) {
		w->cause = SAMPLE_END_UNREADABLE;
		return SAMPLE_END_UNREADABLE;
	}
	if (hotspot_in_code(p, w->ra))
		return plan_by_sp(w, 8, 0);
	WALK_FENCE();
	return hotspot_in_stub(c, p);
}

/*
 * In a prologue. The bytes before the place where the frame is complete have
 *
 *	push %rbp; [mov %rsp,%rbp;] sub $n,%rsp; [a check of some bytes]
 *
 * or, in small methods, sub $n,%rsp; mov %rbp,m(%rsp). Returns the frame's bytes at w->pc, or 0 if
 * the frame of @n_words words is whole. In small methods the frame pointer stays in the register,
 * and the result has HOTSPOT_FP_KEPT added.
 */
WALK_INLINE __u64 hotspot_in_prologue(const struct walk_ctx *c, __u64 n_words, __u64 complete)
{
	const __u64 *words = plan_words(c);
	__u64 sub = 0, push = 0, at;

	if (window_read(c->space, plan_words(c), HOTSPOT_PROLOGUE, complete - HOTSPOT_PROLOGUE))
		return 8;
	WALK_FENCE();
	at = words[0]; /* four bytes, and from byte i on */
	for (__u32 i = 4; i < HOTSPOT_PROLOGUE - 3; i++) {
		__u64 found = plan_zero((at >> 32 & 0xffffff) ^ 0xec8348) |
			      plan_zero((at >> 32 & 0xffffff) ^ 0xec8148);
		__u64 after_push = plan_zero((at >> 24 & 0xff) ^ 0x55);
		__u64 after_mov = plan_zero((at & 0xffffffff) ^ 0xec8b4855);

		sub = sub * (1 - found) + found * (complete - HOTSPOT_PROLOGUE + i);
		push = push * (1 - found) + found * (after_push + 4 * after_mov);
		at = at >> 8 | words[(i + 4) / 8] >> (i + 4) % 8 * 8 << 56;
	}
	if (!sub || c->w->pc <= sub - push)
		return 8;
	if (c->w->pc <= sub)
		return 16;
	return push ? 0 : n_words * 8 + HOTSPOT_FP_KEPT;
}

/* In an epilogue: the frame's bytes at w->pc, 0 if the frame is whole. @next: the word behind
 * @code.
 *
 *	add $n,%rsp; pop %rbp; [a safepoint poll;] ret
 *
 * The poll of 16 and later is cmp m(%r15),%rsp; ja ... Before, it is mov m(%r15),%r10; test
 * %eax,(%r10), or test %eax,m(%rip). The same polls are in loops, without the ret.
 */
WALK_INLINE __u64 hotspot_in_epilogue(__u64 code, __u64 next)
{
	const __u64 popped = plan_zero((code & 0xff) ^ 0xc3) |
			     plan_zero((code & 0x3fffff) ^ 0x273b49) |
			     plan_zero((code & 0x00ff00000000ffffull) ^ 0x00c300000000870full) |
			     plan_zero((code & 0xffffffff) ^ 0xc3028541) |
			     plan_zero((code & 0x00ff00000000ffffull) ^ 0x00c3000000000585ull) |
			     (plan_zero((code & 0xff00000000ffffffull) ^ 0x4100000000978b4dull) &
			      plan_zero((next & 0xffffff) ^ 0xc30285));

	return popped * 8 + plan_zero((code & 0xff) ^ 0x5d) * 16;
}

/* 1 between the two instructions that copy a word of the frame: push m(%rsp); pop n(%rsp). */
WALK_INLINE __u64 hotspot_in_copy(__u64 code)
{
	code >>= plan_zero((code & 0xff) ^ 0x48) * 8; /* a prefix without meaning */
	return plan_zero((code & 0xff3fff) ^ 0x24048f);
}

/*
 * 1 at an instruction by which code may leave behind the end of its frame: the jump of a method
 * that an exception leaves, and a return that waits for a safepoint,
 *
 *	mov $n,%r10; mov %r10,m(%r15); jmp n
 *
 * Jumps within the code are the same.
 */
WALK_INLINE __u64 hotspot_may_leave(__u64 code)
{
	return plan_zero((code & 0xff) ^ 0xe9) | plan_zero((code & 0xffff) ^ 0xba49) |
	       plan_zero((code & 0xffffff) ^ 0x97894d);
}

/* Whether there is no frame of @words words any more: no address of code is in the place of its
 * return address, and a return address is on top of the stack. */
WALK_INLINE int hotspot_has_left(const struct walk_ctx *c, __u64 words)
{
	const struct hotspot_process *p = hotspot_process_of(c);
	struct walk *w = c->w;

	if (!p || window_word(c->space, c->win, &w->place, w->sp + words * 8 - 8, &w->ra) ||
	    hotspot_in_code(p, w->ra))
		return 0;
	WALK_FENCE();
	if (window_word(c->space, c->win, &w->place, w->sp, &w->ra) || !hotspot_in_code(p, w->ra))
		return 0;
	WALK_FENCE();
	return hotspot_is_return(c, p) != 0;
}

/* Compiled code, with frames of @words words, whole from @complete on. */
WALK_INLINE __u32 hotspot_sized(const struct walk_ctx *c, __u64 words, __u64 complete)
{
	__u64 *code = plan_words(c);
	__u64 bytes = 0, may_leave = 0;
	struct walk *w = c->w;

	if (plan_interrupted(w)) {
		if (w->pc < complete) {
			bytes = hotspot_in_prologue(c, words, complete);
		} else if (!window_read(c->space, code, 16, w->pc)) {
			bytes = hotspot_in_epilogue(code[0], code[1]);
			words += hotspot_in_copy(code[0]);
			may_leave = hotspot_may_leave(code[0]);
		}
		WALK_FENCE();
	}
	if (may_leave && hotspot_has_left(c, words))
		bytes = 8;
	WALK_FENCE();
	if (!bytes) {
		words += hotspot_pushed(c, words);
		WALK_FENCE();
	}
	if (!bytes)
		return plan_by_sp(w, words * 8, w->sp + words * 8 - 16);
	return plan_by_sp(w, bytes & ~(__u64)HOTSPOT_FP_KEPT, bytes == 16 ? w->sp : 0);
}

/* ---------------------------------------------------------------- the entry of a method */

WALK_INLINE __u64 hotspot_entry_made(const struct walk_ctx *c, const struct hotspot_process *p)
{
	(void)p;
	return c->w->fp - c->w->sp < (__u64)-HOTSPOT_METHOD;
}

/*
 * The code takes the return address off the stack, adds the method's other variables, and puts it
 * back; then it makes the frame: fp, the sender's sp, a zero, the method. The address is on top of
 * the stack, in rax (while r13 is the sender's sp, close above), or behind the new frame's fp.
 */
WALK_INLINE void hotspot_entry(const struct walk_ctx *c, const struct hotspot_process *p,
			       __u64 made)
{
	const __u64 sender = regs_numbered(c->regs, HOTSPOT_R13);
	struct walk *w = c->w;

	w->ra_at = made ? w->fp + 8 : w->sp;
	if (window_word(c->space, c->win, &w->place, w->ra_at, &w->ra))
		w->ra = 0;
	WALK_FENCE();
	if (!made && !hotspot_in_code(p, w->ra) && sender - w->sp < HOTSPOT_SENDER_BYTES) {
		w->ra = regs_numbered(c->regs, HOTSPOT_RAX);
		w->ra_at = 0;
	}
	WALK_FENCE();
	if (!hotspot_in_code(p, w->ra))
		w->ra = 0;
}

WALK_INLINE void hotspot_entry_sender(const struct walk_ctx *c, const struct hotspot_process *p,
				      __u64 made)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk *w = c->w;

	(void)p;
	mine[HOTSPOT_WORD] = regs_numbered(c->regs, HOTSPOT_R13);
	if (made && w->sp != w->fp &&
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_SENDER_SP,
			&mine[HOTSPOT_WORD]))
		mine[HOTSPOT_WORD] = 0;
}

WALK_INLINE __u64 hotspot_entry_method(const struct walk_ctx *c)
{
	return regs_numbered(c->regs, HOTSPOT_RBX);
}

/* ---------------------------------------------------------------- the plan */

WALK_INLINE void hotspot_look(const struct walk_ctx *c)
{
	(void)c;
}

WALK_INLINE int hotspot_has_returned(const struct walk_ctx *c)
{
	(void)c;
	return 0;
}

#endif
