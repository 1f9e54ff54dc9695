/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_STOREDIR_H
#define PODPROF_DOCTOR_STOREDIR_H

/* The directories of the store and of the spool. The probe creates nothing. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct findings;
struct probe_results;

/**
 * struct storedir
 * @path:       NULL: not configured; borrowed of the settings
 * @there:      the directory exists
 * @result:     whether the directory is writable, or could be created: 0 or -errno
 * @free_bytes: free space of its file system for us
 * @bytes:      configured maximum of the use
 * @holder:     process with the directory's lock, as a running agent; 0: none, or unknown
 */
struct storedir {
	const char *path;
	bool there;
	int result;
	uint64_t free_bytes;
	uint64_t bytes;
	pid_t holder;
};

void storedir_look(const struct config *config, struct storedir *ret);
void storedir_look_spool(const struct config *config, struct storedir *ret);

void storedir_check(const struct probe_results *results, struct findings *ret);

#endif
