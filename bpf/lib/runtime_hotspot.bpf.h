/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_HOTSPOT_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_HOTSPOT_BPF_H

/*
 * The step of HotSpot (x86-64). Java code is on the machine stack, and no unwind table describes
 * it: so this step has a plan for its frames, in place of a row.
 *
 * All code lies in code heaps. A heap has a map with a byte for each segment of 128 bytes: 0 where
 * a block begins, else the distance back towards the beginning, in hops. A block has a blob of
 * code, which tells the size of its frames. The frame is whole from the blob's "frame complete" on
 * and up to the epilogue; only a place of interruption can be elsewhere, and the bytes of the code
 * tell how much of the frame is there. The caller's frame pointer is below the return address.
 *
 * Interpreted code keeps a frame pointer. Below the frame pointer are the caller's sp, the method
 * and the next bytecode. At the entry of an interpreted method the frame is not made yet: the
 * return address is on top of the stack, the method in rbx, the caller's sp in r13.
 *
 * Code may push words below its whole frame: registers around a call of the virtual machine,
 * arguments of a stub. All callers of sized code are in the heaps. So if there is no address of
 * code in the return address's place, the next one above is it.
 *
 * A blob with frames of size 0 has code for many purposes: stubs, adapters. Its code either leaves
 * the return address on top of the stack, or pushes some registers onto it, or keeps a frame
 * pointer. The call before the return address proves the address: its target is near.
 *
 * A virtual thread's outer frames may be in the heap of objects ("frozen"). The return address of
 * the outermost frame on the stack is then a stub, the return barrier, and the frame of
 * Continuation.enterSpecial() is next on the stack.
 */

#include "lib/object_memo.bpf.h"
#include "lib/runtime_plan.bpf.h"
#include "shared/hotspot.h"

/* Accessor: the process, NULL: no frames of HotSpot are known. */
WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c);

/* The words of w->aside.of_runtime: values of the plan under way. */
enum {
	HOTSPOT_BASE, /* of the heap */
	HOTSPOT_SEGMENTS,
	HOTSPOT_SEGMENT,
	HOTSPOT_CODE, /* the blob's code; of an interpreted frame the ConstMethod */
	HOTSPOT_WORD,
	HOTSPOT_CLASS, /* the constant pool of the class read last; often the caller's, too */
	HOTSPOT_CLASS_VALUE,
	HOTSPOT_MEMO,	    /* of the sample: HOTSPOT_MEMO_USED and so on */
	HOTSPOT_SAFEPOINTS, /* the present count */
	HOTSPOT_IS_CALLER,  /* 1: a caller of Java code, so all of an interpreted frame is there */
	HOTSPOT_MAP = HOTSPOT_CODE, /* the segment of the first byte read of the map */
	/* of an interpreted frame */
	HOTSPOT_POOL = HOTSPOT_BASE,
	HOTSPOT_HASH = HOTSPOT_SEGMENTS,
	HOTSPOT_AT = HOTSPOT_SEGMENT,
};

/* Of HOTSPOT_MEMO; 0: not asked for yet. */
#define HOTSPOT_MEMO_USED 1
#define HOTSPOT_MEMO_NONE 2

/* Numbers of registers in unwind tables. */
#define HOTSPOT_RAX 0
#define HOTSPOT_RBX 3
#define HOTSPOT_R13 13

/* Words of an interpreted frame, from the frame pointer on. */
#define HOTSPOT_SENDER_SP    (-8)
#define HOTSPOT_METHOD	     (-24)
/* Bytes of a method's arguments and variables, on the way to the sender's sp, at most. */
#define HOTSPOT_SENDER_BYTES 4096

/* Bytes of code that are searched for the end of the prologue. */
#define HOTSPOT_PROLOGUE   32
/* Beside the bytes of a frame, which are a multiple of 8. */
#define HOTSPOT_FP_KEPT	   4
/* Words above its place that are searched for a return address: all registers of a call. */
#define HOTSPOT_PUSHED	   64
/* Words of stack arguments below a ContinuationEntry; Java code has as many only with 40
 * parameters. */
#define HOTSPOT_ARGS	   32
/* Bytes of the map in one read. Twice the largest step back, and a power of two. */
#define HOTSPOT_MAP_BYTES  512
/* Bytes from the entry of a stub to any place in it. The largest are those of ciphers. */
#define HOTSPOT_STUB_BYTES 16384

_Static_assert((HOTSPOT_ARGS + 2) * 8 + HOTSPOT_ENTRY_BYTES <= WINDOW_BYTES, "an entry fits");
_Static_assert(HOTSPOT_BLOB_BYTES <= WINDOW_BYTES, "a blob fits");

/* ---------------------------------------------------------------- reading */

/* What is at @off of the object read last. */
WALK_INLINE __u64 hotspot_object(const struct walk_ctx *c, __u64 off)
{
	return plan_words(c)[(off / 8) & (WINDOW_WORDS - 1)] >> (off & 7) * 8;
}

WALK_INLINE __u64 hotspot_in_code(const struct hotspot_process *p, __u64 pc)
{
	return plan_between(pc, p->low, p->limit);
}

WALK_INLINE int hotspot_plausible(__u64 address)
{
	return address && !(address & 7) && address < FRAME_FIRST_LIMIT;
}

/* ---------------------------------------------------------------- plans */

/* The address of the first word at or above @at that is an address of code, into w->ra_at, and the
 * word into w->ra; 0 if there is none. */
WALK_INLINE void hotspot_search(const struct walk_ctx *c, const struct hotspot_process *p, __u64 at)
{
	struct walk *w = c->w;

	w->ra_at = w->ra = 0;
	if ((at & 7) || window_fill_some(c->space, c->win, &w->place, at, HOTSPOT_PUSHED * 8ull))
		return;
	WALK_FENCE();
	for (__u32 i = 0; i < HOTSPOT_PUSHED; i++) {
		__u64 word = c->win->words[i];
		__u64 found = hotspot_in_code(p, word) & plan_zero(w->ra) &
			      plan_between(i * 8ull, 0, w->place.bytes);

		w->ra += found * word;
		w->ra_at += found * (w->place.at + i * 8ull);
	}
}

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

/* At the return barrier, which begins with mov m(%r15),%rsp. */
WALK_INLINE __u64 hotspot_is_barrier(__u64 code)
{
	return plan_zero((code & 0xffffff) ^ 0xa78b49);
}

/* 1 if the eight bytes before a return address end with a call. */
WALK_INLINE __u64 hotspot_is_call(__u64 before)
{
	return plan_zero((before >> 24 & 0xff) ^ 0xe8) |     /* n */
	       plan_zero((before >> 48 & 0xf8ff) ^ 0xd0ff) | /* *%rax */
	       plan_zero((before >> 40 & 0xf8ff) ^ 0x50ff) | /* *m8(%rax) */
	       plan_zero((before >> 16 & 0xf8ff) ^ 0x90ff);  /* *m32(%rax) */
}

/* Whether w->ra is an address to return to: behind a call, in the interpreter, or the barrier. */
WALK_INLINE __u64 hotspot_is_return(const struct walk_ctx *c, const struct hotspot_process *p)
{
	struct walk *w = c->w;
	__u64 *code = plan_words(c);

	if (window_read(c->space, code, 16, w->ra - 8))
		return 0;
	return plan_between(w->ra, p->interpreter, p->interpreter_limit) |
	       hotspot_is_call(code[0]) | hotspot_is_barrier(code[1]);
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

/*
 * At the barrier. The ContinuationEntry in the frame of Continuation.enterSpecial() is above the
 * stack arguments of the returning frame. The entry has the number of these arguments, so the entry
 * is at a distance that agrees with this number.
 */
WALK_INLINE __u32 hotspot_out_of_barrier(const struct walk_ctx *c, const struct hotspot_process *p)
{
	const __u64 args = p->entry_args / 8, ra = p->entry_bytes / 8 + 1;
	const __u64 *words = c->win->words;
	struct walk *w = c->w;

	w->ra_at = w->ra = 0;
	if (window_fill(c->space, c->win, &w->place, w->sp))
		return plan_by_fp(w);
	WALK_FENCE();
	for (__u64 i = 0; i < HOTSPOT_ARGS; i += 2) {
		__u64 numbers = words[(i + args) & (WINDOW_WORDS - 1)];
		__u64 word = words[(i + ra) & (WINDOW_WORDS - 1)];
		__u64 found = plan_zero(w->ra) & plan_between(numbers & 0xffffffff, 0, 2) &
			      plan_between(i - (numbers >> 32), 0, 4) & hotspot_in_code(p, word);

		w->ra += found * word;
		w->ra_at += found * (w->place.at + (i + ra) * 8);
	}
	WALK_FENCE();
	if (!w->ra || w->ra_at + 8 - w->place.at > w->place.bytes || !hotspot_is_return(c, p))
		return plan_by_fp(w);
	return plan_by_sp(w, w->ra_at + 8 - w->sp, w->ra_at - 8);
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

/* The words that code has pushed below its frame of @words words. */
WALK_INLINE __u64 hotspot_pushed(const struct walk_ctx *c, __u64 words)
{
	const struct hotspot_process *p = hotspot_process_of(c);
	struct walk *w = c->w;

	/* the lower word first: the window begins there */
	if (!p || window_word(c->space, c->win, &w->place, w->sp + words * 8 - 16, &w->ra) ||
	    window_word(c->space, c->win, &w->place, w->sp + words * 8 - 8, &w->ra) ||
	    hotspot_in_code(p, w->ra))
		return 0;
	WALK_FENCE();
	hotspot_search(c, p, w->sp + words * 8);
	WALK_FENCE();
	if (!w->ra || !hotspot_is_return(c, p))
		return 0;
	return (w->ra_at - (w->sp + words * 8 - 8)) / 8;
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

/* ---------------------------------------------------------------- compiled code */

/* The byte of the map for the segment under way. Not 0 if unreadable. */
WALK_INLINE int hotspot_map_byte(const struct walk_ctx *c, __u64 *ret)
{
	__u64 *mine = c->w->aside.of_runtime;
	__u64 off = mine[HOTSPOT_SEGMENT] - mine[HOTSPOT_MAP];

	if (off >= HOTSPOT_MAP_BYTES) {
		off = mine[HOTSPOT_SEGMENT] % HOTSPOT_MAP_BYTES;
		mine[HOTSPOT_MAP] = mine[HOTSPOT_SEGMENT] - off;
		if (window_read(c->space, plan_words(c), HOTSPOT_MAP_BYTES,
				mine[HOTSPOT_SEGMENTS] + mine[HOTSPOT_MAP]))
			return -1;
		WALK_FENCE();
	}
	*ret = hotspot_object(c, off) & 0xff;
	return 0;
}

/* The blob of @pc into PLAN_FIRST. Not 0 if the map does not lead to one. */
WALK_INLINE int hotspot_find(const struct walk_ctx *c, const struct hotspot_process *p, __u64 pc)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_BASE] = mine[HOTSPOT_SEGMENTS] = 0;
	for (int i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		__u64 in = plan_between(pc, p->heaps[i].low, p->heaps[i].limit);

		mine[HOTSPOT_BASE] += in * p->heaps[i].low;
		mine[HOTSPOT_SEGMENTS] += in * p->heaps[i].segments;
	}
	if (!mine[HOTSPOT_SEGMENTS])
		return -1;
	WALK_FENCE();
	mine[HOTSPOT_SEGMENT] = (pc - mine[HOTSPOT_BASE]) >> (p->segment_shift & 31);
	mine[HOTSPOT_MAP] = mine[HOTSPOT_SEGMENT] + 1; /* nothing read */
	for (int i = 0; i < HOTSPOT_HOPS_MAX; i++) {
		__u64 back;

		WALK_FENCE();
		if (hotspot_map_byte(c, &back))
			return -1;
		if (!back) {
			c->w->aside.of_frame[PLAN_FIRST] =
				mine[HOTSPOT_BASE] +
				(mine[HOTSPOT_SEGMENT] << (p->segment_shift & 31)) +
				p->block_header;
			return 0;
		}
		if (back == 0xff || back > mine[HOTSPOT_SEGMENT])
			return -1;
		mine[HOTSPOT_SEGMENT] -= back;
	}
	return -1;
}

/* The code of the blob in walk_room(), which is at @blob. */
WALK_INLINE __u64 hotspot_code(const struct walk_ctx *c, const struct hotspot_process *p,
			       __u64 blob)
{
	__u64 code = hotspot_object(c, p->blob_code);

	return p->code_is_distance ? blob + (__u32)code : code;
}

WALK_INLINE __u32 hotspot_compiled(const struct walk_ctx *c, const struct hotspot_process *p,
				   __u64 pc)
{
	__u64 *frame = c->w->aside.of_frame, hash, words;
	__s64 complete;

	if (hotspot_find(c, p, pc)) {
		plan_set(c, PLAN_BROKEN, pc, FRAME_REASON_ODD);
		return WALK_NATIVE;
	}
	WALK_FENCE();
	if (window_read(c->space, plan_words(c),
			((__u64)p->blob_bytes & (HOTSPOT_BLOB_BYTES - 8)) + 8, frame[PLAN_FIRST])) {
		plan_set(c, PLAN_BROKEN, frame[PLAN_FIRST], FRAME_REASON_UNREADABLE);
		return WALK_NATIVE;
	}
	hash = walk_hash(0, hotspot_object(c, p->blob_name & ~7));
	hash = walk_hash(hash, hotspot_object(c, p->blob_method & ~7));
	hash = walk_hash(hash, (__u32)hotspot_object(c, p->blob_compile_id & ~3));
	plan_set(c, PLAN_KNOWN, frame[PLAN_FIRST],
		 hash >> 32 << 32 | (__u32)(pc - frame[PLAN_FIRST]));
	words = (__u32)hotspot_object(c, p->blob_size & ~3);
	complete = (__s32)hotspot_object(c, p->blob_complete & ~1);
	if (p->complete_is_short)
		complete = (__s16)complete;
	c->w->aside.of_runtime[HOTSPOT_CODE] = hotspot_code(c, p, frame[PLAN_FIRST]);
	c->w->aside.of_runtime[HOTSPOT_WORD] = words;
	WALK_FENCE();
	words = c->w->aside.of_runtime[HOTSPOT_WORD];
	/* a frame is far smaller; without a frame of its own, or never complete */
	if (words - 1 >= 1ull << 24 || (complete < 0 && plan_interrupted(c->w)))
		return hotspot_unsized(c, p);
	return hotspot_sized(c, words,
			     c->w->aside.of_runtime[HOTSPOT_CODE] + (complete < 0 ? 0 : complete));
}

/* ---------------------------------------------------------------- interpreted code */

/* HOTSPOT_AT becomes the pointer there. Not 0 if unreadable. */
WALK_INLINE int hotspot_follow(const struct walk_ctx *c)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (window_read(c->space, plan_words(c), 8, mine[HOTSPOT_AT]))
		return -1;
	mine[HOTSPOT_AT] = plan_words(c)[0] & ~1ull; /* a mark of the pool */
	WALK_FENCE();
	return 0;
}

/* Mixes the symbol that the pointer at HOTSPOT_AT leads to into the word @hash of
 * w->aside.of_runtime. Not 0 if unreadable. */
WALK_INLINE int hotspot_symbol(const struct walk_ctx *c, const struct hotspot_process *p, int hash)
{
	__u64 *mine = c->w->aside.of_runtime, *words = plan_words(c), end;

	if (hotspot_follow(c) ||
	    window_read_some(c->space, words, HOTSPOT_SYMBOL_WORDS * 8ull, mine[HOTSPOT_AT]))
		return -1;
	WALK_FENCE();
	end = p->symbol_text + (words[0] >> (p->symbol_n & 7) * 8 & 0xffff);
	mine[hash] = walk_hash(mine[hash], words[0] & p->symbol_kept);
	for (__u64 i = 1; i < HOTSPOT_SYMBOL_WORDS; i++)
		mine[hash] = walk_hash(mine[hash], words[i] & -((i * 8 - end) >> 63));
	WALK_FENCE();
	return 0;
}

/* The value of the class's name into HOTSPOT_CLASS_VALUE. Not 0 if unreadable. */
WALK_INLINE int hotspot_class(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (mine[HOTSPOT_CLASS] == mine[HOTSPOT_POOL])
		return 0;
	mine[HOTSPOT_CLASS] = mine[HOTSPOT_CLASS_VALUE] = 0;
	mine[HOTSPOT_AT] = mine[HOTSPOT_POOL] + p->pool_holder;
	if (hotspot_follow(c))
		return -1;
	mine[HOTSPOT_AT] += p->class_name;
	if (hotspot_symbol(c, p, HOTSPOT_CLASS_VALUE))
		return -1;
	mine[HOTSPOT_CLASS] = mine[HOTSPOT_POOL];
	return 0;
}

/* Mixes the names of the method and of its class. Not 0 if unreadable. HOTSPOT_AT: the name's
 * index. */
WALK_INLINE int hotspot_names(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_AT] = mine[HOTSPOT_POOL] + p->pool_entries + mine[HOTSPOT_AT] * 8;
	if (hotspot_symbol(c, p, HOTSPOT_HASH) || hotspot_class(c, p))
		return -1;
	WALK_FENCE();
	mine[HOTSPOT_HASH] = walk_hash(mine[HOTSPOT_HASH], mine[HOTSPOT_CLASS_VALUE]);
	return 0;
}

/* The check of @method into the upper half of HOTSPOT_HASH, its ConstMethod into HOTSPOT_CODE. Not
 * 0 if unreadable. */
WALK_INLINE int hotspot_read_method(const struct walk_ctx *c, const struct hotspot_process *p,
				    __u64 method)
{
	__u64 *object = plan_words(c);
	__u64 *mine = c->w->aside.of_runtime;
	__u64 names, hash;

	if (window_read(c->space, object, 8, method + p->method_const))
		return -1;
	mine[HOTSPOT_CODE] = object[0];
	WALK_FENCE();
	if (window_read(c->space, object, HOTSPOT_CONST_BYTES, mine[HOTSPOT_CODE]))
		return -1;
	mine[HOTSPOT_POOL] = hotspot_object(c, p->const_constants & ~7);
	names = hotspot_object(c, p->const_names & ~7);
	hash = walk_hash(0, mine[HOTSPOT_CODE]);
	hash = walk_hash(hash, mine[HOTSPOT_POOL]);
	mine[HOTSPOT_HASH] = walk_hash(hash, names);
	mine[HOTSPOT_AT] = names >> (p->name_index & 7) * 8 & 0xffff;
	WALK_FENCE();
	return hotspot_names(c, p);
}

/* Once a sample: the count of safepoints, without which there is no memo. */
WALK_INLINE void hotspot_begin_memo(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[HOTSPOT_MEMO] = HOTSPOT_MEMO_NONE;
	if (!p->safepoints || window_read(c->space, plan_words(c), 8, p->safepoints))
		return;
	mine[HOTSPOT_SAFEPOINTS] = plan_words(c)[0];
	mine[HOTSPOT_MEMO] = HOTSPOT_MEMO_USED;
}

/* As hotspot_read_method(), through the memo. A frame that may be no whole frame has a word that
 * may be no method, so only callers are added. */
WALK_INLINE int hotspot_find_method(const struct walk_ctx *c, const struct hotspot_process *p,
				    __u64 method)
{
	struct object_memo *memo = c->objects;
	__u64 *mine = c->w->aside.of_runtime;
	struct object_memo_entry entry = {.object = method, .process = c->identity};

	if (!mine[HOTSPOT_MEMO])
		hotspot_begin_memo(c, p);
	WALK_FENCE();
	if (!memo || mine[HOTSPOT_MEMO] != HOTSPOT_MEMO_USED)
		return hotspot_read_method(c, p, method);
	entry.count = mine[HOTSPOT_SAFEPOINTS];
	entry.value = object_memo_find(object_memo_set(memo, method, entry.process), method,
				       entry.process, entry.count);
	if (entry.value) {
		mine[HOTSPOT_HASH] = entry.value;
		mine[HOTSPOT_CODE] = (__u32)entry.value;
		return 0;
	}
	if (hotspot_read_method(c, p, method))
		return -1;
	WALK_FENCE();
	entry.value = mine[HOTSPOT_HASH] >> 32 << 32 | (__u32)mine[HOTSPOT_CODE];
	if (mine[HOTSPOT_IS_CALLER])
		object_memo_add(object_memo_set(memo, method, entry.process), &entry);
	return 0;
}

/* The frame of @method, at the bytecode @bcp. */
WALK_INLINE void hotspot_method(const struct walk_ctx *c, const struct hotspot_process *p,
				__u64 method, __u64 bcp)
{
	__u64 *mine = c->w->aside.of_runtime;

	plan_set(c, PLAN_BROKEN, method, FRAME_REASON_ODD);
	if (!hotspot_plausible(method) || hotspot_in_code(p, method))
		return;
	plan_set(c, PLAN_BROKEN, method, FRAME_REASON_UNREADABLE);
	if (hotspot_find_method(c, p, method))
		return;
	WALK_FENCE();
	plan_set(c, PLAN_KNOWN, method,
		 mine[HOTSPOT_HASH] >> 32 << 32 |
			 (__u32)(bcp - mine[HOTSPOT_CODE] - p->const_code));
}

/* At the entry of a method, whose frame has no word of the method yet: the method is in rbx, and
 * the return address in w->ra. @made: the frame pointer is the method's. */
WALK_INLINE __u32 hotspot_entered(const struct walk_ctx *c, const struct hotspot_process *p,
				  __u64 made)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk *w = c->w;

	hotspot_method(c, p, regs_numbered(c->regs, HOTSPOT_RBX), 0);
	if (c->w->aside.of_frame[PLAN_STATE] == PLAN_KNOWN)
		c->w->aside.of_frame[PLAN_SECOND] &= ~0xffffffffull;
	WALK_FENCE();
	w->fp_at = w->fp * made;
	w->cfa = w->ra_at ? w->ra_at + 8 : w->sp;
	mine[HOTSPOT_WORD] = regs_numbered(c->regs, HOTSPOT_R13);
	if (made && w->sp != w->fp &&
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_SENDER_SP,
			&mine[HOTSPOT_WORD]))
		mine[HOTSPOT_WORD] = 0;
	WALK_FENCE();
	/* arguments of compiled callers, repeated for the interpreter, are in between */
	if (mine[HOTSPOT_WORD] - w->cfa < HOTSPOT_SENDER_BYTES)
		w->cfa = mine[HOTSPOT_WORD];
	return plan_check(w);
}

/*
 * The return address of an interrupted method entry into w->ra, 0: the frame has the method's word.
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

WALK_INLINE __u32 hotspot_interpreted(const struct walk_ctx *c, const struct hotspot_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;
	struct walk *w = c->w;
	__u64 method;

	if (plan_interrupted(w) && plan_between(w->pc, p->entry, p->entry_limit)) {
		const __u64 made = w->fp - w->sp < (__u64)-HOTSPOT_METHOD;

		hotspot_entry(c, p, made);
		WALK_FENCE();
		if (w->ra)
			return hotspot_entered(c, p, made);
	}
	WALK_FENCE();
	if (window_word(c->space, c->win, &w->place, w->fp - p->frame_bcp, &mine[HOTSPOT_WORD]) ||
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_METHOD, &method) ||
	    window_word(c->space, c->win, &w->place, w->fp + HOTSPOT_SENDER_SP, &w->cfa)) {
		plan_set(c, PLAN_BROKEN, w->fp, FRAME_REASON_UNREADABLE);
		return WALK_NATIVE;
	}
	WALK_FENCE();
	hotspot_method(c, p, method, mine[HOTSPOT_WORD]);
	WALK_FENCE();
	w->ra_at = w->fp + 8;
	w->fp_at = w->fp;
	if (w->cfa < w->fp + 16)
		w->cfa = w->fp + 16;
	return plan_check_by_fp(w);
}

/* ---------------------------------------------------------------- the step */

WALK_INLINE __u32 hotspot_plan(const struct walk_ctx *c)
{
	const struct hotspot_process *p = hotspot_process_of(c);
	const __u64 pc = c->w->pc - c->w->back;

	c->w->aside.of_runtime[HOTSPOT_IS_CALLER] =
		c->w->back & (c->w->aside.of_frame[PLAN_STATE] == PLAN_KNOWN);
	c->w->aside.of_frame[PLAN_STATE] = 0;
	if (!p || !hotspot_in_code(p, pc))
		return WALK_NATIVE;
	WALK_FENCE();
	if (plan_between(pc, p->interpreter, p->interpreter_limit))
		return hotspot_interpreted(c, p);
	return hotspot_compiled(c, p, pc);
}

WALK_INLINE __u32 hotspot_step(const struct walk_ctx *c)
{
	return plan_store(c, FRAME_RUNTIME_HOTSPOT, 0);
}

WALK_RUNTIME hotspot_walk = {.plan = hotspot_plan, .step = hotspot_step};

#ifdef __bpf__

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* The agent writes. It sets the flag for memory on demand where the kernel permits it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOTSPOT_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct hotspot_process);
} hotspot_processes __weak SEC(".maps");

#endif

#endif
