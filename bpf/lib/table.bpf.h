/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TABLE_BPF_H
#define PODPROF_BPF_LIB_TABLE_BPF_H

/*
 * Lookup in an unwind table (shared/table.h has the layout). The code calls no helper, so tests and
 * the agent compile the same text for the host. Three accessors reach memory: table_maps.bpf.h
 * defines them for BPF, table_host.h for the host.
 *
 * For the verifier, data selects values by arithmetic instead of branches, so every path through a
 * search is the same state, and each memory access masks its index. The agent makes the tables, but
 * for any bytes in them no access leaves the tables.
 *
 * Registers are 64 bits wide and -mcpu=v2 has no others, so all numbers are __u64.
 */

#include "shared/table.h"

#define TABLE_INLINE static inline __attribute__((always_inline))

struct table_space;

/* Accessors. NULL for a number out of range. */
TABLE_INLINE const struct table_page *table_page(const struct table_space *space, __u64 number);
TABLE_INLINE const struct unwind_rule *table_rule(const struct table_space *space, __u64 number);
TABLE_INLINE const struct table_rule_run *table_rule_run(const struct table_space *space,
							 __u64 number);

/* Hides the value of @x from the compiler, so the compiler does not turn comparisons into branches.
 */
TABLE_INLINE __u64 table_hide(__u64 x)
{
	__asm__("" : "+r"(x));
	return x;
}

/* 1 if @a < @b, else 0; both below 2^63. */
TABLE_INLINE __u64 table_below(__u64 a, __u64 b)
{
	return table_hide(table_hide(a - b) >> 63);
}

/* By a product: where a mask of all ones or none is used, kernels since 6.13 look at both cases. */
TABLE_INLINE __u64 table_select(__u64 flag, __u64 if_one, __u64 if_zero)
{
	return if_zero + (if_one - if_zero) * flag;
}

/* Where in page space, in bytes, offset @off of a table image is. */
TABLE_INLINE __u64 table_address(const struct table_exe *exe, __u64 off)
{
	__u64 whole = (__u64)exe->n_table_pages * TABLE_PAGE_BYTES;

	return off + table_select(table_below(off, whole),
				  (__u64)exe->table_page * TABLE_PAGE_BYTES,
				  (__u64)exe->tail * TABLE_SUBPAGE_BYTES - whole);
}

/* The bytes of @word selected by @mask, added up to four adjacent sums. */
TABLE_INLINE __u64 table_sums(__u64 word, __u64 mask)
{
	const __u64 lanes = 0x00ff00ff00ff00ffull;

	word &= mask;
	return (word & lanes) + ((word >> 8) & lanes);
}

/* Slots in the group's blocks before @block, at most 27. @words: the group. */
TABLE_INLINE __u64 table_slots_before(const __u64 *words, __u64 block)
{
	/* The counts begin in the middle of the first word. Words before @last count in full, and
	 * some bytes of @last. */
	__u64 last = (block + 4) >> 3, some = (1ull << ((block + 4) * 8 & 63)) - 1;
	__u64 full0 = table_below(0, last), full1 = table_below(1, last),
	      full2 = table_below(2, last);
	__u64 sums = table_sums(words[0] & ~0xffffffffull, (1 - full0) * some - full0) +
		     table_sums(words[1], (full0 - full1) * some - full1) +
		     table_sums(words[2], (full1 - full2) * some - full2) +
		     table_sums(words[3], full2 * some);

	return (sums * 0x0001000100010001ull) >> 48;
}

/* 1 if the low of slot @at is at most @low, else 0. */
TABLE_INLINE __u64 table_reached(const struct table_page *e, __u64 at, __u64 low)
{
	return table_below(e->halves[at & (TABLE_PAGE_BYTES / 2 - 1)] & 0xff, low + 1);
}

/*
 * One past the last of @n slots from @at with a low of at most @low; @at if there is none. Most
 * blocks have at most four slots, checked in one step: CPUs mispredict the number of rounds of a
 * loop.
 */
TABLE_INLINE __u64 table_search(const struct table_page *e, __u64 at, __u64 n, __u64 low)
{
	/* A block's slots are counted in a byte: from 255 to 3 in six halvings. */
	for (int i = 0; i < 6; i++) {
		__u64 half, here;

		if (n <= 4)
			break;
		half = n >> 1;
		here = table_reached(e, at + half, low);
		at += (half + 1) * here;
		n = half - (here & ~n);
	}
	return at + (table_reached(e, at, low) & table_below(0, n)) +
	       (table_reached(e, at + 1, low) & table_below(1, n)) +
	       (table_reached(e, at + 2, low) & table_below(2, n)) +
	       (table_reached(e, at + 3, low) & table_below(3, n));
}

/* The rule's number at @off units behind the start of @rule_run. */
TABLE_INLINE __u64 table_rule_run_at(const struct table_rule_run *rule_run, __u64 off)
{
	const __u64 ones = 0x0101010101010101ull;
	__u64 at = *(const __u64 *)rule_run->at, passed;

	/* In each byte 128 + off - at: the top bit means that the step is passed. */
	passed = (((off * ones) | (ones << 7)) - (at & ~(ones << 7))) & (ones << 7);
	passed = ((passed >> 7) * ones) >> 56;
	return rule_run->rules[(passed - 1) & (TABLE_RULE_RUN_STEPS - 1)];
}

/* The slot of an address. */
struct table_slot {
	__u64 id;  /* local id */
	__u64 off; /* units after the slot, at most TABLE_RULE_RUN_END - 1, beyond any rule run */
};

/* 0, or TABLE_TORN. @block is below the executable's n_blocks. */
TABLE_INLINE __u32 table_find_slot(const struct table_space *space, const struct table_exe *exe,
				   __u64 block, __u64 low, struct table_slot *ret)
{
	/* block / 28: (block / 4) / 7, as a product, exact below 2^30. */
	__u64 group = ((block >> 2) * 0x24924925ull) >> 32;
	__u64 address = table_address(exe, group * sizeof(struct table_group));
	const struct table_page *e = table_page(space, address / TABLE_PAGE_BYTES);
	__u64 first, n, at, slot, wide, behind, own;

	if (!e)
		return TABLE_TORN;
	block -= group * TABLE_GROUP_BLOCKS;
	at = address & (TABLE_PAGE_BYTES - sizeof(struct table_group));
	first = table_slots_before(&e->words[at / 8], block);
	n = e->bytes[(at + 4 + block) & (TABLE_PAGE_BYTES - 1)];
	address = table_address(exe, e->words[at / 8] & 0xffffffff);
	e = table_page(space, address / TABLE_PAGE_BYTES);
	if (!e)
		return TABLE_TORN;
	first += (address & (TABLE_PAGE_BYTES - 1)) / 2;
	at = table_search(e, first, n, low);
	slot = e->halves[(at - 1) & (TABLE_PAGE_BYTES / 2 - 1)];
	/* A long id. */
	ret->id = slot >> 8;
	wide = e->halves[(at - 2) & (TABLE_PAGE_BYTES / 2 - 1)] >> 8;
	ret->id += ((ret->id - TABLE_WIDE) * 255 + wide) * table_below(TABLE_WIDE - 1, ret->id);
	/* Of an earlier block, then any rule run is over. */
	behind = low - (slot & 0xff);
	own = table_below(first, at) & table_below(behind, TABLE_RULE_RUN_END - 1);
	ret->off = table_select(own, behind, TABLE_RULE_RUN_END - 1);
	return TABLE_FOUND;
}

/**
 * table_find() - the rule at an address of an executable
 * @space: where the accessors look; NULL in BPF programs
 * @ret:   the rule, untouched unless TABLE_FOUND; in map memory, not on a BPF program's stack
 *
 * Return: enum table_found.
 */
TABLE_INLINE __u32 table_find(const struct table_space *space, const struct table_exe *exe,
			      __u64 vaddr, struct unwind_rule *ret)
{
	__u64 unit = (vaddr - exe->start) >> (exe->unit_shift & 63);
	const struct table_page *e;
	const struct unwind_rule *rule;
	const struct table_rule_run *rule_run;
	struct table_slot slot;
	__u64 number;

	if (unit >> 8 >= exe->n_blocks)
		return TABLE_OUTSIDE;
	if (table_find_slot(space, exe, unit >> 8, unit & 0xff, &slot) != TABLE_FOUND)
		return TABLE_TORN;
	number = table_address(exe, exe->ids + slot.id * 2);
	e = table_page(space, number / TABLE_PAGE_BYTES);
	if (!e)
		return TABLE_TORN;
	number = e->halves[number / 2 & (TABLE_PAGE_BYTES / 2 - 1)];
	if (number & TABLE_RULE_RUN) {
		rule_run = table_rule_run(space, number & (TABLE_RULE_RUN - 1));
		if (!rule_run)
			return TABLE_TORN;
		number = table_rule_run_at(rule_run, slot.off);
	}
	rule = table_rule(space, number);
	if (!rule)
		return TABLE_TORN;
	*ret = *rule;
	return TABLE_FOUND;
}

#endif
