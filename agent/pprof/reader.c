// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes to tables. protobuf-c unpacks the message; the rows of the tables are then made from it and
 * checked. The rules are the rules of google/pprof's CheckValid and decoder, and one more: the
 * mapping of a location must exist if the location names a mapping.
 *
 * A message of 2 bytes becomes some 100 bytes of memory, so a small file could demand any amount.
 * All memory therefore comes from one arena with a ceiling, also protobuf-c's (its allocator is
 * below). The tables borrow their strings from the unpacked message.
 *
 * Left out: is_folded, drop_frames, keep_frames (checked to be strings).
 */
#include "pprof/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/utf8.h"
#include "profile.pb-c.h"

typedef Perftools__Profiles__Profile profile_msg;
typedef Perftools__Profiles__ValueType value_type_msg;
typedef Perftools__Profiles__Sample sample_msg;
typedef Perftools__Profiles__Label label_msg;
typedef Perftools__Profiles__Mapping mapping_msg;
typedef Perftools__Profiles__Location location_msg;
typedef Perftools__Profiles__Function function_msg;

/* Minimum bytes for the tables: for very small files, READER_MEMORY_FACTOR gives less than one
 * block. */
#define MEMORY_MIN (256u << 10)

/* The map from ids to rows, since writers choose the ids of mappings, functions and locations
 * freely. */

struct ids_entry {
	uint64_t id;
	uint32_t number; /* row + 1 */
};

/**
 * struct ids - filled in the order of rows, then looked up
 * @entries: in the order of rows, or by id after ids_finish()
 * @dense:   entry i has id i + 1, as from nearly every writer
 *
 * Borrows its memory from an arena.
 */
struct ids {
	struct ids_entry *entries;
	size_t n;
	bool dense;
};

/* @full: the first failure of @arena; @why: the problem, for people; a constant string. */
struct reader {
	struct pprof_tables t;
	struct arena arena;
	int full;
	struct ids mappings, functions, locations;
	const char *why;
};

/* The first reason counts; the caller goes on to the end of the row. */
static void malformed(struct reader *rd, const char *why)
{
	if (!rd->why)
		rd->why = why;
}

/* Room for @n items of @size bytes; NULL sets @rd->full. */
static void *room(struct reader *rd, size_t n, size_t size)
{
	void *piece;
	int r = rd->full ? rd->full : arena_array(&rd->arena, n, size, &piece);

	rd->full = r;
	return r ? NULL : piece;
}

/* ---- gzip */

/* Bytes of output at a time: the maximum allocated beyond the contents. */
#define CHUNK_BYTES 65536u

/* One call of inflate() into fresh room of @ret. 0 or zlib's Z_STREAM_END, else as gunzip(). */
static int inflate_some(z_stream *z, struct buf *ret, bool *ret_end)
{
	size_t room = ret->max - ret->len;
	char spare, *to = &spare;
	int r, state;

	/* at the ceiling the stream may still end, but not produce another byte */
	z->avail_out = 1;
	if (room) {
		room = room < CHUNK_BYTES ? room : CHUNK_BYTES;
		r = buf_reserve(ret, room, &to);
		if (r)
			return r < 0 ? r : PPROF_FULL;
		z->avail_out = (uInt)room;
	}
	z->next_out = (Bytef *)to;
	state = inflate(z, Z_NO_FLUSH);
	if (!room && !z->avail_out)
		return PPROF_FULL;
	if (room)
		ret->len += room - z->avail_out;
	if (state == Z_MEM_ERROR)
		return -ENOMEM;
	if (state != Z_OK && state != Z_STREAM_END)
		return PPROF_MALFORMED; /* Z_BUF_ERROR too: the input ends early */
	*ret_end = state == Z_STREAM_END;
	return 0;
}

static int inflate_members(z_stream *z, struct buf *ret)
{
	bool end = false;
	int r;

	while (!end || z->avail_in) {
		if (end && inflateReset(z) != Z_OK)
			return PPROF_MALFORMED;
		r = inflate_some(z, ret, &end);
		if (r)
			return r;
	}
	return 0;
}

/* Append the contents of a gzip file, with all members. The ceiling of @ret protects against a
 * small file with very large contents. 0; PPROF_FULL; PPROF_MALFORMED: not gzip, incomplete, a
 * wrong checksum, or bytes behind the last member; -ENOMEM. On failure @ret is undefined. */
static int gunzip(const void *data, size_t n, struct buf *ret)
{
	z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)n};
	int r;

	if (n > UINT32_MAX)
		return PPROF_FULL;
	if (inflateInit2(&z, 16 + 15) != Z_OK)
		return -ENOMEM;
	r = inflate_members(&z, ret);
	inflateEnd(&z);
	return r;
}

/* ---- the message */

static void *msg_alloc(void *ctx, size_t n)
{
	return room(ctx, n, 1);
}

/* The arena frees all at once. */
static void msg_free(void *ctx, void *piece)
{
	(void)ctx;
	(void)piece;
}

/*
 * Two facts are lost in protobuf-c's message, so this walk over the outermost fields finds them
 * before: a NUL inside a string, which becomes '?', and a second time_nanos. Two profiles one after
 * the other are such a message, and google/pprof's reader refuses it as well. A message that is no
 * message ends the walk; protobuf-c refuses it then.
 */
static void prepare(struct reader *rd, struct buf *raw)
{
	enum { VARINT, FIXED64, BYTES, FIXED32 = 5, STRING_TABLE = 6 << 3 | BYTES, TIME = 9 << 3 };
	uint64_t tag, n, time = 0;
	struct cursor c;
	bool ok = true;

	cursor_init(&c, raw->data, raw->len);
	while (ok && cursor_uleb(&c, &tag)) {
		if ((tag & 7) == FIXED64 || (tag & 7) == FIXED32) {
			ok = cursor_skip(&c, (tag & 7) == FIXED64 ? 8 : 4);
			continue;
		}
		ok = cursor_uleb(&c, &n);
		if (ok && tag == TIME) {
			if (time)
				malformed(rd, "it is several profiles one after the other");
			time = n;
		} else if (ok && (tag & 7) == BYTES) {
			char *s = raw->data + cursor_pos(&c);

			ok = n <= cursor_left(&c) && cursor_skip(&c, (size_t)n);
			for (size_t i = 0; ok && tag == STRING_TABLE && i < n; i++)
				s[i] = s[i] ? s[i] : '?';
		}
	}
}

/* ---- rows */

static uint32_t string_index(struct reader *rd, int64_t index)
{
	if ((uint64_t)index < rd->t.n_strings)
		return (uint32_t)index;
	malformed(rd, "a string's index is out of range");
	return 0;
}

static struct ids ids_make(struct reader *rd, size_t n)
{
	return (struct ids){.entries = room(rd, n, sizeof(struct ids_entry))};
}

/* The next row's id. */
static void ids_add(struct reader *rd, struct ids *ids, uint64_t id)
{
	if (!id)
		malformed(rd, "an id is 0");
	ids->entries[ids->n] = (struct ids_entry){id, (uint32_t)ids->n + 1};
	ids->n++;
}

static int by_id(const void *a, const void *b)
{
	const struct ids_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Ends the filling. */
static void ids_finish(struct reader *rd, struct ids *ids)
{
	ids->dense = true;
	for (size_t i = 0; i < ids->n; i++)
		ids->dense = ids->dense && ids->entries[i].id == i + 1;
	if (ids->dense)
		return;
	qsort(ids->entries, ids->n, sizeof(*ids->entries), by_id);
	for (size_t i = 1; i < ids->n; i++)
		if (ids->entries[i - 1].id == ids->entries[i].id)
			malformed(rd, "an id is there twice");
}

/* The number of the row; without one the file is malformed for the reason @why. */
static uint32_t ids_find(struct reader *rd, const struct ids *ids, uint64_t id, const char *why)
{
	struct ids_entry key = {.id = id};
	const struct ids_entry *entry;

	if (ids->dense && id && id <= ids->n)
		return (uint32_t)id;
	entry = ids->dense ? NULL : bsearch(&key, ids->entries, ids->n, sizeof(key), by_id);
	if (!entry)
		malformed(rd, why);
	return entry ? entry->number : 0;
}

static struct pprof_type_row type_row(struct reader *rd, const value_type_msg *m)
{
	return (struct pprof_type_row){string_index(rd, m->type), string_index(rd, m->unit)};
}

static struct pprof_mapping_row mapping_row(struct reader *rd, const mapping_msg *m)
{
	return (struct pprof_mapping_row){
		.start = m->memory_start,
		.limit = m->memory_limit,
		.offset = m->file_offset,
		.path = string_index(rd, m->filename),
		.build_id = string_index(rd, m->build_id),
		.has_functions = m->has_functions,
		.has_filenames = m->has_filenames,
		.has_line_numbers = m->has_line_numbers,
		.has_inline_frames = m->has_inline_frames,
	};
}

static struct pprof_function_row function_row(struct reader *rd, const function_msg *m)
{
	return (struct pprof_function_row){
		.start_line = m->start_line,
		.name = string_index(rd, m->name),
		.system_name = string_index(rd, m->system_name),
		.file = string_index(rd, m->filename),
	};
}

static void read_location(struct reader *rd, const location_msg *m, struct pprof_location_row *ret)
{
	struct pprof_line *lines = room(rd, m->n_line, sizeof(*lines));

	if (!lines)
		return;
	for (size_t i = 0; i < m->n_line; i++)
		lines[i] = (struct pprof_line){
			.function = ids_find(rd, &rd->functions, m->line[i]->function_id,
					     "a line names no function"),
			.column = m->line[i]->column > 0 && m->line[i]->column <= UINT32_MAX
					  ? (uint32_t)m->line[i]->column
					  : 0,
			.line = m->line[i]->line,
		};
	*ret = (struct pprof_location_row){
		.address = m->address,
		.lines = lines,
		.n_lines = (uint32_t)m->n_line,
		.mapping = m->mapping_id ? ids_find(rd, &rd->mappings, m->mapping_id,
						    "a location names no mapping")
					 : 0,
	};
}

static void read_sample(struct reader *rd, const sample_msg *m, struct pprof_sample_row *ret,
			int64_t *ret_values)
{
	uint32_t *locations = room(rd, m->n_location_id, sizeof(*locations));
	struct pprof_label_row *labels = room(rd, m->n_label, sizeof(*labels));

	if (!locations || !labels)
		return;
	if (m->n_value != rd->t.n_types || !m->n_value) {
		malformed(rd, "a sample has not one value for each type");
		return;
	}
	memcpy(ret_values, m->value, m->n_value * sizeof(*m->value));
	for (size_t i = 0; i < m->n_location_id; i++)
		locations[i] = ids_find(rd, &rd->locations, m->location_id[i],
					"a sample names no location");
	for (size_t i = 0; i < m->n_label; i++)
		labels[i] = (struct pprof_label_row){
			.num = m->label[i]->num,
			.key = string_index(rd, m->label[i]->key),
			.str = string_index(rd, m->label[i]->str),
			.unit = string_index(rd, m->label[i]->num_unit),
		};
	*ret = (struct pprof_sample_row){
		.locations = locations,
		.labels = labels,
		.n_locations = (uint32_t)m->n_location_id,
		.n_labels = (uint32_t)m->n_label,
	};
}

/* ---- tables */

static void read_head(struct reader *rd, profile_msg *m)
{
	struct pprof_tables *t = &rd->t;

	t->strings = (const char **)m->string_table;
	t->n_strings = m->n_string_table;
	if (!t->n_strings)
		malformed(rd, "it has no strings, so it is no profile");
	else if (*t->strings[0])
		malformed(rd, "its first string is not empty");
	for (size_t i = 0; i < t->n_strings; i++)
		utf8_repair(m->string_table[i], strlen(m->string_table[i]));
	for (; t->n_types < m->n_sample_type; t->n_types++)
		t->types[t->n_types] = type_row(rd, m->sample_type[t->n_types]);
	if (m->period_type)
		t->period_type = type_row(rd, m->period_type);
	t->period = m->period;
	t->time_ns = m->time_nanos;
	t->duration_ns = m->duration_nanos;
	t->default_type = string_index(rd, m->default_sample_type);
	(void)string_index(rd, m->drop_frames);
	(void)string_index(rd, m->keep_frames);
	t->doc_url = string_index(rd, m->doc_url);
	t->comments = room(rd, m->n_comment, sizeof(*t->comments));
	for (; t->comments && t->n_comments < m->n_comment; t->n_comments++)
		t->comments[t->n_comments] = string_index(rd, m->comment[t->n_comments]);
}

/* Mappings and functions, which locations name. */
static void read_named(struct reader *rd, const profile_msg *m)
{
	struct pprof_tables *t = &rd->t;

	t->mappings = room(rd, m->n_mapping, sizeof(*t->mappings));
	rd->mappings = ids_make(rd, m->n_mapping);
	t->functions = room(rd, m->n_function, sizeof(*t->functions));
	rd->functions = ids_make(rd, m->n_function);
	if (rd->full)
		return;
	for (; t->n_mappings < m->n_mapping; t->n_mappings++) {
		t->mappings[t->n_mappings] = mapping_row(rd, m->mapping[t->n_mappings]);
		ids_add(rd, &rd->mappings, m->mapping[t->n_mappings]->id);
	}
	for (; t->n_functions < m->n_function; t->n_functions++) {
		t->functions[t->n_functions] = function_row(rd, m->function[t->n_functions]);
		ids_add(rd, &rd->functions, m->function[t->n_functions]->id);
	}
	ids_finish(rd, &rd->mappings);
	ids_finish(rd, &rd->functions);
}

static void read_locations(struct reader *rd, const profile_msg *m)
{
	struct pprof_tables *t = &rd->t;

	t->locations = room(rd, m->n_location, sizeof(*t->locations));
	rd->locations = ids_make(rd, m->n_location);
	for (; !rd->full && t->n_locations < m->n_location; t->n_locations++) {
		read_location(rd, m->location[t->n_locations], &t->locations[t->n_locations]);
		ids_add(rd, &rd->locations, m->location[t->n_locations]->id);
	}
	if (!rd->full)
		ids_finish(rd, &rd->locations);
}

static void read_samples(struct reader *rd, const profile_msg *m)
{
	struct pprof_tables *t = &rd->t;

	t->samples = room(rd, m->n_sample, sizeof(*t->samples));
	t->values = room(rd, m->n_sample, t->n_types * sizeof(*t->values));
	for (; !rd->full && t->n_samples < m->n_sample; t->n_samples++)
		read_sample(rd, m->sample[t->n_samples], &t->samples[t->n_samples],
			    t->values + t->n_samples * t->n_types);
}

static int read_tables(struct reader *rd, profile_msg *m)
{
	void (*const steps[])(struct reader *, const profile_msg *) = {read_named, read_locations,
								       read_samples};

	if (m->n_sample_type > PPROF_TYPES_MAX) {
		rd->why = "it has too many sample types";
		return PPROF_FULL;
	}
	read_head(rd, m);
	for (size_t i = 0; i < array_size(steps) && !rd->full && !rd->why; i++)
		steps[i](rd, m);
	return rd->why ? PPROF_MALFORMED : 0;
}

/* The message's bytes, copied or unzipped. */
static int load(struct reader *rd, const void *data, size_t n, struct buf *ret)
{
	bool zipped = n >= 2 && memcmp(data, "\x1f\x8b", 2) == 0; /* RFC 1952 section 2.3.1 */
	int r = zipped ? gunzip(data, n, ret) : buf_append(ret, data, n);

	if (r == PPROF_MALFORMED)
		rd->why = "its gzip data is damaged or cut short";
	else if (r == PPROF_FULL)
		rd->why = zipped ? "it is too large when unzipped" : "it is too large";
	return r;
}

static int read_bytes(struct reader *rd, const void *data, size_t n, size_t max_bytes)
{
	_cleanup_(buf_deinit) struct buf raw = BUF_INIT(max_bytes);
	ProtobufCAllocator allocator = {msg_alloc, msg_free, rd};
	profile_msg *m;
	int r = load(rd, data, n, &raw);

	if (r)
		return r;
	prepare(rd, &raw);
	m = perftools__profiles__profile__unpack(&allocator, raw.len, (uint8_t *)raw.data);
	buf_deinit(&raw); /* the message has copies */
	if (!m && !rd->full)
		malformed(rd, "it is no message of protobuf, or a damaged one");
	r = m ? read_tables(rd, m) : rd->why ? PPROF_MALFORMED : 0;
	if (!rd->full)
		return r;
	rd->why = "its tables would take too much memory";
	return rd->full < 0 ? rd->full : PPROF_FULL;
}

int reader_new(const void *data, size_t n, size_t max_bytes, struct reader **ret,
	       const char **ret_why)
{
	_cleanup_(reader_freep) struct reader *rd = calloc(1, sizeof(*rd));
	int r;

	if (!rd)
		return -ENOMEM;
	arena_init(&rd->arena, MEMORY_MIN + max_bytes * READER_MEMORY_FACTOR);
	r = read_bytes(rd, data, n, max_bytes);
	if (r > 0)
		*ret_why = rd->why;
	if (!r)
		*ret = take_ptr(rd);
	return r;
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
