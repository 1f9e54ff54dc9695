/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_OBJECT_MEMO_BPF_H
#define PODPROF_BPF_LIB_OBJECT_MEMO_BPF_H

/*
 * Runtimes' objects found last, of a CPU and an event: HotSpot's interpreted methods, CPython's
 * code objects. The check of an object takes one to seven reads from as many places. Most frames
 * have an object of an earlier sample.
 *
 * An object of a running frame is kept, others are freed, and a later object may take the address.
 * The runtime counts something that happens in between: HotSpot safepoints, CPython new code
 * objects. The count is in an entry. So an entry with the present count is about the object that is
 * there now. The count is read before anything of the sample's frames is added.
 *
 * HotSpot frees a method with its class loader, or after an agent has replaced its class. Before a
 * method is freed, there is a safepoint: each garbage collector ends its marking with one, and
 * replaced methods are freed at one.
 *
 * CPython numbers code objects as it makes them, from a counter of the interpreter. The object of a
 * running frame was made before the count was read. If the count is the one of an entry, it was
 * also made before the entry was. At that time another object was at this address, or the same; two
 * objects are not at one address.
 *
 * The key has the process's identity, which comes from the kernel. So a process has no influence on
 * the entries of another one, except that it may evict them.
 */

#include "lib/types.h"

#define OBJECT_MEMO_WAYS 2
/* As many as fit with the header of a BPF array in 16 KB. */
#define OBJECT_MEMO_SETS 240

struct object_memo_entry {
	__u64 object;
	__u64 process;
	__u64 count;
	__u64 value; /* the check << 32 | the runtime's own half; 0: empty */
};

struct object_memo {
	struct object_memo_entry sets[OBJECT_MEMO_SETS][OBJECT_MEMO_WAYS]; /* newest first */
};
_Static_assert(sizeof(struct object_memo_entry[OBJECT_MEMO_WAYS]) == 64, "a set is a cache line");

/* The only set for the key. */
static inline __attribute__((always_inline)) struct object_memo_entry *
object_memo_set(struct object_memo *memo, __u64 object, __u64 process)
{
	__u64 hash = ((object ^ process) * 0x9e3779b97f4a7c15ull) >> 32; /* 2^64 / golden ratio */
	__u64 number = hash * OBJECT_MEMO_SETS >> 32;

	__asm__ volatile("" : "+r"(number)); /* as in memo_set() */
	return memo->sets[number];
}

/* The value of the key, 0: unknown. Without branches, for the verifier. */
static inline __attribute__((always_inline)) __u64
object_memo_find(const struct object_memo_entry *set, __u64 object, __u64 process, __u64 count)
{
	__u64 value = 0;

	for (int i = 0; i < OBJECT_MEMO_WAYS; i++) {
		__u64 other = (set[i].object ^ object) | (set[i].process ^ process) |
			      (set[i].count ^ count);

		value |= set[i].value & (((other | -other) >> 63) - 1);
	}
	return value;
}

/* Add a key that is unknown. The new entry replaces the oldest one. */
static inline __attribute__((always_inline)) void
object_memo_add(struct object_memo_entry *set, const struct object_memo_entry *entry)
{
	for (int i = OBJECT_MEMO_WAYS - 1; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = *entry;
}

#endif
