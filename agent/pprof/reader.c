// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes to tables.
 *
 * Fields of a protobuf message may come in any order, and in a profile everything refers to
 * something else: samples to locations, locations to functions, all to strings. So the message is
 * walked four times, which is cheap, since what a walk does not want it steps over as a whole:
 *
 *   1. count the rows of each kind; with that every string's number can be checked at once
 *   2. strings, mappings, functions and what there is one of
 *   3. locations, whose mapping and functions are known by now
 *   4. samples
 *
 * Each row is checked as it is read. The rules are those that google/pprof's CheckValid and decoder
 * insist on, and one more: a location that names a mapping must name one that exists.
 *
 * Left out: columns, is_folded, drop_frames, keep_frames, doc_url (checked to be strings).
 */
#include "pprof/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "pprof/field.h"
#include "pprof/gunzip.h"
#include "pprof/ids.h"

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

/* The tables' floor, for very small files: READER_MEMORY_FACTOR does not reach for one block. */
#define MEMORY_MIN (256u << 10)

struct reader {
	struct pprof_tables t;
	struct arena arena;
	struct cursor message; /* borrowed, during reader_new() only */
	size_t counts[PROFILE_FIELDS];
	struct ids mappings, functions, locations;
	const char *why;
};

DEFINE_CLEANUP(struct reader *, reader_freep, reader_free);

static int malformed(struct reader *rd, const char *why)
{
	rd->why = why;
	return PPROF_MALFORMED;
}

static int full(struct reader *rd, int r)
{
	if (r > 0)
		rd->why = "its tables would take too much memory";
	return r > 0 ? PPROF_FULL : r;
}

static int add_id(struct reader *rd, struct ids *ids, uint64_t id)
{
	if (!id)
		return malformed(rd, "an id is 0");
	ids_add(ids, id);
	return 0;
}

static int finish_ids(struct reader *rd, struct ids *ids)
{
	return ids_finish(ids) ? malformed(rd, "an id is there twice") : 0;
}

/* ---- fields */

static int next(struct reader *rd, struct cursor *message, struct field *ret)
{
	int r = field_next(message, ret);

	return r == FIELD_MALFORMED ? malformed(rd, "a field leaves its message") : r;
}

static int number_of(struct reader *rd, const struct field *f, uint64_t *ret)
{
	if (f->kind != FIELD_VARINT)
		return malformed(rd, "a field is of the wrong kind");
	*ret = f->value;
	return 0;
}

static int signed_of(struct reader *rd, const struct field *f, int64_t *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (!r)
		*ret = (int64_t)value;
	return r;
}

static int flag_of(struct reader *rd, const struct field *f, bool *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (!r)
		*ret = value != 0;
	return r;
}

static int string_of(struct reader *rd, const struct field *f, uint32_t *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (r)
		return r;
	if (value >= rd->counts[STRING_TABLE])
		return malformed(rd, "a string's index is out of range");
	*ret = (uint32_t)value;
	return 0;
}

static int message_of(struct reader *rd, const struct field *f, struct cursor *ret)
{
	if (f->kind != FIELD_BYTES)
		return malformed(rd, "a field is of the wrong kind");
	*ret = f->bytes;
	return 0;
}

typedef int (*field_fn)(struct reader *rd, const struct field *f, void *row);

/* Give each field of @message to @fn. */
static int each(struct reader *rd, struct cursor message, field_fn fn, void *row)
{
	struct field f;
	int r;

	while ((r = next(rd, &message, &f)) == 0) {
		r = fn(rd, &f, row);
		if (r)
			return r;
	}
	return r == FIELD_END ? 0 : r;
}

static int each_in(struct reader *rd, const struct field *f, field_fn fn, void *row)
{
	struct cursor message;
	int r = message_of(rd, f, &message);

	return r ? r : each(rd, message, fn, row);
}

/* ---- first walk */

static int count_field(struct reader *rd, const struct field *f, void *row)
{
	(void)row;
	if (f->number >= PROFILE_FIELDS)
		return 0;
	rd->counts[f->number] += f->number == COMMENT ? field_n_numbers(f) : 1;
	return 0;
}

static int alloc_tables(struct reader *rd)
{
	struct pprof_tables *t = &rd->t;
	struct arena *a = &rd->arena;
	const size_t *n = rd->counts;
	int r;

	if (n[SAMPLE_TYPE] > PPROF_TYPES_MAX) {
		rd->why = "it has too many sample types";
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
		r = ids_init(&rd->mappings, a, n[MAPPING]);
	if (!r)
		r = ids_init(&rd->functions, a, n[FUNCTION]);
	if (!r)
		r = ids_init(&rd->locations, a, n[LOCATION]);
	return full(rd, r);
}

/* ---- second walk */

static int read_string(struct reader *rd, const struct field *f)
{
	struct cursor c = {0};
	const void *bytes;
	size_t n;
	char *copy;
	int r = message_of(rd, f, &c);

	if (r)
		return r;
	n = cursor_left(&c);
	if (!rd->t.n_strings && n)
		return malformed(rd, "its first string is not empty");
	r = arena_alloc(&rd->arena, n + 1, &copy);
	if (r)
		return full(rd, r);
	if (n && cursor_bytes(&c, n, &bytes))
		memcpy(copy, bytes, n);
	for (size_t i = 0; i < n; i++)
		if (!copy[i])
			copy[i] = '?';
	text_repair_utf8(copy, n);
	rd->t.strings[rd->t.n_strings++] = copy;
	return 0;
}

static int type_field(struct reader *rd, const struct field *f, void *row)
{
	struct pprof_type_row *type = row;

	switch (f->number) {
	case 1:
		return string_of(rd, f, &type->type);
	case 2:
		return string_of(rd, f, &type->unit);
	}
	return 0;
}

/* A row and the id it had in the file. */
struct mapping_read {
	struct pprof_mapping_row row;
	uint64_t id;
};

static int mapping_field(struct reader *rd, const struct field *f, void *row)
{
	struct mapping_read *m = row;

	switch (f->number) {
	case 1:
		return number_of(rd, f, &m->id);
	case 2:
		return number_of(rd, f, &m->row.start);
	case 3:
		return number_of(rd, f, &m->row.limit);
	case 4:
		return number_of(rd, f, &m->row.offset);
	case 5:
		return string_of(rd, f, &m->row.path);
	case 6:
		return string_of(rd, f, &m->row.build_id);
	case 7:
		return flag_of(rd, f, &m->row.has_functions);
	case 8:
		return flag_of(rd, f, &m->row.has_filenames);
	case 9:
		return flag_of(rd, f, &m->row.has_line_numbers);
	case 10:
		return flag_of(rd, f, &m->row.has_inline_frames);
	}
	return 0;
}

static int read_mapping(struct reader *rd, const struct field *f)
{
	struct mapping_read m = {0};
	int r = each_in(rd, f, mapping_field, &m);

	if (!r)
		r = add_id(rd, &rd->mappings, m.id);
	if (!r)
		rd->t.mappings[rd->t.n_mappings++] = m.row;
	return r;
}

struct function_read {
	struct pprof_function_row row;
	uint64_t id;
};

static int function_field(struct reader *rd, const struct field *f, void *row)
{
	struct function_read *fn = row;

	switch (f->number) {
	case 1:
		return number_of(rd, f, &fn->id);
	case 2:
		return string_of(rd, f, &fn->row.name);
	case 3:
		return string_of(rd, f, &fn->row.system_name);
	case 4:
		return string_of(rd, f, &fn->row.file);
	case 5:
		return signed_of(rd, f, &fn->row.start_line);
	}
	return 0;
}

static int read_function(struct reader *rd, const struct field *f)
{
	struct function_read fn = {0};
	int r = each_in(rd, f, function_field, &fn);

	if (!r)
		r = add_id(rd, &rd->functions, fn.id);
	if (!r)
		rd->t.functions[rd->t.n_functions++] = fn.row;
	return r;
}

static int read_time(struct reader *rd, const struct field *f)
{
	/* google/pprof's reader takes it so, too */
	if (rd->t.time_ns)
		return malformed(rd, "it is several profiles one after the other");
	return signed_of(rd, f, &rd->t.time_ns);
}

static int read_comments(struct reader *rd, const struct field *f)
{
	struct field numbers = *f;
	struct field one = {.kind = FIELD_VARINT};
	int r;

	while ((r = field_next_number(&numbers, &one.value)) == 0) {
		r = string_of(rd, &one, &rd->t.comments[rd->t.n_comments]);
		if (r)
			return r;
		rd->t.n_comments++;
	}
	return r == FIELD_END ? 0 : malformed(rd, "a comment is not a number");
}

static int head_field(struct reader *rd, const struct field *f, void *row)
{
	struct pprof_tables *t = &rd->t;
	uint32_t unused;

	(void)row;
	switch (f->number) {
	case SAMPLE_TYPE:
		return each_in(rd, f, type_field, &t->types[t->n_types++]);
	case MAPPING:
		return read_mapping(rd, f);
	case FUNCTION:
		return read_function(rd, f);
	case STRING_TABLE:
		return read_string(rd, f);
	case DROP_FRAMES:
	case KEEP_FRAMES:
	case DOC_URL:
		return string_of(rd, f, &unused);
	case TIME_NANOS:
		return read_time(rd, f);
	case DURATION_NANOS:
		return signed_of(rd, f, &t->duration_ns);
	case PERIOD_TYPE:
		return each_in(rd, f, type_field, &t->period_type);
	case PERIOD:
		return signed_of(rd, f, &t->period);
	case COMMENT:
		return read_comments(rd, f);
	case DEFAULT_SAMPLE_TYPE:
		return string_of(rd, f, &t->default_type);
	}
	return 0;
}

/* ---- third walk */

static int line_field(struct reader *rd, const struct field *f, void *row)
{
	struct pprof_line *line = row;
	uint64_t id;
	int r;

	switch (f->number) {
	case 1:
		r = number_of(rd, f, &id);
		if (r)
			return r;
		line->function = ids_find(&rd->functions, id);
		return line->function ? 0 : malformed(rd, "a line names no function");
	case 2:
		return signed_of(rd, f, &line->line);
	}
	return 0;
}

struct location_read {
	struct pprof_location_row row;
	struct pprof_line *lines;
	uint64_t id;
	size_t n_lines; /* that are there, before they are read */
};

static int location_count(struct reader *rd, const struct field *f, void *row)
{
	struct location_read *l = row;

	(void)rd;
	l->n_lines += f->number == 4;
	return 0;
}

static int location_field(struct reader *rd, const struct field *f, void *row)
{
	struct location_read *l = row;
	struct pprof_line *line;
	uint64_t id;
	int r;

	switch (f->number) {
	case 1:
		return number_of(rd, f, &l->id);
	case 2:
		r = number_of(rd, f, &id);
		if (r || !id)
			return r;
		l->row.mapping = ids_find(&rd->mappings, id);
		return l->row.mapping ? 0 : malformed(rd, "a location names no mapping");
	case 3:
		return number_of(rd, f, &l->row.address);
	case 4:
		line = &l->lines[l->row.n_lines++];
		r = each_in(rd, f, line_field, line);
		if (!r && !line->function)
			return malformed(rd, "a line names no function");
		return r;
	}
	return 0;
}

static int read_location(struct reader *rd, const struct field *f, void *row)
{
	struct location_read l = {0};
	int r;

	(void)row;
	if (f->number != LOCATION)
		return 0;
	r = each_in(rd, f, location_count, &l);
	if (!r)
		r = full(rd, arena_array(&rd->arena, l.n_lines, sizeof(*l.lines), &l.lines));
	if (!r)
		r = each_in(rd, f, location_field, &l);
	if (!r)
		r = add_id(rd, &rd->locations, l.id);
	if (r)
		return r;
	l.row.lines = l.lines;
	rd->t.locations[rd->t.n_locations++] = l.row;
	return 0;
}

/* ---- fourth walk */

struct sample_read {
	uint32_t *locations;
	int64_t *values;
	struct pprof_label_row *labels;
	size_t n_locations, n_values, n_labels; /* that are there, then those read */
};

static int sample_count(struct reader *rd, const struct field *f, void *row)
{
	struct sample_read *s = row;

	(void)rd;
	switch (f->number) {
	case 1:
		s->n_locations += field_n_numbers(f);
		break;
	case 2:
		s->n_values += field_n_numbers(f);
		break;
	case 3:
		s->n_labels++;
		break;
	}
	return 0;
}

static int label_field(struct reader *rd, const struct field *f, void *row)
{
	struct pprof_label_row *label = row;

	switch (f->number) {
	case 1:
		return string_of(rd, f, &label->key);
	case 2:
		return string_of(rd, f, &label->str);
	case 3:
		return signed_of(rd, f, &label->num);
	case 4:
		return string_of(rd, f, &label->unit);
	}
	return 0;
}

static int read_stack(struct reader *rd, const struct field *f, struct sample_read *s)
{
	struct field numbers = *f;
	uint64_t id;
	int r;

	while ((r = field_next_number(&numbers, &id)) == 0) {
		uint32_t number = ids_find(&rd->locations, id);

		if (!number)
			return malformed(rd, "a sample names no location");
		s->locations[s->n_locations++] = number;
	}
	return r == FIELD_END ? 0 : malformed(rd, "a location's id is not a number");
}

static int read_values(struct reader *rd, const struct field *f, struct sample_read *s)
{
	struct field numbers = *f;
	uint64_t value;
	int r;

	while ((r = field_next_number(&numbers, &value)) == 0)
		s->values[s->n_values++] = (int64_t)value;
	return r == FIELD_END ? 0 : malformed(rd, "a value is not a number");
}

static int sample_field(struct reader *rd, const struct field *f, void *row)
{
	struct sample_read *s = row;

	switch (f->number) {
	case 1:
		return read_stack(rd, f, s);
	case 2:
		return read_values(rd, f, s);
	case 3:
		return each_in(rd, f, label_field, &s->labels[s->n_labels++]);
	}
	return 0;
}

static int read_sample(struct reader *rd, const struct field *f, void *row)
{
	struct pprof_tables *t = &rd->t;
	struct sample_read s = {0};
	int r;

	(void)row;
	if (f->number != SAMPLE)
		return 0;
	r = each_in(rd, f, sample_count, &s);
	if (r)
		return r;
	if (s.n_values != t->n_types || !t->n_types)
		return malformed(rd, "a sample has not one value for each type");
	r = arena_array(&rd->arena, s.n_locations, sizeof(*s.locations), &s.locations);
	if (!r)
		r = arena_array(&rd->arena, s.n_labels, sizeof(*s.labels), &s.labels);
	if (r)
		return full(rd, r);
	s.values = t->values + t->n_samples * t->n_types;
	s.n_locations = s.n_values = s.n_labels = 0;
	r = each_in(rd, f, sample_field, &s);
	if (r)
		return r;
	t->samples[t->n_samples++] = (struct pprof_sample_row){
		.locations = s.locations,
		.labels = s.labels,
		.n_locations = (uint32_t)s.n_locations,
		.n_labels = (uint32_t)s.n_labels,
	};
	return 0;
}

/* ---- the whole */

static int read_message(struct reader *rd)
{
	int r = each(rd, rd->message, count_field, NULL);

	if (!r && !rd->counts[STRING_TABLE])
		return malformed(rd, "it has no strings, so it is no profile");
	if (!r)
		r = alloc_tables(rd);
	if (!r)
		r = each(rd, rd->message, head_field, NULL);
	if (!r)
		r = finish_ids(rd, &rd->mappings);
	if (!r)
		r = finish_ids(rd, &rd->functions);
	if (!r)
		r = each(rd, rd->message, read_location, NULL);
	if (!r)
		r = finish_ids(rd, &rd->locations);
	return r ? r : each(rd, rd->message, read_sample, NULL);
}

/* The message's bytes, in place or unzipped into @raw. */
static int unpack(struct reader *rd, const void *data, size_t n, struct buf *raw)
{
	int r;

	if (!gunzip_is(data, n)) {
		rd->why = "it is too large";
		cursor_init(&rd->message, data, n);
		return n > raw->max ? PPROF_FULL : 0;
	}
	r = gunzip(data, n, raw);
	if (r == PPROF_MALFORMED)
		rd->why = "its gzip data is damaged or cut short";
	else if (r == PPROF_FULL)
		rd->why = "it is too large when unzipped";
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
	arena_init(&rd->arena, MEMORY_MIN + max_bytes * READER_MEMORY_FACTOR);
	r = unpack(rd, data, n, &raw);
	if (!r)
		r = read_message(rd);
	if (r) {
		if (r > 0)
			*ret_why = rd->why;
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
	arena_deinit(&rd->arena);
	free(rd);
}

const struct pprof_tables *reader_tables(const struct reader *r)
{
	return &r->t;
}
