/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_TABLE_H
#define PODPROF_BPF_SHARED_TABLE_H

/*
 * Unwind tables as the kernel has them: from an executable and a vaddr to a rule (unwind.h). The
 * agent packs them (agent/unwindtable/table.c tells why they look like this) and lib/table.bpf.h
 * reads them.
 *
 * Element space: one array of 4 KiB elements, made of slabs of TABLE_SLAB_ELEMENTS each. Element
 * number e is in slab e / TABLE_SLAB_ELEMENTS. All slabs are equal, so that the verifier can turn
 * the lookups into a few instructions. Mapping tables (process.h) live in this space, too.
 *
 * Blob: the table of one executable. Its whole elements are consecutive (and may go from one slab
 * into the next); what is left over, less than an element, shares an element with the rests of
 * others, at a multiple of TABLE_CHUNK bytes. Offsets below are in the blob.
 *
 *	groups	struct table_group for each TABLE_GROUP_PAGES pages, from offset 0
 *	ids	__u16 for each local id: a rule's number, or with TABLE_RAMP a ramp's
 *	slots	__u8 low, __u8 local id; the slots of one group are in one element
 *
 * A page is 256 units of text; a unit is what all addresses of rows are multiples of, a byte on
 * x86-64 and 4 bytes on arm64. A slot holds for addresses from @low units after the page's start up
 * to the next slot, over as many pages as have none. The first page of every group begins with a
 * slot at 0, so that no search leaves its group.
 *
 * Local ids from TABLE_WIDE on are the upper part of a long one: TABLE_WIDE + 256 * (id -
 * TABLE_WIDE) + the id of the slot before, which has the same low.
 */

#include "lib/types.h"
#include "shared/unwind.h"

#define TABLE_ELEMENT	    4096
#define TABLE_SLAB_ELEMENTS 256
#define TABLE_SLABS	    1024 /* 1 GiB; the agent's budget ends it long before */
#define TABLE_CHUNK	    64

/* Executables with a number: what the agent has seen in samples. Number 0 is none. */
#define TABLE_EXES  8192
/* Distinct rules and ramps of all tables together. Rule 0 is the gap, always. */
#define TABLE_RULES 16384
#define TABLE_RAMPS 16384
/* In an id: the rest is a ramp's number. */
#define TABLE_RAMP  0x8000

#define TABLE_GROUP_PAGES 28
#define TABLE_WIDE	  240
#define TABLE_IDS	  (TABLE_WIDE + 16 * 256)

struct table_element {
	union {
		__u8 bytes[TABLE_ELEMENT];
		__u16 halves[TABLE_ELEMENT / 2];
		__u64 words[TABLE_ELEMENT / 8];
	};
};
_Static_assert(sizeof(struct table_element) == TABLE_ELEMENT, "an element of a slab");

/* Read as four words: the counts before a page are added eight at a time. */
struct table_group {
	__u32 slots; /* offset of the first one, even */
	__u8 n[TABLE_GROUP_PAGES];
};
_Static_assert(sizeof(struct table_group) == 32, "four words of an element");

/*
 * An executable. The others are written while n_pages is 0 and has been for as long as a walk may
 * take, so that nobody sees half of it.
 */
struct table_exe {
	__u64 start;	  /* vaddr of the first page */
	__u32 n_pages;	  /* 0: there is no table (yet, or any more) */
	__u32 element;	  /* number of the first whole element */
	__u32 tail;	  /* where the rest is, in TABLE_CHUNKs from the start of element space */
	__u32 ids;	  /* offset of the ids, even */
	__u16 n_elements; /* whole ones */
	__u8 unit_shift;
	__u8 awaited; /* 1: there may be a table soon. Written at any time */
	__u8 pad[4];
};
_Static_assert(sizeof(struct table_exe) == 32, "value of the executables' array");

#define TABLE_RAMP_STEPS 8
/* Beyond every step: what is behind it by so much or more is at the last step. */
#define TABLE_RAMP_END	 127

/*
 * Rules that follow each other closely, as in prologues and epilogues where each push and pop has
 * its own. One slot stands for all of them; they end in the slot's page.
 */
struct table_ramp {
	__u8 at[TABLE_RAMP_STEPS]; /* units after the slot, ascending from 0; unused: RAMP_END */
	__u16 rules[TABLE_RAMP_STEPS]; /* numbers; unused: 0 */
};
_Static_assert(sizeof(struct table_ramp) == 24, "value of the ramps' array");

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
