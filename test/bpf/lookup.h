/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_TEST_BPF_LOOKUP_H
#define PODPROF_TEST_BPF_LOOKUP_H

/* Shared by lookup.bpf.c and its loaders. */

#include "shared/table.h"

#define LOOKUP_QUERIES 4096
/* Queries answered by one run of lookup_some. */
#define LOOKUP_SOME    32
/* Lookups of one measured run. */
#define LOOKUP_MANY    65536

struct lookup_query {
	__u64 vaddr;
	__u32 exe;
	__u32 found; /* enum table_found */
	struct unwind_rule rule;
};

/* The layout of unwinders with a map for each table: a hash from 64 KiB of a file's code to its
 * rows, an array in a hash of maps, searched by calls of the lookup helper. */
#define PEER_PAGE_SHIFT 16
#define PEER_FILE	1

struct peer_page_key {
	__u64 file;
	__u64 page;
};

struct peer_page {
	__u32 first;
	__u32 n;
};

struct peer_row {
	__u16 low;
	__u16 info;
};

struct peer_info {
	__s32 words[3];
};

#endif
