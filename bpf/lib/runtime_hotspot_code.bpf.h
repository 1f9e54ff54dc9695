/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_HOTSPOT_CODE_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_HOTSPOT_CODE_BPF_H

/*
 * What the parts of HotSpot's plan for each machine have in common, and what they are asked. For
 * lib/runtime_hotspot.bpf.h.
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

/* Words of an interpreted frame, from the frame pointer on. */
#define HOTSPOT_SENDER_SP    (-8)
#define HOTSPOT_METHOD	     (-24)
/* Bytes of a method's arguments and variables, on the way to the sender's sp, at most. */
#define HOTSPOT_SENDER_BYTES 4096

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

/* ---------------------------------------------------------------- of the machine */

/* The caller of code that makes no frame of a known size. */
WALK_INLINE __u32 hotspot_unsized(const struct walk_ctx *c, const struct hotspot_process *p);

/* The caller of compiled code with frames of @words words, whole from @complete on. */
WALK_INLINE __u32 hotspot_sized(const struct walk_ctx *c, __u64 words, __u64 complete);

/* At the beginning of the plan for code in the heaps: w->aside.of_frame[PLAN_OWN] is the machine's.
 */
WALK_INLINE void hotspot_look(const struct walk_ctx *c);

/* Whether interpreted code has been interrupted behind the end of its frame. */
WALK_INLINE int hotspot_has_returned(const struct walk_ctx *c);

/* 1 if an interrupted method entry has set the frame pointer. */
WALK_INLINE __u64 hotspot_entry_made(const struct walk_ctx *c, const struct hotspot_process *p);

/* The return address of an interrupted method entry into w->ra, and its place into w->ra_at; 0: the
 * frame has the words of an interpreted one. @made: the frame pointer is the method's. */
WALK_INLINE void hotspot_entry(const struct walk_ctx *c, const struct hotspot_process *p,
			       __u64 made);

/* There, with these two: the caller's sp into HOTSPOT_WORD, 0 if unreadable, and the method. */
WALK_INLINE void hotspot_entry_sender(const struct walk_ctx *c, const struct hotspot_process *p,
				      __u64 made);
WALK_INLINE __u64 hotspot_entry_method(const struct walk_ctx *c);

/* 1 if the eight bytes before a return address end with a call. */
WALK_INLINE __u64 hotspot_is_call(__u64 before);

/* 1 at the return barrier, by its first eight bytes. */
WALK_INLINE __u64 hotspot_is_barrier(__u64 code);

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
		__u64 word = regs_code_pointer(c->win->words[i]);
		__u64 found = hotspot_in_code(p, word) & plan_zero(w->ra) &
			      plan_between(i * 8ull, 0, w->place.bytes);

		w->ra += found * word;
		w->ra_at += found * (w->place.at + i * 8ull);
	}
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
		__u64 word = regs_code_pointer(words[(i + ra) & (WINDOW_WORDS - 1)]);
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

/* The words that code has pushed below its frame of @words words. */
WALK_INLINE __u64 hotspot_pushed(const struct walk_ctx *c, __u64 words)
{
	const struct hotspot_process *p = hotspot_process_of(c);
	struct walk *w = c->w;

	/* the lower word first: the window begins there */
	if (!p || window_word(c->space, c->win, &w->place, w->sp + words * 8 - 16, &w->ra) ||
	    window_word(c->space, c->win, &w->place, w->sp + words * 8 - 8, &w->ra) ||
	    hotspot_in_code(p, regs_code_pointer(w->ra)))
		return 0;
	WALK_FENCE();
	hotspot_search(c, p, w->sp + words * 8);
	WALK_FENCE();
	if (!w->ra || !hotspot_is_return(c, p))
		return 0;
	return (w->ra_at - (w->sp + words * 8 - 8)) / 8;
}

#endif
