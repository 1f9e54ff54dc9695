/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_MEMO_BPF_H
#define PODPROF_BPF_LIB_MEMO_BPF_H

/*
 * The rules found last, of a CPU and an event. A lookup in an unwind table reads four or five
 * cache lines in as many pages, cold at the usual rate. Most return addresses are in many samples,
 * and for these the walk reads one line here instead.
 *
 * The key is the version of the table and the distance from the table's start. A table never
 * changes under the same version, so no entry becomes wrong, and nobody has to remove an entry. A
 * new rule replaces the entry in its place.
 */

#include "lib/table.bpf.h"

#define MEMO_INLINE static inline __attribute__((always_inline))

struct memo_entry {
	__u64 key; /* 0: empty */
	struct unwind_rule rule;
	__u64 pad; /* two entries a line */
};
_Static_assert(sizeof(struct memo_entry) == 32, "half a cache line");

/* As many as fit with the windows in 32 KB. */
#define MEMO_ENTRIES 918
#define MEMO_LINE    64

struct memo {
	struct memo_entry entries[MEMO_ENTRIES];
};
_Static_assert(sizeof(struct memo) % MEMO_LINE == 0, "whole lines");

/* No table covers 4 GiB: its groups alone would be larger than TABLE_BYTES_MAX allows
 * (agent/unwindtable/table.h). */
MEMO_INLINE __u64 memo_key(const struct table_exe *exe, __u64 vaddr)
{
	return (__u64)exe->version << 32 | (__u32)(vaddr - exe->start);
}

/* The only place for @key. */
MEMO_INLINE struct memo_entry *memo_place(struct memo *memo, __u64 key)
{
	__u64 hash = (key * 0x9e3779b97f4a7c15ull) >> 32; /* 2^64 / golden ratio, odd */

	return &memo->entries[hash * MEMO_ENTRIES >> 32];
}

/* table_find(), through @memo. */
MEMO_INLINE __u32 memo_find(struct memo *memo, const struct table_space *space,
			    const struct table_exe *exe, __u64 vaddr, struct unwind_rule *ret)
{
	const __u64 key = memo_key(exe, vaddr);
	struct memo_entry *known = memo_place(memo, key);
	__u32 found;

	if (known->key == key) {
		*ret = known->rule;
		return TABLE_FOUND;
	}
	found = table_find(space, exe, vaddr, ret);
	if (found != TABLE_FOUND)
		return found;
	known->key = key;
	known->rule = *ret;
	return TABLE_FOUND;
}

#endif
