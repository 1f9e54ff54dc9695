/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_MAPPED_H
#define PODPROF_PROCMAP_MAPPED_H

/* Opens the file behind a mapping of another process, safely for any path. */

#include <stdint.h>

struct maps_entry;
struct root;

enum mapped_outcome {
	MAPPED_OK = 0,
	MAPPED_GONE, /* the process, the mapping, or every way to a deleted file */
	MAPPED_DENIED,
	MAPPED_NOT_FILE, /* a device, FIFO or the like: never opened */
	MAPPED_OUTCOME_MAX,
};

/**
 * mapped_find() - a descriptor that only names the file (O_PATH)
 * @pid:   selects the directory in @proc; a thread's id also works (struct maps, via_pid)
 * @entry: of its maps
 *
 * Return: 0; an outcome; -errno. A regular file on 0.
 */
int mapped_find(const struct root *proc, uint64_t pid, const struct maps_entry *entry, int *ret_fd);
/* By the path alone, below the root of the living process @pid: for a mapping of an ended process.
 * The file must have the entry's device and inode, as the kernel shows these. */
int mapped_find_below(const struct root *proc, uint64_t pid, const struct maps_entry *entry,
		      int *ret_fd);
/* Opens the result of mapped_find() for reading. @path_fd stays the caller's. */
int mapped_open(int path_fd, int *ret_fd);

#endif
