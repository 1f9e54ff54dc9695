/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_JITDUMP_FILE_H
#define PODPROF_PROCMAP_JITDUMP_FILE_H

/* Finds the jitdump of a process: the file in which a JIT compiler lists its functions, with code
 * and lines, for perf. */

struct maps;
struct pid_id;
struct root;

enum jitdump_file_outcome {
	JITDUMP_FILE_OK = 0,
	JITDUMP_FILE_ABSENT, /* the process maps no such file, or has ended */
	JITDUMP_FILE_DENIED,
};

/* Opens the file in @maps, the executable mappings of the process. May block. The caller owns the
 * descriptor. 0, an outcome or -errno. */
int jitdump_file_open(const struct root *proc, const struct pid_id *pid, const struct maps *maps,
		      int *ret_fd);

#endif
