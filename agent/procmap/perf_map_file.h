/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_PERF_MAP_FILE_H
#define PODPROF_PROCMAP_PERF_MAP_FILE_H

/* Finds the perf map of a process: the file in which a JIT compiler lists its functions for perf.
 */

#include "discovery/pid.h"

struct root;

enum perf_map_file_outcome {
	PERF_MAP_FILE_OK = 0,
	PERF_MAP_FILE_ABSENT, /* no such file, or the process has ended */
	PERF_MAP_FILE_DENIED,
	PERF_MAP_FILE_ODD,     /* a FIFO, directory or the like: never opened */
	PERF_MAP_FILE_FOREIGN, /* it belongs neither to the process's user nor to root */
	PERF_MAP_FILE_OLD,     /* last written before the program began: of another one */
	PERF_MAP_FILE_OUTCOME_MAX,
};

/**
 * perf_map_file_open() - open /tmp/perf-PID.map below the root of the process
 * @began_ns:        boot clock; when the program began; 0: with the process
 * @wall_at_boot_ns: wall_at_boot() of an earlier moment, at best when the program began: a map
 *                   is old only by this wall clock and by the present one. 0: not known
 *
 * PID is the pid in the process's own PID namespace. May block. The caller owns the descriptor.
 *
 * Return: 0, an outcome or -errno.
 */
int perf_map_file_open(const struct root *proc, const struct pid_id *pid, uint64_t began_ns,
		       uint64_t wall_at_boot_ns, int *ret_fd);

#endif
