// SPDX-License-Identifier: Apache-2.0
/*
 * The result is a copy of the tables' heads: the samples and their values are new arrays, and the
 * rest is borrowed. New names are strings behind those of the profile.
 */
#include "pprof/projection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "pprof/wire.h"

/* The selected types in @t, and their columns in @columns. */
static void project_types(struct pprof_tables *t, const struct projection *p, size_t *columns)
{
	const struct pprof_tables all = *t;

	t->n_types = 0;
	t->default_type = 0;
	for (size_t i = 0; i < p->n_types; i++) {
		struct pprof_type_row *row = &t->types[t->n_types];
		size_t column;

		if (!tables_type(&all, p->types[i], &column))
			continue;
		*row = all.types[column];
		if (row->type == all.default_type)
			t->default_type = all.default_type;
		if (p->names[i]) {
			row->type = (uint32_t)t->n_strings;
			t->strings[t->n_strings++] = p->names[i];
		}
		columns[t->n_types++] = column;
	}
}

static void project_samples(struct pprof_tables *t, const struct pprof_tables *all,
			    const size_t *columns)
{
	t->n_samples = 0;
	for (size_t i = 0; i < all->n_samples; i++) {
		int64_t *values = t->values + t->n_samples * t->n_types;
		bool any = false;

		for (size_t j = 0; j < t->n_types; j++) {
			values[j] = all->values[i * all->n_types + columns[j]];
			any |= values[j] != 0;
		}
		if (any)
			t->samples[t->n_samples++] = all->samples[i];
	}
}

int projection_encode(const struct pprof_tables *t, const struct projection *p, struct buf *ret)
{
	size_t columns[PPROF_VALUES_MAX];
	_cleanup_(freep) const char **strings = NULL;
	_cleanup_(freep) struct pprof_sample_row *samples = NULL;
	_cleanup_(freep) int64_t *values = NULL;
	struct pprof_tables part = *t;

	strings = calloc(t->n_strings + PPROF_VALUES_MAX, sizeof(*strings));
	samples = calloc(t->n_samples + 1, sizeof(*samples)); /* + 1: not of size 0 */
	values = calloc(t->n_samples + 1, PPROF_VALUES_MAX * sizeof(*values));
	if (!strings || !samples || !values)
		return -ENOMEM;
	memcpy(strings, t->strings, t->n_strings * sizeof(*strings));
	part.strings = strings;
	part.samples = samples;
	part.values = values;
	part.time_ns = p->time_ns;
	part.duration_ns = p->duration_ns;
	project_types(&part, p, columns);
	project_samples(&part, t, columns);
	return wire_encode(&part, WIRE_LEVEL, ret);
}
