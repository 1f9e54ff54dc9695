/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_TEST_BPF_LOOKUP_H
#define PODPROF_TEST_BPF_LOOKUP_H

/* Between lookup.bpf.c and those who load it. */

#include "shared/table.h"

#define LOOKUP_QUERIES 4096
/* Queries that one run of lookup_some answers. */
#define LOOKUP_SOME    32
/* Lookups of one run that is measured. */
#define LOOKUP_MANY    65536

struct lookup_query {
	__u64 vaddr;
	__u32 exe;
	__u32 found; /* enum table_found */
	struct unwind_rule rule;
};

/* The layout that unwinders with a map for each table have: a hash from 64 KiB of a file's code to
 * its rows, which are an array in a hash of maps, searched by calls of the lookup helper. */
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
