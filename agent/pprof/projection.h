/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_PROJECTION_H
#define PODPROF_PPROF_PROJECTION_H

/* A profile with a part of its sample types: for backends that take one type at a time, other type
 * names, or another clock. */

#include <stddef.h>
#include <stdint.h>

#include "pprof/tables.h"

struct buf;

/**
 * struct projection - the part to write
 * @types:       sample types of the profile, in the order of the result; missing ones are skipped
 * @names:       the result's name for each; NULL keeps the name
 * @time_ns:     replaces the profile's time
 * @duration_ns: replaces the profile's duration
 */
struct projection {
	const char *types[PPROF_VALUES_MAX];
	const char *names[PPROF_VALUES_MAX];
	size_t n_types;
	int64_t time_ns;
	int64_t duration_ns;
};

/**
 * projection_encode() - append a part of a profile as the gzip-compressed message
 *
 * Samples without a value in the selected types are left out; their locations stay.
 *
 * Return: as wire_encode().
 */
int projection_encode(const struct pprof_tables *t, const struct projection *p, struct buf *ret);

#endif
