/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_PLACES_H
#define PODPROF_RUNTIMES_HOTSPOT_PLACES_H

/* Names and lines of Java methods, read from the memory of the process. */

#include <stdint.h>

#include "runtimes/hotspot_process.h"
#include "runtimes/hotspot_scopes.h"
#include "runtimes/runtimes.h"

struct memory;

/* Bytes of a line table: 1 or 2 for each line. The thread reads the whole table for each place.
 * Reached: the lines behind are not known. */
#define HOTSPOT_LINES_BYTES_MAX (16u << 10)

/* A place in a method. Lines: 0 if not known. */
struct hotspot_place {
	char name[RUNTIMES_NAME_MAX];
	char file[RUNTIMES_FILE_MAX];
	uint32_t first_line;
	uint32_t line;
};

/* The places of @scopes, in *@ret, which the caller frees. 0; an outcome of a process; -errno. */
int hotspot_places_read(struct memory *m, const struct hotspot_target *target,
			const struct hotspot_scopes *scopes, struct hotspot_place **ret);

#endif
