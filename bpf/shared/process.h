/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PROCESS_H
#define PODPROF_BPF_SHARED_PROCESS_H

/*
 * What the walker knows of a process: a sorted table of its executable mappings, each with the
 * table of its image. Mapping tables are arrays of 16-byte entries in the page space of the
 * unwind tables (table.h); processes with equal mappings (fork) may share one.
 *
 * The agent writes all of it (agent/unwindtable/unwind_publisher.c), the walker only reads. A
 * mapping table is complete before the process's record points at it, and is not written again
 * before no walk can be reading it any more. Records are replaced as a whole.
 *
 * How the agent learns of processes: a sample of one that has no record (or another start time or
 * exec id) carries SAMPLE_FLAG_NO_PROCESS, and one with a pc in no mapping of the record carries
 * SAMPLE_FLAG_NO_MAPPING. Both carry the identity to be recorded, exec id included, which nothing
 * else tells. Mappings that are read after an exec and recorded with the exec id before it are
 * never used; the other way round they are never read.
 */

#include "lib/types.h"

/* Records. One for each process that was sampled lately; what finds no room is walked by frame
 * pointer. */
#define PROCESS_RECORDS		  8192
#define PROCESS_PAGE_SHIFT	  12
/* Entries in one page, and pages in one table: 4,096 executable mappings. A table of up to
 * 256 entries is within one page; a longer one begins where a page does and goes on in those
 * that follow. */
#define PROCESS_MAPPINGS_PER_PAGE 256
/* Pages of 256 executable mappings of one process. Reached: the others are unknown code;
 * `podprof_unwind_processes_total{outcome="truncated"}`. */
#define PROCESS_PAGES_MAX	  16

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

/* Key of the process table: the thread group's id as the agent's /proc shows it, __u32. */
struct process {
	__u64 start_boottime_ns; /* of the leader; another one is another process: PIDs come back */
	__u64 exec_id; /* files it executed since its birth; another one: all mappings are old */
	__u32 first;   /* its table: first entry, counted from the start of page space */
	__u16 n_mappings;
	__u16 runtime; /* enum frame_runtime (frame.h); 0, native code alone, for nearly all */
};
_Static_assert(sizeof(struct process) == 24, "value of the process table");
_Static_assert(PROCESS_PAGES_MAX *PROCESS_MAPPINGS_PER_PAGE <= 0xffff, "n_mappings");

#endif
