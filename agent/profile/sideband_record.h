/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SIDEBAND_RECORD_H
#define PODPROF_PROFILE_SIDEBAND_RECORD_H

/* The decoder of process records in a perf ring, with bounds checks. */

#include <stddef.h>
#include <stdint.h>

enum sideband_kind {
	SIDEBAND_FORK, /* a new process, not a new thread */
	SIDEBAND_EXIT, /* of a process's leader; other threads may go on */
	SIDEBAND_EXEC, /* all earlier mappings are gone; the new program's mappings follow */
	SIDEBAND_MMAP, /* an executable mapping: new memory, or memory made executable */
	SIDEBAND_LOST, /* the ring had no room */
	SIDEBAND_KIND_MAX,
};

/**
 * struct sideband_record - one event of a process
 * @time_ns:    CLOCK_BOOTTIME
 * @pid, @tid:  ids in the pid namespace of the event's opener; neither is 0
 * @ppid:       FORK: the parent process
 * @start, @length, @off: MMAP: the range, and its offset in the file
 * @device, @inode, @generation: MMAP: the file, as in /proc/PID/maps; 0 for other memory
 * @n_lost:     LOST: number of records
 * @since_ns:   LOST: the lost records are later than this time; set by sideband_drain()
 * @name:       MMAP: the file's path in the process's view, or a name such as "[vdso]", "//anon";
 *              otherwise "". Any bytes but NUL. Borrowed from the record.
 */
struct sideband_record {
	enum sideband_kind kind;
	uint32_t pid;
	uint32_t tid;
	uint32_t ppid;
	uint64_t time_ns;
	uint64_t start;
	uint64_t length;
	uint64_t off;
	uint64_t device;
	uint64_t inode;
	uint64_t generation;
	uint64_t n_lost;
	uint64_t since_ns;
	const char *name;
};

enum sideband_outcome {
	SIDEBAND_OK = 0,
	SIDEBAND_OTHER,	  /* ignored: a thread's fork or exit, a new name, an unused type */
	SIDEBAND_OUTSIDE, /* the process is outside podprof's pid namespace */
	SIDEBAND_ODD,	  /* the layout contradicts perf_event_open(2) */
	SIDEBAND_OUTCOME_MAX,
};

/* Type, misc and size, in front of every record. */
#define SIDEBAND_HEADER_BYTES 8
/* Thread and time, behind every record (sample_id_all with PERF_SAMPLE_TID and _TIME). */
#define SIDEBAND_SUFFIX_BYTES 16

/* @data: one whole record of @n bytes, its header included; aligned to 8. */
int sideband_decode(const void *data, size_t n, struct sideband_record *ret);

/* "fork", "exec", ...: label values of metrics. */
const char *sideband_kind_name(int kind);

#endif
