/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_STOREDIR_H
#define PODPROF_DOCTOR_STOREDIR_H

/* The directory of the store. It is looked at; nothing is made in it. */

#include <stdbool.h>
#include <stdint.h>

struct config;
struct findings;
struct probe_results;

/**
 * struct storedir
 * @path:       NULL: not asked for; borrowed of the settings
 * @there:      it exists
 * @result:     whether it can be written to, or made if it is not there: 0 or -errno
 * @free_bytes: of its file system, for us
 * @bytes:      that may be wanted of it
 */
struct storedir {
	const char *path;
	bool there;
	int result;
	uint64_t free_bytes;
	uint64_t bytes;
};

void storedir_look(const struct config *config, struct storedir *ret);

void storedir_check(const struct probe_results *results, struct findings *ret);

#endif
