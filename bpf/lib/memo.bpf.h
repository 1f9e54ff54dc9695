/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_MEMO_BPF_H
#define PODPROF_BPF_LIB_MEMO_BPF_H

/*
 * The rules found last, of a CPU and an event. A lookup in an unwind table reads four or five
 * cache lines in as many pages, cold at the usual rate. Most return addresses are in many samples,
 * and for these the walk reads one line here instead.
 *
 * The key is the version of the table and the distance from the table's start. A table never
 * changes under the same version, so no entry becomes wrong, and nobody has to remove an entry.
 *
 * A set is a cache line of four entries, and an address has a single set: a hit is one line,
 * whatever the number of entries to compare. A new rule replaces the oldest of its set. So
 * addresses of one stack hardly evict each other. Rules are packed into a word, to have four in a
 * line.
 */

#include "lib/table.bpf.h"

#define MEMO_INLINE static inline __attribute__((always_inline))

#define MEMO_LINE 64
#define MEMO_WAYS 4
/* As many as fit with the windows in 16 KB. */
#define MEMO_SETS 211

struct memo_entry {
	__u64 key; /* 0: empty */
	__u64 packed;
};

struct memo_set {
	struct memo_entry entries[MEMO_WAYS]; /* the newest first */
};
_Static_assert(sizeof(struct memo_set) == MEMO_LINE, "a cache line");

struct memo {
	struct memo_set sets[MEMO_SETS];
};

/* No table covers 4 GiB: its groups alone would be larger than TABLE_BYTES_MAX allows
 * (agent/unwindtable/table.h). */
MEMO_INLINE __u64 memo_key(const struct table_exe *exe, __u64 vaddr)
{
	return (__u64)exe->version << 32 | (__u32)(vaddr - exe->start);
}

/* The number of the only set for @key. */
MEMO_INLINE __u64 memo_set_number(__u64 key)
{
	__u64 hash = (key * 0x9e3779b97f4a7c15ull) >> 32; /* 2^64 / golden ratio, odd */

	return hash * MEMO_SETS >> 32;
}

MEMO_INLINE struct memo_set *memo_set(struct memo *memo, __u64 key)
{
	__u64 number = memo_set_number(key);

	/* Not as one shift and mask: the verifier would take the number's bound for that of the
	 * last set's last byte (clang 19). */
	__asm__ volatile("" : "+r"(number));
	return &memo->sets[number];
}

/*
 * A packed rule, from bit 0 on: cfa + 1 4, fp 2, ra 1, cfa_reg 8, cfa_off 17, fp_off 16, ra_off 16.
 * So no packed rule is 0. A rule with an addition, of Go's changes of stacks, or of a frame of 64
 * KiB does not fit, and is looked up each time.
 */
_Static_assert(UNWIND_CFA_MAX < 16 && UNWIND_FP_MAX <= 4 && UNWIND_RA_MAX <= 2, "4, 2 and 1 bits");

MEMO_INLINE int memo_fits(const struct unwind_rule *rule)
{
	return !rule->cfa_add && rule->cfa_off >> 16 == rule->cfa_off >> 31 &&
	       rule->fp_off == (__s16)rule->fp_off;
}

MEMO_INLINE __u64 memo_pack(const struct unwind_rule *rule)
{
	return (rule->cfa + 1ull) | (__u64)rule->fp << 4 | (__u64)rule->ra << 6 |
	       (__u64)rule->cfa_reg << 7 | ((__u64)rule->cfa_off & 0x1ffff) << 15 |
	       ((__u64)rule->fp_off & 0xffff) << 32 | (__u64)rule->ra_off << 48;
}

MEMO_INLINE void memo_unpack(__u64 packed, struct unwind_rule *ret)
{
	ret->cfa = (packed & 15) - 1;
	ret->cfa_reg = packed >> 7 & 0xff;
	ret->fp = packed >> 4 & 3;
	ret->ra = packed >> 6 & 1;
	ret->cfa_off = (__s64)(packed << 32) >> 47;
	ret->fp_off = (__s64)(packed << 16) >> 48;
	ret->ra_off = (__s64)packed >> 48;
	ret->cfa_add = 0;
}

/* The packed rule of @key; 0 if it is unknown. */
MEMO_INLINE __u64 memo_known(const struct memo_set *set, __u64 key)
{
	__u64 packed = 0;

	for (int i = 0; i < MEMO_WAYS; i++)
		if (set->entries[i].key == key)
			packed = set->entries[i].packed;
	return packed;
}

MEMO_INLINE void memo_add(struct memo_set *set, __u64 key, const struct unwind_rule *rule)
{
	for (int i = MEMO_WAYS - 1; i > 0; i--)
		set->entries[i] = set->entries[i - 1];
	set->entries[0] = (struct memo_entry){.key = key, .packed = memo_pack(rule)};
}

/* table_find(), through @memo. */
MEMO_INLINE __u32 memo_find(struct memo *memo, const struct table_space *space,
			    const struct table_exe *exe, __u64 vaddr, struct unwind_rule *ret)
{
	const __u64 key = memo_key(exe, vaddr);
	struct memo_set *set = memo_set(memo, key);
	const __u64 packed = memo_known(set, key);
	__u32 found;

	if (packed) {
		memo_unpack(packed, ret);
		return TABLE_FOUND;
	}
	found = table_find(space, exe, vaddr, ret);
	if (found == TABLE_FOUND && memo_fits(ret))
		memo_add(set, key, ret);
	return found;
}

#endif
