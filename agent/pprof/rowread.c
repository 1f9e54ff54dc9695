// SPDX-License-Identifier: Apache-2.0
/*
 * Each message of a profile is one row. Each field must have its kind from proto/profile.proto, and
 * each reference must be to an existing row. Strings are referred to by index, so their count
 * suffices. Mappings, functions and locations have ids chosen by the file, so their rows must be
 * read before any reference.
 *
 * A row with a variable number of parts (lines, a sample's locations) is walked twice: to count,
 * then to read. Unknown fields are skipped.
 */
#include "pprof/rowread.h"

#include <string.h>

#include "base/utf8.h"

int rowread_malformed(struct rowread *rd, const char *why)
{
	rd->why = why;
	return PPROF_MALFORMED;
}

int rowread_full(struct rowread *rd, int r)
{
	if (r > 0)
		rd->why = "its tables would take too much memory";
	return r > 0 ? PPROF_FULL : r;
}

static int add_id(struct rowread *rd, struct ids *ids, uint64_t id)
{
	if (!id)
		return rowread_malformed(rd, "an id is 0");
	ids_add(ids, id);
	return 0;
}

/* ---- fields */

static int next(struct rowread *rd, struct cursor *message, struct field *ret)
{
	int r = field_next(message, ret);

	return r == FIELD_MALFORMED ? rowread_malformed(rd, "a field leaves its message") : r;
}

static int number_of(struct rowread *rd, const struct field *f, uint64_t *ret)
{
	if (f->kind != FIELD_VARINT)
		return rowread_malformed(rd, "a field is of the wrong kind");
	*ret = f->value;
	return 0;
}

int rowread_signed(struct rowread *rd, const struct field *f, int64_t *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (!r)
		*ret = (int64_t)value;
	return r;
}

static int flag_of(struct rowread *rd, const struct field *f, bool *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (!r)
		*ret = value != 0;
	return r;
}

int rowread_index(struct rowread *rd, const struct field *f, uint32_t *ret)
{
	uint64_t value;
	int r = number_of(rd, f, &value);

	if (r)
		return r;
	if (value >= rd->n_strings)
		return rowread_malformed(rd, "a string's index is out of range");
	*ret = (uint32_t)value;
	return 0;
}

static int message_of(struct rowread *rd, const struct field *f, struct cursor *ret)
{
	if (f->kind != FIELD_BYTES)
		return rowread_malformed(rd, "a field is of the wrong kind");
	*ret = f->bytes;
	return 0;
}

int rowread_each(struct rowread *rd, struct cursor message, rowread_fn fn, void *row)
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

static int each_in(struct rowread *rd, const struct field *f, rowread_fn fn, void *row)
{
	struct cursor message;
	int r = message_of(rd, f, &message);

	return r ? r : rowread_each(rd, message, fn, row);
}

/* ---- single fields */

int rowread_time(struct rowread *rd, const struct field *f)
{
	/* as in google/pprof's reader */
	if (rd->t.time_ns)
		return rowread_malformed(rd, "it is several profiles one after the other");
	return rowread_signed(rd, f, &rd->t.time_ns);
}

int rowread_comment(struct rowread *rd, const struct field *f)
{
	struct field numbers = *f;
	struct field one = {.kind = FIELD_VARINT};
	int r;

	while ((r = field_next_number(&numbers, &one.value)) == 0) {
		r = rowread_index(rd, &one, &rd->t.comments[rd->t.n_comments]);
		if (r)
			return r;
		rd->t.n_comments++;
	}
	return r == FIELD_END ? 0 : rowread_malformed(rd, "a comment is not a number");
}

/* ---- rows */

int rowread_string(struct rowread *rd, const struct field *f)
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
		return rowread_malformed(rd, "its first string is not empty");
	r = arena_alloc(&rd->arena, n + 1, &copy);
	if (r)
		return rowread_full(rd, r);
	if (n && cursor_bytes(&c, n, &bytes))
		memcpy(copy, bytes, n);
	for (size_t i = 0; i < n; i++)
		if (!copy[i])
			copy[i] = '?';
	utf8_repair(copy, n);
	rd->t.strings[rd->t.n_strings++] = copy;
	return 0;
}

static int type_field(struct rowread *rd, const struct field *f, void *row)
{
	struct pprof_type_row *type = row;

	switch (f->number) {
	case 1:
		return rowread_index(rd, f, &type->type);
	case 2:
		return rowread_index(rd, f, &type->unit);
	}
	return 0;
}

int rowread_type(struct rowread *rd, const struct field *f, struct pprof_type_row *ret)
{
	return each_in(rd, f, type_field, ret);
}

/* A row and its id in the file. */
struct mapping_read {
	struct pprof_mapping_row row;
	uint64_t id;
};

static int mapping_field(struct rowread *rd, const struct field *f, void *row)
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
		return rowread_index(rd, f, &m->row.path);
	case 6:
		return rowread_index(rd, f, &m->row.build_id);
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

int rowread_mapping(struct rowread *rd, const struct field *f)
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

static int function_field(struct rowread *rd, const struct field *f, void *row)
{
	struct function_read *fn = row;

	switch (f->number) {
	case 1:
		return number_of(rd, f, &fn->id);
	case 2:
		return rowread_index(rd, f, &fn->row.name);
	case 3:
		return rowread_index(rd, f, &fn->row.system_name);
	case 4:
		return rowread_index(rd, f, &fn->row.file);
	case 5:
		return rowread_signed(rd, f, &fn->row.start_line);
	}
	return 0;
}

int rowread_function(struct rowread *rd, const struct field *f)
{
	struct function_read fn = {0};
	int r = each_in(rd, f, function_field, &fn);

	if (!r)
		r = add_id(rd, &rd->functions, fn.id);
	if (!r)
		rd->t.functions[rd->t.n_functions++] = fn.row;
	return r;
}

static int line_field(struct rowread *rd, const struct field *f, void *row)
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
		return line->function ? 0 : rowread_malformed(rd, "a line names no function");
	case 2:
		return rowread_signed(rd, f, &line->line);
	}
	return 0;
}

struct location_read {
	struct pprof_location_row row;
	struct pprof_line *lines;
	uint64_t id;
	size_t n_lines; /* number present, before reading */
};

static int location_count(struct rowread *rd, const struct field *f, void *row)
{
	struct location_read *l = row;

	(void)rd;
	l->n_lines += f->number == 4;
	return 0;
}

static int location_field(struct rowread *rd, const struct field *f, void *row)
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
		return l->row.mapping ? 0 : rowread_malformed(rd, "a location names no mapping");
	case 3:
		return number_of(rd, f, &l->row.address);
	case 4:
		line = &l->lines[l->row.n_lines++];
		r = each_in(rd, f, line_field, line);
		if (!r && !line->function)
			return rowread_malformed(rd, "a line names no function");
		return r;
	}
	return 0;
}

int rowread_location(struct rowread *rd, const struct field *f)
{
	struct location_read l = {0};
	int r;

	r = each_in(rd, f, location_count, &l);
	if (!r)
		r = rowread_full(rd,
				 arena_array(&rd->arena, l.n_lines, sizeof(*l.lines), &l.lines));
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

struct sample_read {
	uint32_t *locations;
	int64_t *values;
	struct pprof_label_row *labels;
	size_t n_locations, n_values, n_labels; /* number present, then number read */
};

static int sample_count(struct rowread *rd, const struct field *f, void *row)
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

static int label_field(struct rowread *rd, const struct field *f, void *row)
{
	struct pprof_label_row *label = row;

	switch (f->number) {
	case 1:
		return rowread_index(rd, f, &label->key);
	case 2:
		return rowread_index(rd, f, &label->str);
	case 3:
		return rowread_signed(rd, f, &label->num);
	case 4:
		return rowread_index(rd, f, &label->unit);
	}
	return 0;
}

static int read_stack(struct rowread *rd, const struct field *f, struct sample_read *s)
{
	struct field numbers = *f;
	uint64_t id;
	int r;

	while ((r = field_next_number(&numbers, &id)) == 0) {
		uint32_t number = ids_find(&rd->locations, id);

		if (!number)
			return rowread_malformed(rd, "a sample names no location");
		s->locations[s->n_locations++] = number;
	}
	return r == FIELD_END ? 0 : rowread_malformed(rd, "a location's id is not a number");
}

static int read_values(struct rowread *rd, const struct field *f, struct sample_read *s)
{
	struct field numbers = *f;
	uint64_t value;
	int r;

	while ((r = field_next_number(&numbers, &value)) == 0)
		s->values[s->n_values++] = (int64_t)value;
	return r == FIELD_END ? 0 : rowread_malformed(rd, "a value is not a number");
}

static int sample_field(struct rowread *rd, const struct field *f, void *row)
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

int rowread_sample(struct rowread *rd, const struct field *f)
{
	struct pprof_tables *t = &rd->t;
	struct sample_read s = {0};
	int r;

	r = each_in(rd, f, sample_count, &s);
	if (r)
		return r;
	if (s.n_values != t->n_types || !t->n_types)
		return rowread_malformed(rd, "a sample has not one value for each type");
	r = arena_array(&rd->arena, s.n_locations, sizeof(*s.locations), &s.locations);
	if (!r)
		r = arena_array(&rd->arena, s.n_labels, sizeof(*s.labels), &s.labels);
	if (r)
		return rowread_full(rd, r);
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
