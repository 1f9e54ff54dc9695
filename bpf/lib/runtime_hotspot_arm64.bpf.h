/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_HOTSPOT_ARM64_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_HOTSPOT_ARM64_BPF_H

/*
 * HotSpot's code on arm64.
 *
 * A call leaves the return address in x30. Compiled code stores x29 and x30 into the two highest
 * words of its frame:
 *
 *	sub sp,sp,#n; stp x29,x30,[sp,#n-16]		small frames
 *	stp x29,x30,[sp,#-16]!; sub sp,sp,#m		others, and stubs with a frame
 *
 * and takes them back before it gives the frame up:
 *
 *	ldp x29,x30,[sp,#n-16]; add sp,sp,#n; [a safepoint poll;] ret
 *	add sp,sp,#m; ldp x29,x30,[sp],#16; [a safepoint poll;] ret
 *
 * From the ldp on the return address is in x30 again. All instructions have four bytes, so the
 * instructions before the pc tell whether an ldp has been executed: there is no jump into the
 * middle of an epilogue.
 *
 * At the entry of an interpreted method the return address is in x30, the method in x12, and the
 * caller's sp in x13 or (from about 20 on) x19.
 *
 * A stub with frames of size 0 leaves the return address in x30, or stores it in a frame record. If
 * the stub has called other code, x30 is an address in the stub, and there is a frame record.
 */

#include "lib/runtime_hotspot_code.bpf.h"

/* Numbers of registers in unwind tables. */
#define HOTSPOT_X9  9
#define HOTSPOT_X12 12
#define HOTSPOT_X30 30

/* Instructions. x8 is HotSpot's scratch register, x28 the thread. */
#define HOTSPOT_STP_PRE	  0xa9bf7bfdull /* stp x29,x30,[sp,#-16]! */
#define HOTSPOT_LDP_POST  0xa8c17bfdull /* ldp x29,x30,[sp],#16 */
#define HOTSPOT_MOV_FP_SP 0x910003fdull /* mov x29,sp */
#define HOTSPOT_MOV_X20	  0xaa0903f4ull /* mov x20,x9 */

/* Bytes of code that are searched for the end of the prologue: behind it is the check of a barrier
 * of the garbage collector, eleven instructions. */
#define HOTSPOT_PROLOGUE 96
/* Instructions before the pc that are searched for an epilogue, and from the pc on. */
#define HOTSPOT_BEFORE	 8
#define HOTSPOT_BEHIND	 6
/* Below the frame record of a stub: saved registers, with those of vectors. */
#define HOTSPOT_SAVED	 4096

/* How much of a frame there is. */
enum {
	HOTSPOT_WHOLE,
	HOTSPOT_KEPT,	/* all its bytes; the registers are the caller's */
	HOTSPOT_LEFT,	/* nothing; the same */
	HOTSPOT_RECORD, /* the two words of the registers */
	HOTSPOT_BY_FP,	/* the same, and perhaps more; with a frame pointer */
};

/* ---------------------------------------------------------------- instructions */

WALK_INLINE __u64 hotspot_insn(const __u64 *words, __u32 i)
{
	return words[(i / 2) & (WINDOW_WORDS - 1)] >> (i & 1) * 32 & 0xffffffff;
}

/* 1 if @insn is @want in the bits of @mask. */
WALK_INLINE __u64 hotspot_like(__u64 insn, __u64 mask, __u64 want)
{
	return plan_zero((insn & mask) ^ want);
}

/* sub sp,sp,#n or sub sp,sp,x8 */
WALK_INLINE __u64 hotspot_is_sub_sp(__u64 insn)
{
	return hotspot_like(insn, 0xff8003ff, 0xd10003ff) |
	       hotspot_like(insn, 0xffffffff, 0xcb2863ff);
}

/* add sp,sp,#n or add sp,sp,x8 */
WALK_INLINE __u64 hotspot_is_add_sp(__u64 insn)
{
	return hotspot_like(insn, 0xff8003ff, 0x910003ff) |
	       hotspot_like(insn, 0xffffffff, 0x8b2863ff);
}

/* b or adrp x8: the jump to a stub */
WALK_INLINE __u64 hotspot_is_far(__u64 insn)
{
	return hotspot_like(insn, 0xfc000000, 0x14000000) |
	       hotspot_like(insn, 0x9f00001f, 0x90000008);
}

/* b, bl, br, blr, ret: after them comes other code, or x30 is another one. */
WALK_INLINE __u64 hotspot_is_end(__u64 insn)
{
	return hotspot_like(insn, 0x7c000000, 0x14000000) |
	       hotspot_like(insn, 0xff9ffc1f, 0xd61f0000);
}

/* bl or blr */
WALK_INLINE __u64 hotspot_is_call(__u64 before)
{
	return hotspot_like(before >> 32, 0xfc000000, 0x94000000) |
	       hotspot_like(before >> 32, 0xfffffc1f, 0xd63f0000);
}

/* It begins with ldr x8,[x28,#n]; mov sp,x8. */
WALK_INLINE __u64 hotspot_is_barrier(__u64 code)
{
	return hotspot_like(code, HOTSPOT_BARRIER_ARM64_MASK, HOTSPOT_BARRIER_ARM64);
}

/* ---------------------------------------------------------------- plans */

/* The return address in its register. */
WALK_INLINE __u64 hotspot_link(const struct walk_ctx *c)
{
	return regs_code_pointer(regs_numbered(c->regs, HOTSPOT_X30));
}

/* The caller's registers are in place; its sp is at @cfa. */
WALK_INLINE __u32 hotspot_by_link(const struct walk_ctx *c, __u64 cfa)
{
	struct walk *w = c->w;

	w->ra = hotspot_link(c);
	w->ra_at = 0;
	w->fp_at = 0;
	w->cfa = cfa;
	return plan_check(w);
}

/*
 * 1 at the code that waits for a safepoint after a return's poll,
 *
 *	adr x8,n; str x8,[x28,#m]; b n, or adrp x8,n; add x8,x8,#n; br x8
 *
 * whose adr is the instruction @i of @words. Other code stores x8 in the thread as well, but does
 * not jump away then.
 */
WALK_INLINE __u64 hotspot_waits(const __u64 *words, __u32 i)
{
	return hotspot_like(hotspot_insn(words, i), 0x9f00001f, 0x10000008) &
	       hotspot_like(hotspot_insn(words, i + 1), 0xffc003ff, 0xf9000388) &
	       hotspot_is_far(hotspot_insn(words, i + 2));
}

/* 1 if the code at instruction @i goes elsewhere soon, without a call before. */
WALK_INLINE __u64 hotspot_leaves(const __u64 *words, __u32 i)
{
	__u64 leaves = 0, calls = 0;

	for (__u32 k = i; k < i + HOTSPOT_BEHIND; k++) {
		const __u64 insn = hotspot_insn(words, k);

		WALK_FENCE();
		calls |= hotspot_is_call(insn << 32) & (1 - leaves);
		leaves |= hotspot_is_end(insn) & (1 - calls);
	}
	return leaves;
}

/* The part of the frame that the instructions before w->pc have left. */
WALK_INLINE __u64 hotspot_in_epilogue(const struct walk_ctx *c)
{
	const __u64 *words = plan_words(c);
	__u64 kept = 0, left = 0, pops;

	if (window_read(c->space, plan_words(c), (HOTSPOT_BEFORE + HOTSPOT_BEHIND) * 4,
			c->w->pc - HOTSPOT_BEFORE * 4ull))
		return HOTSPOT_WHOLE;
	WALK_FENCE();
	for (__u32 i = 0; i < HOTSPOT_BEFORE; i++) {
		const __u64 insn = hotspot_insn(words, i);
		const __u64 on = 1 - hotspot_is_end(insn);

		WALK_FENCE();
		left = on & (left | hotspot_like(insn, 0xffffffff, HOTSPOT_LDP_POST) |
			     (kept & hotspot_is_add_sp(insn)));
		kept = on & ((kept & (1 - left)) | hotspot_like(insn, 0xffc07fff, 0xa9407bfd));
	}
	WALK_FENCE();
	pops = hotspot_like(hotspot_insn(words, HOTSPOT_BEFORE), 0xffffffff, HOTSPOT_LDP_POST);
	if (kept | left | pops) {
		if (!hotspot_leaves(words, HOTSPOT_BEFORE))
			return HOTSPOT_WHOLE;
		return pops ? HOTSPOT_RECORD : left ? HOTSPOT_LEFT : HOTSPOT_KEPT;
	}
	WALK_FENCE();
	for (__u32 i = HOTSPOT_BEFORE - 2; i <= HOTSPOT_BEFORE; i++)
		left |= hotspot_waits(words, i);
	/* at the add and the br of a far jump */
	for (__u32 i = HOTSPOT_BEFORE - 4; i < HOTSPOT_BEFORE - 2; i++)
		left |= hotspot_waits(words, i) &
			hotspot_like(hotspot_insn(words, i + 2), 0x9f00001f, 0x90000008);
	return left ? HOTSPOT_LEFT : HOTSPOT_WHOLE;
}

/* The part of the frame before @complete. */
WALK_INLINE __u64 hotspot_in_prologue(const struct walk_ctx *c, __u64 complete)
{
	const __u64 *words = plan_words(c);
	__u64 sub = 0, store = 0, is_push = 0;

	if (window_read(c->space, plan_words(c), HOTSPOT_PROLOGUE, complete - HOTSPOT_PROLOGUE))
		return HOTSPOT_LEFT;
	WALK_FENCE();
	for (__u32 i = 0; i < HOTSPOT_PROLOGUE / 4; i++) {
		const __u64 insn = hotspot_insn(words, i);
		const __u64 at = complete - HOTSPOT_PROLOGUE + i * 4ull;
		const __u64 is_sub = hotspot_is_sub_sp(insn);
		const __u64 pushes = hotspot_like(insn, 0xffffffff, HOTSPOT_STP_PRE);
		const __u64 stores = pushes | hotspot_like(insn, 0xffc07fff, 0xa9007bfd);

		WALK_FENCE();
		sub = is_sub * at + (1 - is_sub) * sub;
		store = stores * at + (1 - stores) * store;
		is_push = (stores & pushes) | ((1 - stores) & is_push);
	}
	if (!store || c->w->pc <= (is_push ? store : sub))
		return HOTSPOT_LEFT;
	if (!is_push)
		return c->w->pc <= store ? HOTSPOT_KEPT : HOTSPOT_WHOLE;
	if (c->w->pc == store + 4)
		return HOTSPOT_RECORD;
	if (sub <= store)
		return HOTSPOT_BY_FP;
	return c->w->pc <= sub ? HOTSPOT_RECORD : HOTSPOT_WHOLE;
}

/* 1 if x30 is the return address of a stub that has called nothing: it is behind a call, or in the
 * interpreter, and not in the stub itself. */
WALK_INLINE __u64 hotspot_link_lives(const struct walk_ctx *c, const struct hotspot_process *p)
{
	const __u64 *words = plan_words(c);
	__u64 own, call;

	if (plan_between(hotspot_link(c), p->interpreter, p->interpreter_limit))
		return 1;
	if (window_read(c->space, plan_words(c), 8, hotspot_link(c) - 8))
		return 0;
	WALK_FENCE();
	own = plan_between(hotspot_link(c) - c->w->pc + HOTSPOT_STUB_BYTES, 0,
			   2ull * HOTSPOT_STUB_BYTES);
	WALK_FENCE();
	/* a bl to the stub */
	call = words[0] >> 32;
	own &= 1 -
	       (hotspot_like(call, 0xfc000000, 0x94000000) &
		plan_between(c->w->pc - hotspot_link(c) + 4 - (__u64)((__s64)(call << 38) >> 36), 0,
			     HOTSPOT_STUB_BYTES));
	WALK_FENCE();
	return (1 - own) & hotspot_is_call(words[0]);
}

/* Whether the frame pointer's record has the return address that is in x30. */
WALK_INLINE int hotspot_is_recorded(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	return plan_between(w->fp, w->sp, w->sp + HOTSPOT_SAVED) &&
	       !window_word(c->space, c->win, &w->place, w->fp + 8, &w->ra) &&
	       regs_code_pointer(w->ra) == hotspot_link(c);
}

/* The caller's sp at an instruction behind an interpreted frame. At the end of the frame the code
 * has it in x9 or x20: [mov x20,x9;] and sp,x20,#-16 */
WALK_INLINE __u64 hotspot_returned_sp(const struct walk_ctx *c)
{
	const __u64 *words = plan_words(c);
	__u64 number = 0, moved = 0, found = 0;

	if (window_read(c->space, plan_words(c), HOTSPOT_BEHIND * 4, c->w->pc))
		return c->w->sp;
	WALK_FENCE();
	for (__u32 i = 0; i < HOTSPOT_BEHIND; i++) {
		const __u64 insn = hotspot_insn(words, i);
		const __u64 is_and = hotspot_like(insn, 0xfffffc1f, 0x927cec1f) & (1 - found);

		WALK_FENCE();
		number += is_and * (insn >> 5 & 31);
		moved |= hotspot_like(insn, 0xffffffff, HOTSPOT_MOV_X20);
		found |= is_and | hotspot_is_end(insn);
	}
	if (!number)
		return c->w->sp;
	number = moved ? HOTSPOT_X9 : number;
	return regs_numbered(c->regs, number) & ~15ull;
}

WALK_INLINE __u32 hotspot_unsized(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;
	__u64 *code = plan_words(c);

	if (window_read(c->space, code, 16, w->pc - 4)) {
		w->cause = SAMPLE_END_UNREADABLE;
		return SAMPLE_END_UNREADABLE;
	}
	if (!plan_interrupted(w)) {
		if (!hotspot_is_barrier(code[0] >> 32 | code[1] << 32))
			return plan_by_fp(w);
		WALK_FENCE();
		return hotspot_out_of_barrier(c, p);
	}
	if (hotspot_insn(code, 0) == HOTSPOT_STP_PRE && hotspot_insn(code, 1) == HOTSPOT_MOV_FP_SP)
		return plan_by_sp(w, 16, w->sp);
	WALK_FENCE();
	if (hotspot_is_recorded(c))
		return plan_by_fp(w);
	WALK_FENCE();
	if (plan_between(w->pc, p->interpreter, p->interpreter_limit)) {
		w->cfa = hotspot_returned_sp(c);
	} else {
		if (!hotspot_link_lives(c, p))
			return plan_by_fp(w);
		w->cfa = w->sp;
	}
	WALK_FENCE();
	return hotspot_by_link(c, w->cfa);
}

WALK_INLINE __u32 hotspot_sized(const struct walk_ctx *c, __u64 words, __u64 complete)
{
	__u64 part = HOTSPOT_WHOLE;
	struct walk *w = c->w;

	if (plan_interrupted(w))
		part = w->pc < complete ? hotspot_in_prologue(c, complete)
					: w->aside.of_frame[PLAN_OWN];
	w->aside.of_frame[PLAN_OWN] = part;
	WALK_FENCE();
	words = w->aside.of_runtime[HOTSPOT_WORD];
	part = w->aside.of_frame[PLAN_OWN];
	if (part == HOTSPOT_BY_FP)
		return plan_by_fp(w);
	if (part == HOTSPOT_KEPT || part == HOTSPOT_LEFT)
		return hotspot_by_link(c, w->sp + (part == HOTSPOT_KEPT ? words * 8 : 0));
	if (part == HOTSPOT_RECORD)
		return plan_by_sp(w, 16, w->sp);
	words += hotspot_pushed(c, words);
	WALK_FENCE();
	return plan_by_sp(w, words * 8, w->sp + words * 8 - 16);
}

/* ---------------------------------------------------------------- the entry of a method */

WALK_INLINE __u64 hotspot_sender(const struct walk_ctx *c, const struct hotspot_process *p)
{
	return regs_numbered(c->regs, p->entry_sender);
}

/* The caller's sp may be above the frame or, after a call of interpreted code, below. So the place
 * in the code tells. */
WALK_INLINE __u64 hotspot_entry_made(const struct walk_ctx *c, const struct hotspot_process *p)
{
	const __u64 at = (c->w->pc - p->entry) / 4;
	__u64 made = 0;

	for (int i = 0; i < HOTSPOT_MADE_MAX; i++)
		made |= plan_between(at, p->made[i][0], p->made[i][1]);
	return made;
}

/*
 * x30 is the return address up to the entry's first call, and then an address in the entry. Up to
 * there the caller's sp is in its register, and not yet in the frame where the frame pointer has
 * just been set.
 */
WALK_INLINE void hotspot_entry(const struct walk_ctx *c, const struct hotspot_process *p,
			       __u64 made)
{
	struct walk *w = c->w;

	w->ra_at = made ? w->fp + 8 : 0;
	w->ra = hotspot_link(c);
	if (plan_between(w->ra, p->entry, p->entry_limit))
		w->ra = 0;
}

WALK_INLINE void hotspot_entry_sender(const struct walk_ctx *c, const struct hotspot_process *p,
				      __u64 made)
{
	(void)made;
	c->w->aside.of_runtime[HOTSPOT_WORD] = hotspot_sender(c, p);
}

WALK_INLINE __u64 hotspot_entry_method(const struct walk_ctx *c)
{
	return regs_numbered(c->regs, HOTSPOT_X12);
}

/* ---------------------------------------------------------------- the plan */

WALK_INLINE void hotspot_look(const struct walk_ctx *c)
{
	__u64 part = HOTSPOT_WHOLE;

	if (plan_interrupted(c->w))
		part = hotspot_in_epilogue(c);
	c->w->aside.of_frame[PLAN_OWN] = part;
}

WALK_INLINE int hotspot_has_returned(const struct walk_ctx *c)
{
	return c->w->aside.of_frame[PLAN_OWN] == HOTSPOT_LEFT;
}

#endif
