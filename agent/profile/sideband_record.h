/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SIDEBAND_RECORD_H
#define PODPROF_PROFILE_SIDEBAND_RECORD_H

/* One record of a perf event's ring that tells of a process: its bytes, read with bounds. */

#include <stddef.h>
#include <stdint.h>

enum sideband_kind {
	SIDEBAND_FORK, /* a new process, not a new thread */
	SIDEBAND_EXIT, /* of one thread; of the leader if @tid is @pid */
	SIDEBAND_EXEC, /* all mappings from before are gone; those of the new program follow */
	SIDEBAND_MMAP, /* an executable mapping: a new one, or memory that became executable */
	SIDEBAND_LOST, /* the ring had no room */
	SIDEBAND_KIND_MAX,
};

/**
 * struct sideband_record - what happened
 * @time_ns:    CLOCK_BOOTTIME
 * @pid, @tid:  in the pid namespace of whoever opened the event; 0 in neither
 * @ppid:       FORK: the process that made it
 * @start, @length, @off: MMAP: the range, and where in the file it begins
 * @device, @inode, @generation: MMAP: the file; as /proc/PID/maps shows them; 0 for other memory
 * @n_lost:     LOST: records
 * @since_ns:   LOST: they were of after that time; set by sideband_drain()
 * @name:       MMAP: the file's path as the process sees it, or "[vdso]", "//anon" and their like;
 *              else "". Any bytes but NUL may be in it. Borrowed from the record.
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
	SIDEBAND_OTHER,	  /* of no interest: a thread's fork, a new name, a type that is not ours */
	SIDEBAND_OUTSIDE, /* of a process that our pid namespace does not show */
	SIDEBAND_ODD,	  /* not as perf_event_open(2) says */
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
