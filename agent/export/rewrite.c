// SPDX-License-Identifier: Apache-2.0
#include "export/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "export/destination.h"
#include "export/profile.h"
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

/* Changes @rows and @mappings, copies of those of @t. The number of changed locations. */
static size_t leave_placeholders(const struct pprof_tables *t, struct pprof_location_row *rows,
				 struct pprof_mapping_row *mappings, bool whole)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_locations; i++) {
		struct pprof_mapping_row *mapping;

		if (!is_unnamed(t, &rows[i]))
			continue;
		rows[i].n_lines = 0;
		n++;
		mapping = &mappings[rows[i].mapping - 1];
		if (whole)
			mapping->start = mapping->limit = mapping->offset = 0;
	}
	return n;
}

/* ---------------------------------------------------------------- names of threads */

/* A sample of the result. */
struct thin_sample {
	struct pprof_sample_row row;
	const int64_t *values;
	size_t at; /* in the profile */
};

static int label_order(const struct pprof_label_row *x, const struct pprof_label_row *y)
{
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->str != y->str)
		return x->str < y->str ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->num < y->num ? -1 : x->num > y->num;
}

static int row_order(const struct pprof_sample_row *x, const struct pprof_sample_row *y)
{
	int order;

	if (x->n_locations != y->n_locations)
		return x->n_locations < y->n_locations ? -1 : 1;
	if (x->n_labels != y->n_labels)
		return x->n_labels < y->n_labels ? -1 : 1;
	order = x->n_locations
			? memcmp(x->locations, y->locations, x->n_locations * sizeof(*x->locations))
			: 0;
	for (size_t i = 0; !order && i < x->n_labels; i++)
		order = label_order(&x->labels[i], &y->labels[i]);
	return order;
}

/* Equal samples side by side, the first of the profile first. */
static int sample_order(const void *a, const void *b)
{
	const struct thin_sample *x = a, *y = b;
	int order = row_order(&x->row, &y->row);

	return order ? order : x->at < y->at ? -1 : 1;
}

static int place_order(const void *a, const void *b)
{
	const struct thin_sample *x = a, *y = b;

	return x->at < y->at ? -1 : 1;
}

static bool is_of_thread(const char *label)
{
	return strcmp(label, PROFILE_THREAD) == 0 || strcmp(label, PROFILE_TASK) == 0;
}

/* Copies the labels of @row to @to without the thread's and the task's. Whether there was one. */
static bool leave_thread(const struct pprof_tables *t, struct pprof_sample_row *row,
			 struct pprof_label_row *to)
{
	size_t n = 0;

	for (size_t i = 0; i < row->n_labels; i++)
		if (!is_of_thread(t->strings[row->labels[i].key]))
			to[n++] = row->labels[i];
	if (n == row->n_labels)
		return false;
	row->labels = to;
	row->n_labels = (uint32_t)n;
	return true;
}

/* Joins equal samples. Returns the number left, in the order of the profile. */
static size_t join_samples(const struct pprof_tables *t, struct thin_sample *samples,
			   int64_t *values)
{
	size_t n = 0;

	qsort(samples, t->n_samples, sizeof(*samples), sample_order);
	for (size_t i = 0; i < t->n_samples; i++) {
		int64_t *to = values + samples[i].at * t->n_types;

		if (n && row_order(&samples[n - 1].row, &samples[i].row) == 0)
			to = values + samples[n - 1].at * t->n_types;
		else
			samples[n++] = samples[i];
		for (size_t k = 0; k < t->n_types; k++)
			tables_add(&to[k], samples[i].values[k]);
	}
	qsort(samples, n, sizeof(*samples), place_order);
	return n;
}

static size_t count_labels(const struct pprof_tables *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_samples; i++)
		n += t->samples[i].n_labels;
	return n;
}

/* New samples of a profile; owned. */
struct thin {
	struct thin_sample *samples;
	struct pprof_label_row *labels;
	struct pprof_sample_row *rows;
	int64_t *sums; /* by a sample's place in the profile */
	int64_t *values;
};

static void thin_deinit(struct thin *thin)
{
	free(thin->samples);
	free(thin->labels);
	free(thin->rows);
	free(thin->sums);
	free(thin->values);
}

static int thin_init(struct thin *thin, const struct pprof_tables *t)
{
	thin->samples = calloc(t->n_samples + 1, sizeof(*thin->samples)); /* + 1: not of size 0 */
	thin->labels = calloc(count_labels(t) + 1, sizeof(*thin->labels));
	thin->rows = calloc(t->n_samples + 1, sizeof(*thin->rows));
	thin->sums = calloc(t->n_samples * t->n_types + 1, sizeof(*thin->sums));
	thin->values = calloc(t->n_samples * t->n_types + 1, sizeof(*thin->values));
	return thin->samples && thin->labels && thin->rows && thin->sums && thin->values ? 0
											 : -ENOMEM;
}

/* The samples of @t without the names of threads, for *@t. Whether there was a name. */
static bool leave_threads(struct pprof_tables *t, struct thin *thin)
{
	struct pprof_label_row *labels = thin->labels;
	bool any = false;
	size_t n;

	for (size_t i = 0; i < t->n_samples; i++) {
		thin->samples[i] =
			(struct thin_sample){t->samples[i], t->values + i * t->n_types, i};
		any |= leave_thread(t, &thin->samples[i].row, labels);
		labels += t->samples[i].n_labels;
	}
	if (!any)
		return false;
	n = join_samples(t, thin->samples, thin->sums);
	for (size_t i = 0; i < n; i++) {
		thin->rows[i] = thin->samples[i].row;
		memcpy(thin->values + i * t->n_types, thin->sums + thin->samples[i].at * t->n_types,
		       t->n_types * sizeof(*thin->values));
	}
	t->samples = thin->rows;
	t->values = thin->values;
	t->n_samples = n;
	return true;
}

/* ---------------------------------------------------------------- both */

static int without(const struct pprof_tables *t, const struct rewrite *what, struct thin *thin,
		   struct buf *ret)
{
	_cleanup_(freep) struct pprof_location_row *rows =
		calloc(t->n_locations + 1, sizeof(*rows));
	_cleanup_(freep) struct pprof_mapping_row *mappings =
		calloc(t->n_mappings + 1, sizeof(*mappings));
	struct pprof_tables copy = *t;
	bool changed = false;

	if (!rows || !mappings)
		return -ENOMEM;
	if (t->n_locations)
		memcpy(rows, t->locations, t->n_locations * sizeof(*rows));
	if (t->n_mappings)
		memcpy(mappings, t->mappings, t->n_mappings * sizeof(*mappings));
	copy.locations = rows;
	copy.mappings = mappings;
	if (what->placeholders)
		changed |= leave_placeholders(t, rows, mappings, what->whole_mappings) > 0;
	if (what->thread_names)
		changed |= leave_threads(&copy, thin);
	return changed ? wire_encode(&copy, WIRE_LEVEL, ret) : 0;
}

int rewrite_without(const struct destination_profile *p, const struct rewrite *what,
		    struct buf *ret)
{
	_cleanup_(reader_freep) struct reader *reader = NULL;
	_cleanup_(thin_deinit) struct thin thin = {0};
	int r = rewrite_read(p, &reader);

	if (!r && what->thread_names)
		r = thin_init(&thin, reader_tables(reader));
	return r ? r : result(without(reader_tables(reader), what, &thin, ret));
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
