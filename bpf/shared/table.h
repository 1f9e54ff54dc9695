/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_TABLE_H
#define PODPROF_BPF_SHARED_TABLE_H

/*
 * Unwind tables as the kernel has them: from an executable and a vaddr to a rule (unwind.h). The
 * agent packs them (agent/unwindtable/table.c tells why they look like this) and lib/table.bpf.h
 * reads them.
 *
 * Page space: one array of 4 KiB pages, made of slabs of TABLE_SLAB_PAGES each. Page
 * number e is in slab e / TABLE_SLAB_PAGES. All slabs are equal, so that the verifier can turn
 * the lookups into a few instructions. Mapping tables (process.h) live in this space, too.
 *
 * Table image: the table of one executable. Its whole pages are consecutive (and may go from one
 * slab into the next); what is left over, less than a page, shares a page with the rests of
 * others, at a multiple of TABLE_SUBPAGE_BYTES bytes. Offsets below are in the table image.
 *
 *	groups	struct table_group for each TABLE_GROUP_BLOCKS blocks, from offset 0
 *	ids	__u16 for each local id: a rule's number, or with TABLE_RULE_RUN a rule run's
 *	slots	__u8 low, __u8 local id; the slots of one group are in one page
 *
 * A block is 256 units of text; a unit is what all addresses of rows are multiples of, a byte on
 * x86-64 and 4 bytes on arm64. A slot holds for addresses from @low units after the block's start
 * up to the next slot, over as many blocks as have none. The first block of every group begins with
 * a slot at 0, so that no search leaves its group.
 *
 * Local ids from TABLE_WIDE on are the upper part of a long one: TABLE_WIDE + 256 * (id -
 * TABLE_WIDE) + the id of the slot before, which has the same low.
 */

#include "lib/types.h"
#include "shared/unwind.h"

#define TABLE_PAGE_BYTES    4096
#define TABLE_SLAB_PAGES    256
#define TABLE_SLABS	    1024 /* 1 GiB; the agent's budget ends it long before */
#define TABLE_SUBPAGE_BYTES 64

/* Executables with a number: what the agent has seen in samples. Number 0 is none. */
#define TABLE_EXES	8192
/* Distinct rules and rule runs of all tables together. Rule 0 is the gap, always. */
#define TABLE_RULES	16384
#define TABLE_RULE_RUNS 16384
/* In an id: the rest is a rule run's number. */
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

/* Read as four words: the counts before a block are added eight at a time. */
struct table_group {
	__u32 slots; /* offset of the first one, even */
	__u8 n[TABLE_GROUP_BLOCKS];
};
_Static_assert(sizeof(struct table_group) == 32, "four words of a page");

/*
 * An executable. The others are written while n_blocks is 0 and has been for as long as a walk may
 * take, so that nobody sees half of it.
 */
struct table_exe {
	__u64 start;	     /* vaddr of the first block */
	__u32 n_blocks;	     /* 0: there is no table (yet, or any more) */
	__u32 table_page;    /* number of the first whole page */
	__u32 tail;	     /* where the rest is, in sub-pages from the start of page space */
	__u32 ids;	     /* offset of the ids, even */
	__u16 n_table_pages; /* whole ones */
	__u8 unit_shift;
	__u8 awaited; /* 1: there may be a table soon. Written at any time */
	__u8 pad[4];
};
_Static_assert(sizeof(struct table_exe) == 32, "value of the executables' array");

#define TABLE_RULE_RUN_STEPS 8
/* Beyond every step: what is behind it by so much or more is at the last step. */
#define TABLE_RULE_RUN_END   127

/*
 * Rules that follow each other closely, as in prologues and epilogues where each push and pop has
 * its own. One slot stands for all of them; they end in the slot's block.
 */
struct table_rule_run {
	__u8 at[TABLE_RULE_RUN_STEPS];	   /* units after the slot, ascending from 0; unused:
					      RULE_RUN_END */
	__u16 rules[TABLE_RULE_RUN_STEPS]; /* numbers; unused: 0 */
};
_Static_assert(sizeof(struct table_rule_run) == 24, "value of the ramps' array");

/*
 * How often walkers came upon an executable's code, whether it had a table or not: what is wanted,
 * and what can be evicted. Added to without a lock; a count lost now and then does not matter.
 */
struct table_use {
	__u64 frames;
};

/* What table_find() says. */
enum table_found {
	TABLE_FOUND = 0,
	TABLE_OUTSIDE, /* there is no table, or the address is not in it */
	TABLE_TORN,    /* it leads nowhere; must not happen */
};

#endif
