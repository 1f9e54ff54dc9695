/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_TABLE_H
#define PODPROF_BPF_SHARED_TABLE_H

/*
 * The unwind tables in the kernel: a lookup from an executable and a vaddr to a rule (unwind.h).
 * The agent packs the tables, and lib/table.bpf.h reads them. agent/unwindtable/table.c gives the
 * reasons for the format.
 *
 * Page space: one array of 4 KiB pages, made of slabs of TABLE_SLAB_PAGES each. Page
 * number e is in slab e / TABLE_SLAB_PAGES. All slabs are equal, so that the verifier can turn
 * the lookups into a few instructions. Mapping tables (process.h) live in this space, too.
 *
 * Table image: the table of one executable. Its whole pages are consecutive (and may go from one
 * slab into the next). The rest, less than a page, shares a page with the rests of other images, at
 * a multiple of TABLE_SUBPAGE_BYTES bytes. Offsets below are in the table image.
 *
 *	groups	struct table_group for each TABLE_GROUP_BLOCKS blocks, from offset 0
 *	ids	__u16 for each local id: a rule's number, or with TABLE_RULE_RUN a rule run's
 *	slots	__u8 low, __u8 local id; the slots of one group are in one page
 *
 * A block is 256 units of text. A unit is the alignment of row addresses: one byte on x86-64 and 4
 * bytes on arm64. A slot covers the addresses from @low units after the block's start up to the
 * next slot, also across blocks without slots. The first block of every group begins with a slot at
 * 0, so that no search leaves its group.
 *
 * Local ids from TABLE_WIDE on are the upper part of a long id: TABLE_WIDE + 256 * (id -
 * TABLE_WIDE) + the id of the slot before. Both slots have the same low.
 */

#include "lib/types.h"
#include "shared/unwind.h"

#define TABLE_PAGE_BYTES    4096
#define TABLE_SLAB_PAGES    256
#define TABLE_SLABS	    1024 /* 1 GiB; the agent's budget is far lower */
#define TABLE_SUBPAGE_BYTES 64

/* Executables with a number: the mapped files of sampled processes. Number 0 means no executable.
 */
#define TABLE_EXES	8192
/* Distinct rules and rule runs of all tables together. Rule 0 is the gap, always. */
#define TABLE_RULES	16384
#define TABLE_RULE_RUNS 16384
/* Flag in an id: the other bits are the number of a rule run. */
#define TABLE_RULE_RUN	0x8000

#define TABLE_GROUP_BLOCKS 28
#define TABLE_WIDE	   240
#define TABLE_IDS	   (TABLE_WIDE + 16 * 256)

struct table_page {
	union {
		__u8 bytes[TABLE_PAGE_BYTES];
		__u16 halves[TABLE_PAGE_BYTES / 2];
		__u64 words[TABLE_PAGE_BYTES / 8];
	};
};
_Static_assert(sizeof(struct table_page) == TABLE_PAGE_BYTES, "a page of a slab");

/* Read as four words, because the search adds the counts before a block eight at a time. */
struct table_group {
	__u32 slots; /* offset of the first slot, even */
	__u8 n[TABLE_GROUP_BLOCKS];
};
_Static_assert(sizeof(struct table_group) == 32, "four words of a page");

/*
 * An executable. The agent writes the other members only after n_blocks has been 0 for the longest
 * possible walk, so that no walk sees a half-written entry.
 */
struct table_exe {
	__u64 start;	     /* vaddr of the first block */
	__u32 n_blocks;	     /* 0: there is no table (yet, or any more) */
	__u32 table_page;    /* number of the first whole page */
	__u32 tail;	     /* position of the rest, in sub-pages from the start of page space */
	__u32 ids;	     /* offset of the ids, even */
	__u16 n_table_pages; /* number of whole pages */
	__u8 unit_shift;
	__u8 awaited;  /* 1: a table may come soon. Written at any time */
	__u32 version; /* of the table: each written table has another, from 1 on (memo.bpf.h) */
};
_Static_assert(sizeof(struct table_exe) == 32, "value of the executables' array");

#define TABLE_RULE_RUN_STEPS 8
/* Beyond every step. An address at this distance or more belongs to the last step. */
#define TABLE_RULE_RUN_END   127

/*
 * Rules close to each other, as in prologues and epilogues, where each push and pop has its own
 * rule. One slot represents the whole run. A run ends in the slot's block.
 */
struct table_rule_run {
	__u8 at[TABLE_RULE_RUN_STEPS];	   /* units after the slot, ascending from 0; unused:
					      TABLE_RULE_RUN_END */
	__u16 rules[TABLE_RULE_RUN_STEPS]; /* numbers; unused: 0 */
};
_Static_assert(sizeof(struct table_rule_run) == 24, "value of the rule runs' array");

/*
 * Frames that walkers found in an executable's code, with or without a table. The count decides on
 * loading and eviction. Additions take no lock; a rare lost count does not matter.
 */
struct table_use {
	__u64 frames;
};

/* Results of table_find(). */
enum table_found {
	TABLE_FOUND = 0,
	TABLE_OUTSIDE, /* no table, or the address is outside the table */
	TABLE_TORN,    /* inconsistent table; must not happen */
};

#endif
