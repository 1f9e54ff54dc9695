/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_MAPPED_H
#define PODPROF_PROCMAP_MAPPED_H

/* Opens the file behind a mapping of another process, whatever its path leads to. */

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
 * mapped_find() - a descriptor that names the file and does nothing else (O_PATH)
 * @pid:   whose directory in @proc is used; a thread's id does too (struct maps, via_pid)
 * @entry: of its maps
 *
 * Return: 0; an outcome; -errno. A regular file on 0.
 */
int mapped_find(const struct root *proc, uint64_t pid, const struct maps_entry *entry, int *ret_fd);
/* The same for a mapping of a process that has gone: by its path, below the root of the living
 * process @pid; only the file that the kernel shows with the entry's device and inode is it. */
int mapped_find_below(const struct root *proc, uint64_t pid, const struct maps_entry *entry,
		      int *ret_fd);
/* Open what mapped_find() found for reading. @path_fd stays the caller's. */
int mapped_open(int path_fd, int *ret_fd);

#endif
