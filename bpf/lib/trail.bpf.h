/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TRAIL_BPF_H
#define PODPROF_BPF_LIB_TRAIL_BPF_H

/*
 * The sets of the memo (memo.bpf.h) that a thread's last walk read, in order. A walk finds the
 * address of the next frame only after it has read the rule of this frame. So in cold caches the
 * processor waits for each set of the memo, one after another. Consecutive stacks of a thread
 * mostly have the same outer frames. So the next walk reads the sets of the trail first, and the
 * processor waits for all of them at once.
 *
 * A trail changes no result: a wrong set costs one read. So threads with the same slot share a
 * trail, without a lock.
 */

#include "lib/memo.bpf.h"

#define TRAIL_INLINE static inline __attribute__((always_inline))

/* A cache line. Stacks have 20 to 30 frames by rows in the mean. Reached: the walk reads the sets
 * of further frames as without a trail. */
#define TRAIL_SETS 64

struct trail {
	__u8 sets[TRAIL_SETS]; /* the number of a set + 1; 0: the trail ends here */
};
_Static_assert(sizeof(struct trail) == MEMO_LINE && MEMO_SETS < 256, "a byte for a set");

/* Step @i of the walk reads the set with this number. */
TRAIL_INLINE void trail_note(struct trail *trail, __u64 i, __u64 set)
{
	/* The compiler must index with the register that it compares. */
	__asm__ volatile("" : "+r"(i));
	if (i < TRAIL_SETS)
		trail->sets[i] = set + 1;
}

/* The walk has read @n sets. */
TRAIL_INLINE void trail_end(struct trail *trail, __u64 n)
{
	__asm__ volatile("" : "+r"(n));
	if (n < TRAIL_SETS)
		trail->sets[n] = 0;
}

/* Read a word of each set. Returns the number of sets. */
TRAIL_INLINE __u64 trail_follow(const struct trail *trail, const struct memo *memo)
{
	__u64 i;

	for (i = 0; i < TRAIL_SETS; i++) {
		/* Read once: another CPU may write. 0 is beyond all sets. */
		__u64 set = *(const volatile __u8 *)&trail->sets[i] - 1ull;

		if (set >= MEMO_SETS)
			break;
		(void)*(const volatile __u64 *)&memo->sets[set].entries[0].key;
	}
	return i;
}

#endif
