// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes to tables.
 *
 * Fields of a protobuf message may come in any order, and a profile has references everywhere:
 * samples to locations, locations to functions, all to strings. The reader therefore walks the
 * message four times. A walk skips unwanted fields as a whole, so the walks are cheap:
 *
 *   1. count the rows of each kind, to check every string's number at once
 *   2. strings, mappings, functions and single fields
 *   3. locations, whose mappings and functions are known by now
 *   4. samples
 *
 * Each row is checked during reading (rowread.c). The rules are the rules of google/pprof's
 * CheckValid and decoder, and one more: the mapping of a location must exist if the location names
 * a mapping.
 *
 * Left out: columns, is_folded, drop_frames, keep_frames, doc_url (checked to be strings).
 */
#include "pprof/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "pprof/gunzip.h"
#include "pprof/rowread.h"

/* Numbers of the fields of Profile. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE,
	MAPPING,
	LOCATION,
	FUNCTION,
	STRING_TABLE,
	DROP_FRAMES,
	KEEP_FRAMES,
	TIME_NANOS,
	DURATION_NANOS,
	PERIOD_TYPE,
	PERIOD,
	COMMENT,
	DEFAULT_SAMPLE_TYPE,
	DOC_URL,
	PROFILE_FIELDS,
};

/* Minimum bytes for the tables: for very small files, READER_MEMORY_FACTOR gives less than one
 * block. */
#define MEMORY_MIN (256u << 10)

struct reader {
	struct rowread rows;
	struct cursor message;	       /* borrowed, during reader_new() only */
	size_t counts[PROFILE_FIELDS]; /* of each field */
};

DEFINE_CLEANUP(struct reader *, reader_freep, reader_free);

static int finish_ids(struct rowread *rows, struct ids *ids)
{
	return ids_finish(ids) ? rowread_malformed(rows, "an id is there twice") : 0;
}

/* ---- first walk */

static int count_field(struct rowread *rows, const struct field *f, void *counts)
{
	(void)rows;
	if (f->number >= PROFILE_FIELDS)
		return 0;
	((size_t *)counts)[f->number] += f->number == COMMENT ? field_n_numbers(f) : 1;
	return 0;
}

static int alloc_tables(struct rowread *rows, const size_t *n)
{
	struct pprof_tables *t = &rows->t;
	struct arena *a = &rows->arena;
	int r;

	if (n[SAMPLE_TYPE] > PPROF_TYPES_MAX) {
		rows->why = "it has too many sample types";
		return PPROF_FULL;
	}
	r = arena_array(a, n[STRING_TABLE], sizeof(*t->strings), &t->strings);
	if (!r)
		r = arena_array(a, n[MAPPING], sizeof(*t->mappings), &t->mappings);
	if (!r)
		r = arena_array(a, n[FUNCTION], sizeof(*t->functions), &t->functions);
	if (!r)
		r = arena_array(a, n[LOCATION], sizeof(*t->locations), &t->locations);
	if (!r)
		r = arena_array(a, n[SAMPLE], sizeof(*t->samples), &t->samples);
	if (!r)
		r = arena_array(a, n[SAMPLE], n[SAMPLE_TYPE] * sizeof(*t->values), &t->values);
	if (!r)
		r = arena_array(a, n[COMMENT], sizeof(*t->comments), &t->comments);
	if (!r)
		r = ids_init(&rows->mappings, a, n[MAPPING]);
	if (!r)
		r = ids_init(&rows->functions, a, n[FUNCTION]);
	if (!r)
		r = ids_init(&rows->locations, a, n[LOCATION]);
	rows->n_strings = n[STRING_TABLE];
	return rowread_full(rows, r);
}

/* ---- second walk */

static int head_field(struct rowread *rows, const struct field *f, void *row)
{
	struct pprof_tables *t = &rows->t;
	uint32_t unused;

	(void)row;
	switch (f->number) {
	case SAMPLE_TYPE:
		return rowread_type(rows, f, &t->types[t->n_types++]);
	case MAPPING:
		return rowread_mapping(rows, f);
	case FUNCTION:
		return rowread_function(rows, f);
	case STRING_TABLE:
		return rowread_string(rows, f);
	case DROP_FRAMES:
	case KEEP_FRAMES:
	case DOC_URL:
		return rowread_index(rows, f, &unused);
	case TIME_NANOS:
		return rowread_time(rows, f);
	case DURATION_NANOS:
		return rowread_signed(rows, f, &t->duration_ns);
	case PERIOD_TYPE:
		return rowread_type(rows, f, &t->period_type);
	case PERIOD:
		return rowread_signed(rows, f, &t->period);
	case COMMENT:
		return rowread_comment(rows, f);
	case DEFAULT_SAMPLE_TYPE:
		return rowread_index(rows, f, &t->default_type);
	}
	return 0;
}

/* ---- third and fourth walk */

static int location_field(struct rowread *rows, const struct field *f, void *row)
{
	(void)row;
	return f->number == LOCATION ? rowread_location(rows, f) : 0;
}

static int sample_field(struct rowread *rows, const struct field *f, void *row)
{
	(void)row;
	return f->number == SAMPLE ? rowread_sample(rows, f) : 0;
}

/* ---- the whole */

static int read_message(struct reader *rd)
{
	struct rowread *rows = &rd->rows;
	int r = rowread_each(rows, rd->message, count_field, rd->counts);

	if (!r && !rd->counts[STRING_TABLE])
		return rowread_malformed(rows, "it has no strings, so it is no profile");
	if (!r)
		r = alloc_tables(rows, rd->counts);
	if (!r)
		r = rowread_each(rows, rd->message, head_field, NULL);
	if (!r)
		r = finish_ids(rows, &rows->mappings);
	if (!r)
		r = finish_ids(rows, &rows->functions);
	if (!r)
		r = rowread_each(rows, rd->message, location_field, NULL);
	if (!r)
		r = finish_ids(rows, &rows->locations);
	return r ? r : rowread_each(rows, rd->message, sample_field, NULL);
}

/* The message's bytes, in place or unzipped into @raw. */
static int unpack(struct reader *rd, const void *data, size_t n, struct buf *raw)
{
	int r;

	if (!gunzip_is(data, n)) {
		rd->rows.why = "it is too large";
		cursor_init(&rd->message, data, n);
		return n > raw->max ? PPROF_FULL : 0;
	}
	r = gunzip(data, n, raw);
	if (r == PPROF_MALFORMED)
		rd->rows.why = "its gzip data is damaged or cut short";
	else if (r == PPROF_FULL)
		rd->rows.why = "it is too large when unzipped";
	cursor_init(&rd->message, raw->data, raw->len);
	return r;
}

int reader_new(const void *data, size_t n, size_t max_bytes, struct reader **ret,
	       const char **ret_why)
{
	_cleanup_(reader_freep) struct reader *rd = calloc(1, sizeof(*rd));
	_cleanup_(buf_deinit) struct buf raw = BUF_INIT(max_bytes);
	int r;

	if (!rd)
		return -ENOMEM;
	arena_init(&rd->rows.arena, MEMORY_MIN + max_bytes * READER_MEMORY_FACTOR);
	r = unpack(rd, data, n, &raw);
	if (!r)
		r = read_message(rd);
	if (r) {
		if (r > 0)
			*ret_why = rd->rows.why;
		return r;
	}
	rd->message = (struct cursor){0};
	*ret = take_ptr(rd);
	return 0;
}

void reader_free(struct reader *rd)
{
	if (!rd)
		return;
	arena_deinit(&rd->rows.arena);
	free(rd);
}

const struct pprof_tables *reader_tables(const struct reader *r)
{
	return &r->rows.t;
}
