/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_HOTSPOT_MEMO_BPF_H
#define PODPROF_BPF_LIB_HOTSPOT_MEMO_BPF_H

/*
 * The interpreted methods of HotSpot found last, of a CPU and an event. The check of a method takes
 * four to seven reads from as many places. Most frames have a method of an earlier sample.
 *
 * HotSpot frees a method with its class loader, or after an agent has replaced its class. A method
 * of a running frame is kept. Before a method is freed, there is a safepoint: each garbage
 * collector ends its marking with one, and replaced methods are freed at one. HotSpot counts
 * safepoints, and the count is in an entry. So an entry with the present count is about the method
 * that is there now. The count is read before anything of the sample's frames is added.
 *
 * The key has the process's identity, which comes from the kernel. So a process has no influence on
 * the entries of another one, except that it may evict them.
 */

#include "lib/types.h"

#define HOTSPOT_MEMO_WAYS 2
/* As many as fit with the header of a BPF array in 16 KB. */
#define HOTSPOT_MEMO_SETS 240

struct hotspot_memo_entry {
	__u64 method;
	__u64 process;
	__u64 safepoints;
	__u64 value; /* the check << 32 | the lower half of the ConstMethod's address; 0: empty */
};

struct hotspot_memo {
	struct hotspot_memo_entry sets[HOTSPOT_MEMO_SETS][HOTSPOT_MEMO_WAYS]; /* newest first */
};
_Static_assert(sizeof(struct hotspot_memo_entry[HOTSPOT_MEMO_WAYS]) == 64, "a set is a cache line");

/* The only set for the key. */
static inline __attribute__((always_inline)) struct hotspot_memo_entry *
hotspot_memo_set(struct hotspot_memo *memo, __u64 method, __u64 process)
{
	__u64 hash = ((method ^ process) * 0x9e3779b97f4a7c15ull) >> 32; /* 2^64 / golden ratio */
	__u64 number = hash * HOTSPOT_MEMO_SETS >> 32;

	__asm__ volatile("" : "+r"(number)); /* as in memo_set() */
	return memo->sets[number];
}

/* The value of the key, 0: unknown. Without branches, for the verifier. */
static inline __attribute__((always_inline)) __u64
hotspot_memo_find(const struct hotspot_memo_entry *set, __u64 method, __u64 process,
		  __u64 safepoints)
{
	__u64 value = 0;

	for (int i = 0; i < HOTSPOT_MEMO_WAYS; i++) {
		__u64 other = (set[i].method ^ method) | (set[i].process ^ process) |
			      (set[i].safepoints ^ safepoints);

		value |= set[i].value & (((other | -other) >> 63) - 1);
	}
	return value;
}

/* Add a key that is unknown. The new entry replaces the oldest one. */
static inline __attribute__((always_inline)) void
hotspot_memo_add(struct hotspot_memo_entry *set, const struct hotspot_memo_entry *entry)
{
	for (int i = HOTSPOT_MEMO_WAYS - 1; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = *entry;
}

#endif
