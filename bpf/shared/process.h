/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PROCESS_H
#define PODPROF_BPF_SHARED_PROCESS_H

/*
 * What the walker knows of a process: a sorted table of its executable mappings, each with the
 * table of its image. Mapping tables are arrays of 16-byte entries in 4 KiB elements; processes
 * with equal mappings (fork) may share one.
 */

#include "lib/types.h"

#define PROCESS_PAGE_SHIFT	     12
/* Entries in one element, and elements in one table: 4,096 mappings. */
#define PROCESS_MAPPINGS_PER_ELEMENT 256
#define PROCESS_ELEMENTS_MAX	     16

/*
 * One executable mapping, in pages of 4 KiB whatever the kernel's are. @bias is what is taken from
 * a pc to get the ELF vaddr, in pages: mappings and segments agree on the offset in a page.
 */
struct process_mapping {
	__u64 start_pages : 40; /* low bits first: the search compares start_pages */
	__u64 n_pages : 24;
	__u64 bias_pages : 48; /* two's complement */
	__u64 exe : 16;	       /* which image (bpf/shared/table.h); 0: none, anonymous code */
};
_Static_assert(sizeof(struct process_mapping) == 16, "an entry of the mapping tables");

/* Key of the process table: the thread group's id as the agent's /proc shows it. */
struct process {
	__u64 start_boottime_ns; /* of the leader; another one is another process: PIDs come back */
	__u64 exec_id; /* how often it executed a file; another one: all mappings are old */
	__u32 first;   /* its table: first entry, counted from the first element's */
	__u32 n_mappings;
};
_Static_assert(sizeof(struct process) == 24, "value of the process table");

#endif
