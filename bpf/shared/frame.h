/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_FRAME_H
#define PODPROF_BPF_SHARED_FRAME_H

/*
 * The words of a stack, and the kind of each frame.
 *
 * A frame of native code is one word, its pc. User addresses are below 2^56 on x86-64 and arm64
 * with the largest page tables, so bit 63 is free. A user word with bit 63 set is the head of a
 * language runtime's frame:
 *
 *	63	1
 *	62..56	enum frame_runtime, not 0
 *	55..54	number of words behind the head
 *	53..48	enum frame_reason
 *	47..0	the frame's first word, an address in most runtimes
 *
 * Without a reason, one word follows the head. A head with a reason stands alone: the runtime's
 * frames are unknown from here to the next native frame. Every other user word from 2^56 on is
 * malformed.
 *
 * A first word below FRAME_CODE_LIMIT is no address: the frame's code belongs to no function of the
 * language, and the word is the runtime's number of this kind of code. The second word is the
 * address of the instruction.
 *
 * The kernel half has the kernel's pcs, one word a frame and without heads.
 */

#include "lib/types.h"

/*
 * The language runtimes: a row X(NAME, name) for each. The row makes FRAME_RUNTIME_NAME, walks with
 * name_walk (lib/walk.bpf.h) for each event (oncpu.bpf.c, offcpu.bpf.c), the same for stack dumps
 * (agent/unwindtable/dumpwalk.c), an entry runtime_name in the table of readers
 * (agent/runtimes/runtimes.c), and the map name_processes, if there is one, as the place of the
 * reader's records (agent/profile/bpfobj.c). Tests add a runtime: FRAME_RUNTIMES_TEST names the
 * header with its step.
 */
#ifdef FRAME_RUNTIMES_TEST
#define FRAME_RUNTIMES(X) X(PYTHON, python) X(HOTSPOT, hotspot) X(V8, v8) X(TEST, test)
#else
#define FRAME_RUNTIMES(X) X(PYTHON, python) X(HOTSPOT, hotspot) X(V8, v8)
#endif

#define FRAME_RUNTIME_NUMBER(NAME, name) FRAME_RUNTIME_##NAME,
enum frame_runtime { FRAME_RUNTIME_NONE, FRAME_RUNTIMES(FRAME_RUNTIME_NUMBER) FRAME_RUNTIME_MAX };

/* Why a runtime's frames are unknown. */
enum frame_reason {
	FRAME_REASON_NONE,
	FRAME_REASON_UNREADABLE, /* the runtime's memory could not be read */
	FRAME_REASON_ODD,	 /* impossible values in the runtime's memory */
	FRAME_REASON_MAX,
};

/* Kinds of a sample's frames. */
enum frame_kind {
	FRAME_NATIVE,  /* user code; words[0]: the pc */
	FRAME_KERNEL,  /* kernel code; words[0]: the pc */
	FRAME_RUNTIME, /* a function of a language runtime; words: the runtime's own */
	FRAME_BROKEN,  /* unknown frames of a runtime; words[0]: the last address of the step */
	FRAME_KIND_MAX,
};

#define FRAME_PC_LIMIT	    (1ull << 56)
#define FRAME_HEAD	    (1ull << 63)
#define FRAME_RUNTIME_SHIFT 56
#define FRAME_RUNTIME_BITS  0x7full
#define FRAME_WORDS_SHIFT   54
#define FRAME_WORDS_BITS    3ull
#define FRAME_REASON_SHIFT  48
#define FRAME_REASON_BITS   0x3full
#define FRAME_FIRST_LIMIT   (1ull << FRAME_REASON_SHIFT)
/* First words of frames whose code belongs to no function: no address is in the first page. */
#define FRAME_CODE_LIMIT    4096ull
/* Words of a runtime's frame, including the head. */
#define FRAME_RUNTIME_WORDS 2

_Static_assert(FRAME_RUNTIME_MAX - 1 <= FRAME_RUNTIME_BITS, "the head has room for each runtime");
_Static_assert(FRAME_REASON_MAX - 1 <= FRAME_REASON_BITS, "and for each reason");
_Static_assert(FRAME_RUNTIME_WORDS - 1 <= FRAME_WORDS_BITS, "and for the words behind it");

/* One frame, decoded from its words. */
struct frame_record {
	__u16 kind; /* enum frame_kind */
	__u16 runtime;
	__u16 reason;
	__u16 n_words; /* in the stack */
	__u64 words[2];
};
_Static_assert(sizeof(struct frame_record) == 24, "three words, no padding");

/* The head of a frame, followed by @behind words. Bits of @first from 48 on are dropped. */
static inline __attribute__((always_inline)) __u64 frame_head(__u64 runtime, __u64 behind,
							      __u64 reason, __u64 first)
{
	return FRAME_HEAD | runtime << FRAME_RUNTIME_SHIFT | behind << FRAME_WORDS_SHIFT |
	       reason << FRAME_REASON_SHIFT | (first & (FRAME_FIRST_LIMIT - 1));
}

/* Decode the first frame of the @n user words at @at. Returns the frame's number of words; 0 for a
 * malformed frame, with *@ret untouched. */
static inline __attribute__((always_inline)) __u32 frame_decode(const __u64 *at, __u64 n,
								struct frame_record *ret)
{
	const __u64 head = n ? at[0] : FRAME_PC_LIMIT;
	const __u64 runtime = head >> FRAME_RUNTIME_SHIFT & FRAME_RUNTIME_BITS;
	const __u64 behind = head >> FRAME_WORDS_SHIFT & FRAME_WORDS_BITS;
	const __u64 reason = head >> FRAME_REASON_SHIFT & FRAME_REASON_BITS;

	if (head < FRAME_PC_LIMIT) {
		*ret = (struct frame_record){.kind = FRAME_NATIVE, .n_words = 1, .words = {head}};
		return 1;
	}
	if (!(head & FRAME_HEAD) || !runtime || reason >= FRAME_REASON_MAX || behind >= n ||
	    behind != (reason ? 0 : FRAME_RUNTIME_WORDS - 1))
		return 0;
	*ret = (struct frame_record){
		.kind = reason ? FRAME_BROKEN : FRAME_RUNTIME,
		.runtime = runtime,
		.reason = reason,
		.n_words = behind + 1,
		.words = {head & (FRAME_FIRST_LIMIT - 1), reason ? 0 : at[1]},
	};
	return ret->n_words;
}

/* Whether the frame's code belongs to no function: words[1] is its address. */
static inline __attribute__((always_inline)) int frame_is_code(const struct frame_record *frame)
{
	return frame->kind == FRAME_RUNTIME && frame->words[0] < FRAME_CODE_LIMIT;
}

#endif
