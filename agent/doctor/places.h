/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_PLACES_H
#define PODPROF_DOCTOR_PLACES_H

/* The directories that the agent writes to, and reads row files from. Nothing is made in them. */

#include <stdbool.h>
#include <stdint.h>

struct config;
struct findings;
struct probe_results;

enum place_what {
	PLACE_STORE,
	PLACE_CACHE,
	PLACE_ROWS,
	PLACE_MAX,
};

/**
 * struct place
 * @path:       NULL: not asked for; borrowed of the settings
 * @there:      it exists
 * @result:     whether it can be used as it is wanted, or made if it is not there: 0 or -errno
 * @unsafe:     somebody else owns it or may write to it
 * @free_bytes: of its file system, for us
 * @bytes:      that may be wanted of it
 */
struct place {
	const char *path;
	bool there;
	int result;
	bool unsafe;
	uint64_t free_bytes;
	uint64_t bytes;
};

void places_look(const struct config *config, struct place ret[PLACE_MAX]);

void places_check(const struct probe_results *results, struct findings *ret);

#endif
