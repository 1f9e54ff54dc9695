// SPDX-License-Identifier: Apache-2.0
#include "export/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "export/destination.h"
#include "pprof/projection.h"
#include "pprof/reader.h"
#include "pprof/tables.h"
#include "pprof/wire.h"

static int result(int r)
{
	return r > 0 ? -EBADMSG : r;
}

/* "NAME+0x" and hexadecimal digits, as symbolize/symbolizer.c names an address in a file. */
static bool is_placeholder(const char *name)
{
	const char *at = strrchr(name, '+');

	return at && at != name && at[1] == '0' && at[2] == 'x' && at[3] &&
	       at[3 + strspn(at + 3, "0123456789abcdef")] == '\0';
}

/* A location that the server may name: its mapping has a build id, and is not named completely. */
static bool is_unnamed(const struct pprof_tables *t, const struct pprof_location_row *at)
{
	const struct pprof_mapping_row *mapping =
		at->mapping ? &t->mappings[at->mapping - 1] : NULL;
	const struct pprof_function_row *function;

	if (!mapping || mapping->has_functions || !mapping->build_id || at->n_lines != 1)
		return false;
	function = &t->functions[at->lines[0].function - 1];
	return !function->file && is_placeholder(t->strings[function->name]);
}

static int without_placeholders(const struct pprof_tables *t, bool whole, struct buf *ret)
{
	_cleanup_(freep) struct pprof_location_row *rows =
		calloc(t->n_locations + 1, sizeof(*rows));
	_cleanup_(freep) struct pprof_mapping_row *mappings =
		calloc(t->n_mappings + 1, sizeof(*mappings));
	struct pprof_tables copy = *t;
	size_t n = 0;

	if (!rows || !mappings)
		return -ENOMEM;
	if (t->n_mappings)
		memcpy(mappings, t->mappings, t->n_mappings * sizeof(*mappings));
	for (size_t i = 0; i < t->n_locations; i++) {
		struct pprof_mapping_row *mapping;

		rows[i] = t->locations[i];
		if (!is_unnamed(t, &rows[i]))
			continue;
		rows[i].n_lines = 0;
		n++;
		mapping = &mappings[rows[i].mapping - 1];
		if (whole)
			mapping->start = mapping->limit = mapping->offset = 0;
	}
	copy.locations = rows;
	copy.mappings = mappings;
	return n ? wire_encode(&copy, WIRE_LEVEL, ret) : 0;
}

int rewrite_without_placeholders(const struct destination_profile *p, bool whole, struct buf *ret)
{
	_cleanup_(reader_freep) struct reader *reader = NULL;
	int r = rewrite_read(p, &reader);

	return r ? r : result(without_placeholders(reader_tables(reader), whole, ret));
}

int rewrite_read(const struct destination_profile *p, struct reader **ret)
{
	const char *why;

	return result(reader_new(p->pprof, p->pprof_len, REWRITE_BYTES_MAX, ret, &why));
}

int rewrite_project(const struct pprof_tables *t, const struct projection *projection,
		    struct buf *ret)
{
	return result(projection_encode(t, projection, ret));
}
