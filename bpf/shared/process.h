/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PROCESS_H
#define PODPROF_BPF_SHARED_PROCESS_H

/*
 * The walker's record of a process: a sorted table of executable mappings, each with the table of
 * its image. Mapping tables are arrays of 16-byte entries in the page space of the unwind tables
 * (table.h). Processes with equal mappings (fork) may share a table.
 *
 * The agent writes everything here (agent/unwindtable/unwind_publisher.c), the walker only reads. A
 * mapping table is complete before the record of a process points at the table. The agent writes
 * the table again only after the last possible walk over it. Records are replaced as a whole.
 *
 * The agent learns of processes from samples. A sample of a process without a record (or with
 * another start time or exec id) carries SAMPLE_FLAG_NO_PROCESS. A sample with a pc in no mapping
 * of the record carries SAMPLE_FLAG_NO_MAPPING. Both carry the identity for the record. The exec id
 * in it has no other source. Mappings read after an exec, and recorded with the exec id before the
 * exec, are never used. The opposite case never occurs.
 */

#include "lib/types.h"

/* Records, one for each recently sampled process. The walk of a process without room uses frame
 * pointers. */
#define PROCESS_RECORDS		  8192
#define PROCESS_PAGE_SHIFT	  12
/* Entries in one page, and pages in one table: 4,096 executable mappings. A table of up to
 * 256 entries is within one page. A longer table begins at the start of a page and continues in the
 * following pages. */
#define PROCESS_MAPPINGS_PER_PAGE 256
/* Pages of 256 executable mappings of one process. Reached: the others are unknown code;
 * `podprof_unwind_processes_total{outcome="truncated"}`. */
#define PROCESS_PAGES_MAX	  16

/*
 * One executable mapping, in pages of 4 KiB whatever the kernel's are. @bias is
 * pc - vaddr (ELF), in pages: mappings and segments agree on the offset in a page.
 */
struct process_mapping {
	__u64 start_pages : 40; /* low bits first: the search compares start_pages */
	__u64 n_pages : 24;
	__u64 bias_pages : 48; /* two's complement */
	__u64 exe : 16;	       /* number of the image (bpf/shared/table.h); 0: anonymous code */
};
_Static_assert(sizeof(struct process_mapping) == 16, "an entry of the mapping tables");

/* Key of the process table: the thread group's id as the agent's /proc shows it, __u32. */
struct process {
	__u64 start_boottime_ns; /* of the leader; detects a reused pid */
	__u64 exec_id; /* execs since the process began; if different, all mappings are stale */
	__u32 first;   /* first entry of the table, from the start of page space */
	__u16 n_mappings;
	__u16 runtime; /* enum frame_runtime (frame.h); 0, native code alone, for nearly all */
};
_Static_assert(sizeof(struct process) == 24, "value of the process table");
_Static_assert(PROCESS_PAGES_MAX *PROCESS_MAPPINGS_PER_PAGE <= 0xffff, "n_mappings");

#endif
