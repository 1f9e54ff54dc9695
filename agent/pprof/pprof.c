// SPDX-License-Identifier: Apache-2.0
/*
 * The builder. Every row is entered by its bytes: strings as text, other rows as arrays of numbers.
 * One table of interned keys therefore serves all kinds, and the key's copy is the row's own
 * storage (a sample's locations, a location's lines).
 *
 * The builder tracks an upper bound of the message's size, because a backend refuses an oversized
 * profile completely. Leaving out and counting the last stacks is better.
 *
 * Not written: is_folded, drop_frames, keep_frames.
 */
#include "pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "pprof/tables.h"
#include "pprof/wire.h"
#include "version.h"

/* Memory of all keys for each byte of the message: an entry of the hash is 70 bytes and a location
 * in a sample 4, where the message may need 1. Never reached before the message's ceiling. */
#define ARENA_FACTOR 48
#define ARENA_MIN    (1u << 20)
/* The key of the largest sample or location. Reached: -. */
#define KEY_MAX                                                   \
	(16 + PPROF_LABELS_MAX * sizeof(struct pprof_label_row) + \
	 PPROF_LINES_MAX * sizeof(struct pprof_line) + PPROF_DEPTH_MAX * sizeof(uint32_t))
/* A file takes whole blocks of this, and gzip's head, end and two blocks without compression take
 * 28 bytes of the first. */
#define DISK_BLOCK_BYTES 4096u
#define GZIP_BYTES	 28u

struct pprof {
	struct pprof_tables t;
	size_t cap_strings, cap_mappings, cap_functions, cap_locations;
	size_t cap_samples, cap_values, cap_comments;
	struct intern strings, mappings, functions, locations, samples;
	struct arena arena;
	struct buf key; /* scratch */
	size_t bytes;
	size_t max_bytes;
	size_t max_samples;
	bool keeps_rest; /* the room for pprof_rest() is above these two */
	bool for_disk;
};

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);

static size_t varint_size(uint64_t value)
{
	return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

/* Size of a length-delimited field of @n bytes with its tag. */
static size_t field_size(size_t n)
{
	return 1 + varint_size(n) + n;
}

static int full(int r)
{
	return r < 0 ? r : r > 0 ? PPROF_FULL : 0;
}

/* Whether @n more bytes of message may come. */
static int bytes_fit(const struct pprof *p, size_t n)
{
	return n > p->max_bytes - p->bytes ? PPROF_FULL : 0;
}

/* ---- strings */

/* @n bytes at most PPROF_STRING_MAX, cut at a character. */
static size_t string_length(const char *s)
{
	size_t n = strnlen(s, PPROF_STRING_MAX + 1);

	if (n > PPROF_STRING_MAX)
		for (n = PPROF_STRING_MAX; n && (s[n] & 0xc0) == 0x80; n--)
			;
	return n;
}

static int string_enter(struct pprof *p, const char *s, size_t n, uint32_t *ret)
{
	uint32_t number = (uint32_t)p->t.n_strings;
	size_t size = field_size(n);
	const void *copy;
	int r;

	r = bytes_fit(p, size);
	if (!r)
		r = vec_grow(&p->t.strings, &p->cap_strings, number + 1, sizeof(*p->t.strings),
			     UINT32_MAX);
	if (!r)
		r = intern_add(&p->strings, &p->arena, s, n, number, &copy);
	if (r)
		return full(r);
	p->t.strings[number] = copy;
	p->t.n_strings++;
	p->bytes += size;
	*ret = number;
	return 0;
}

int pprof_string(struct pprof *p, const char *s, uint32_t *ret)
{
	_cleanup_(freep) char *repaired = NULL;
	uint32_t number;
	size_t n;

	n = s ? string_length(s) : 0;
	if (!n) {
		*ret = 0;
		return 0;
	}
	number = intern_find(&p->strings, s, n);
	if (number) {
		*ret = number;
		return 0;
	}
	if (utf8_is_valid(s, n))
		return string_enter(p, s, n, ret);
	repaired = strview_dup(strview_of_bytes(s, n));
	if (!repaired)
		return -ENOMEM;
	utf8_repair(repaired, n);
	return pprof_string(p, repaired, ret);
}

static int type_number(struct pprof *p, const struct pprof_type *type, struct pprof_type_row *ret)
{
	int r = pprof_string(p, type->type, &ret->type);

	return r ? r : pprof_string(p, type->unit, &ret->unit);
}

/* ---- life */

static int pprof_begin(struct pprof *p, const struct pprof_opts *opts)
{
	int r = vec_grow(&p->t.strings, &p->cap_strings, 1, sizeof(*p->t.strings), UINT32_MAX);

	if (r)
		return full(r);
	p->t.strings[0] = ""; /* not found by its bytes */
	p->t.n_strings = 1;
	for (size_t i = 0; !r && i < opts->n_types; i++)
		r = type_number(p, &opts->types[i], &p->t.types[i]);
	if (!r)
		r = type_number(p, &opts->period_type, &p->t.period_type);
	if (!r)
		r = pprof_string(p, opts->default_type, &p->t.default_type);
	if (!r)
		r = pprof_string(p, opts->doc_url, &p->t.doc_url);
	p->t.n_types = opts->n_types;
	p->t.period = opts->period;
	p->t.time_ns = opts->time_ns;
	p->t.duration_ns = opts->duration_ns;
	p->t.without_zeros = opts->without_zeros;
	return r;
}

/* The head's own fields: a tag and up to 10 bytes for each number. */
#define HEAD_BYTES ((size_t)11 * 16)

static size_t limit(size_t wanted, size_t fallback, size_t max)
{
	if (!wanted)
		return fallback;
	return wanted < max ? wanted : max;
}

int pprof_new(const struct pprof_opts *opts, struct pprof **ret)
{
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	int r;

	if (!opts->n_types || opts->n_types > PPROF_VALUES_MAX || !opts->period_type.type)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->max_samples = limit(opts->max_samples, PPROF_SAMPLES_DEFAULT, PPROF_SAMPLES_MAX);
	p->max_bytes = limit(opts->max_bytes, PPROF_BYTES_DEFAULT, PPROF_BYTES_MAX);
	if (opts->with_rest && p->max_samples > 1 && p->max_bytes > (size_t)2 * PPROF_REST_BYTES) {
		p->keeps_rest = true;
		p->max_samples--;
		p->max_bytes -= PPROF_REST_BYTES;
	}
	p->bytes = HEAD_BYTES < p->max_bytes ? HEAD_BYTES : p->max_bytes;
	p->for_disk = opts->for_disk;
	arena_init(&p->arena, ARENA_MIN + p->max_bytes * ARENA_FACTOR);
	buf_init(&p->key, KEY_MAX);
	r = pprof_begin(p, opts);
	if (r)
		return r;
	*ret = take_ptr(p);
	return 0;
}

void pprof_free(struct pprof *p)
{
	if (!p)
		return;
	intern_deinit(&p->strings);
	intern_deinit(&p->mappings);
	intern_deinit(&p->functions);
	intern_deinit(&p->locations);
	intern_deinit(&p->samples);
	arena_deinit(&p->arena);
	buf_deinit(&p->key);
	free(p->t.strings);
	free(p->t.mappings);
	free(p->t.functions);
	free(p->t.locations);
	free(p->t.samples);
	free(p->t.values);
	free(p->t.comments);
	free(p);
}

/* ---- mappings, functions, locations */

/* The message's size of a mapping: tags and numbers, an upper bound. */
#define MAPPING_BYTES 64u

int pprof_mapping(struct pprof *p, const struct pprof_mapping *mapping, uint32_t *ret)
{
	struct pprof_mapping_row row;
	uint32_t number;
	const void *copy;
	int r;

	memset(&row, 0, sizeof(row)); /* padding is part of the key */
	row.start = mapping->start;
	row.limit = mapping->limit;
	row.offset = mapping->offset;
	row.has_functions = mapping->has_functions;
	row.has_filenames = mapping->has_filenames;
	row.has_line_numbers = mapping->has_line_numbers;
	row.has_inline_frames = mapping->has_inline_frames;
	r = pprof_string(p, mapping->path, &row.path);
	if (!r)
		r = pprof_string(p, mapping->build_id, &row.build_id);
	if (r)
		return r;
	number = intern_find(&p->mappings, &row, sizeof(row));
	if (!number) {
		number = (uint32_t)p->t.n_mappings + 1;
		r = bytes_fit(p, MAPPING_BYTES);
		if (!r)
			r = vec_grow(&p->t.mappings, &p->cap_mappings, number, sizeof(row),
				     UINT32_MAX - 1);
		if (!r)
			r = intern_add(&p->mappings, &p->arena, &row, sizeof(row), number, &copy);
		if (r)
			return full(r);
		p->t.mappings[p->t.n_mappings++] = row;
		p->bytes += MAPPING_BYTES;
	}
	*ret = number;
	return 0;
}

int pprof_function(struct pprof *p, const char *name, const char *system_name, const char *file,
		   int64_t start_line, uint32_t *ret)
{
	struct pprof_function_row row = {.start_line = start_line};
	uint32_t number;
	const void *copy;
	size_t size;
	int r;

	r = pprof_string(p, name, &row.name);
	if (!r)
		r = pprof_string(p, system_name, &row.system_name);
	if (!r)
		r = pprof_string(p, file, &row.file);
	if (r)
		return r;
	number = intern_find(&p->functions, &row, sizeof(row));
	if (!number) {
		number = (uint32_t)p->t.n_functions + 1;
		size = field_size(5 + varint_size(number) + varint_size(row.name) +
				  varint_size(row.system_name) + varint_size(row.file) +
				  varint_size((uint64_t)start_line));
		r = bytes_fit(p, size);
		if (!r)
			r = vec_grow(&p->t.functions, &p->cap_functions, number, sizeof(row),
				     UINT32_MAX - 1);
		if (!r)
			r = intern_add(&p->functions, &p->arena, &row, sizeof(row), number, &copy);
		if (r)
			return full(r);
		p->t.functions[p->t.n_functions++] = row;
		p->bytes += size;
	}
	*ret = number;
	return 0;
}

/* The head of a location's key; the lines follow. */
struct location_key {
	uint64_t address;
	uint32_t mapping;
	uint32_t n_lines;
};

/* Zeroed bytes at the end of the scratch key. */
static int key_reserve(struct pprof *p, size_t n, void *ret_piece)
{
	char *to;
	int r = buf_reserve(&p->key, n, &to);

	if (r)
		return full(r);
	memset(to, 0, n);
	p->key.len += n;
	memcpy(ret_piece, &to, sizeof(to));
	return 0;
}

static int location_key(struct pprof *p, uint32_t mapping, uint64_t address,
			const struct pprof_line *lines, size_t n_lines, size_t *ret_size)
{
	struct location_key *head;
	struct pprof_line *copy;
	size_t size =
		3 + varint_size(p->t.n_locations + 1) + varint_size(mapping) + varint_size(address);
	int r;

	buf_reset(&p->key);
	r = key_reserve(p, sizeof(*head) + n_lines * sizeof(*copy), &head);
	if (r)
		return r;
	*head = (struct location_key){address, mapping, (uint32_t)n_lines};
	copy = (struct pprof_line *)(void *)(head + 1);
	for (size_t i = 0; i < n_lines; i++) {
		copy[i].function = lines[i].function;
		copy[i].column = lines[i].column;
		copy[i].line = lines[i].line;
		size += field_size(3 + varint_size(lines[i].function) +
				   varint_size((uint64_t)lines[i].line) +
				   varint_size(lines[i].column));
	}
	*ret_size = field_size(size);
	return 0;
}

static int location_enter(struct pprof *p, size_t size, uint32_t *ret)
{
	uint32_t number = (uint32_t)p->t.n_locations + 1;
	const struct location_key *key;
	const void *copy;
	int r;

	r = bytes_fit(p, size);
	if (!r)
		r = vec_grow(&p->t.locations, &p->cap_locations, number, sizeof(*p->t.locations),
			     UINT32_MAX - 1);
	if (!r)
		r = intern_add(&p->locations, &p->arena, p->key.data, p->key.len, number, &copy);
	if (r)
		return full(r);
	key = copy;
	p->t.locations[p->t.n_locations++] = (struct pprof_location_row){
		.address = key->address,
		.mapping = key->mapping,
		.n_lines = key->n_lines,
		.lines = (const struct pprof_line *)(const void *)(key + 1),
	};
	p->bytes += size;
	*ret = number;
	return 0;
}

int pprof_location(struct pprof *p, uint32_t mapping, uint64_t address,
		   const struct pprof_line *lines, size_t n_lines, uint32_t *ret)
{
	uint32_t number;
	size_t size;
	int r;

	if (mapping > p->t.n_mappings)
		return -EINVAL;
	for (size_t i = 0; i < n_lines; i++)
		if (!lines[i].function || lines[i].function > p->t.n_functions)
			return -EINVAL;
	if (n_lines > PPROF_LINES_MAX)
		return PPROF_FULL;
	r = location_key(p, mapping, address, lines, n_lines, &size);
	if (r)
		return r;
	number = intern_find(&p->locations, p->key.data, p->key.len);
	if (!number)
		return location_enter(p, size, ret);
	*ret = number;
	return 0;
}

/* ---- samples */

/* The head of a sample's key; labels follow, then locations. */
struct sample_key {
	uint32_t n_labels;
	uint32_t n_locations;
};

static int labels_key(struct pprof *p, const struct pprof_label *labels, size_t n_labels,
		      struct pprof_label_row *rows, size_t *size)
{
	for (size_t i = 0; i < n_labels; i++) {
		struct pprof_label_row *row = &rows[i];
		int r = pprof_string(p, labels[i].key, &row->key);

		if (!r)
			r = pprof_string(p, labels[i].str, &row->str);
		if (!r)
			r = pprof_string(p, labels[i].unit, &row->unit);
		if (r)
			return r;
		row->num = labels[i].str ? 0 : labels[i].num;
		*size += field_size(4 + varint_size(row->key) + varint_size(row->str) +
				    varint_size(row->unit) + varint_size((uint64_t)row->num));
	}
	return 0;
}

static int sample_key(struct pprof *p, const uint32_t *locations, size_t n_locations,
		      const struct pprof_label *labels, size_t n_labels, size_t *ret_size)
{
	struct pprof_label_row *rows;
	struct sample_key *head;
	uint32_t *copy;
	/* a value grows with further equal samples: 10 bytes each, the maximum */
	size_t values = field_size(10 * p->t.n_types), ids = 0, size = 0;
	int r;

	buf_reset(&p->key);
	r = key_reserve(p, sizeof(*head) + n_labels * sizeof(*rows) + n_locations * sizeof(*copy),
			&head);
	if (r)
		return r;
	*head = (struct sample_key){(uint32_t)n_labels, (uint32_t)n_locations};
	rows = (struct pprof_label_row *)(void *)(head + 1);
	r = labels_key(p, labels, n_labels, rows, &size);
	if (r)
		return r;
	copy = (uint32_t *)(void *)(rows + n_labels);
	for (size_t i = 0; i < n_locations; i++) {
		copy[i] = locations[i];
		ids += varint_size(locations[i]);
	}
	*ret_size = field_size(size + values + field_size(ids));
	return 0;
}

static int sample_enter(struct pprof *p, size_t size, const int64_t *values)
{
	size_t n = p->t.n_samples, n_types = p->t.n_types;
	const struct sample_key *key;
	struct pprof_sample_row *row;
	const void *copy;
	int r;

	r = bytes_fit(p, size);
	if (!r)
		r = vec_grow(&p->t.samples, &p->cap_samples, n + 1, sizeof(*row), p->max_samples);
	if (!r)
		r = vec_grow(&p->t.values, &p->cap_values, (n + 1) * n_types, sizeof(*p->t.values),
			     p->max_samples * n_types);
	if (!r)
		r = intern_add(&p->samples, &p->arena, p->key.data, p->key.len, (uint32_t)n + 1,
			       &copy);
	if (r)
		return full(r);
	key = copy;
	row = &p->t.samples[n];
	row->n_labels = key->n_labels;
	row->n_locations = key->n_locations;
	row->labels = (const struct pprof_label_row *)(const void *)(key + 1);
	row->locations = (const uint32_t *)(const void *)(row->labels + key->n_labels);
	memcpy(p->t.values + n * n_types, values, n_types * sizeof(*values));
	p->t.n_samples++;
	p->bytes += size;
	return 0;
}

static void sample_add(struct pprof *p, uint32_t number, const int64_t *values)
{
	int64_t *sum = p->t.values + (number - 1) * p->t.n_types;

	for (size_t i = 0; i < p->t.n_types; i++)
		tables_add(&sum[i], values[i]);
}

int pprof_sample(struct pprof *p, const uint32_t *locations, size_t n_locations,
		 const int64_t *values, const struct pprof_label *labels, size_t n_labels)
{
	uint32_t number;
	size_t size;
	int r;

	for (size_t i = 0; i < n_locations; i++)
		if (!locations[i] || locations[i] > p->t.n_locations)
			return -EINVAL;
	if (n_locations > PPROF_DEPTH_MAX || n_labels > PPROF_LABELS_MAX)
		return PPROF_FULL;
	r = sample_key(p, locations, n_locations, labels, n_labels, &size);
	if (r)
		return r;
	number = intern_find(&p->samples, p->key.data, p->key.len);
	if (!number)
		return sample_enter(p, size, values);
	sample_add(p, number, values);
	return 0;
}

/* With a mapping: Pyroscope's symbolizer gives up a profile that has a location without one
 * (pkg/symbolizer/symbolizer.go). */
static int rest_enter(struct pprof *p, const int64_t *values)
{
	static const struct pprof_mapping none = {
		.limit = UINT64_MAX,
		.path = "[podprof]",
		.has_functions = true,
		.has_filenames = true,
		.has_line_numbers = true,
		.has_inline_frames = true,
	};
	struct pprof_line line = {0};
	uint32_t mapping, location;
	int r = pprof_mapping(p, &none, &mapping);

	if (!r)
		r = pprof_function(p, PPROF_REST_NAME, "", "", 0, &line.function);
	if (!r)
		r = pprof_location(p, mapping, 0, &line, 1, &location);
	return r ? r : pprof_sample(p, &location, 1, values, NULL, 0);
}

int pprof_rest(struct pprof *p, const int64_t *values)
{
	bool is_empty = true;

	if (!p->keeps_rest)
		return 0;
	p->keeps_rest = false;
	p->max_samples++;
	p->max_bytes += PPROF_REST_BYTES;
	for (size_t i = 0; i < p->t.n_types; i++)
		is_empty = is_empty && !values[i];
	return is_empty ? 0 : rest_enter(p, values);
}

/* ---- the rest */

const char pprof_producer[] = "podprof " PODPROF_VERSION;

int pprof_comment(struct pprof *p, const char *comment)
{
	uint32_t number = 0;
	size_t size;
	int r;

	r = pprof_string(p, comment, &number);
	if (r)
		return r;
	for (size_t i = 0; i < p->t.n_comments; i++)
		if (p->t.comments[i] == number)
			return 0;
	size = field_size(varint_size(number));
	r = bytes_fit(p, size);
	if (!r)
		r = vec_grow(&p->t.comments, &p->cap_comments, p->t.n_comments + 1,
			     sizeof(*p->t.comments), PPROF_BYTES_MAX);
	if (r)
		return full(r);
	p->t.comments[p->t.n_comments++] = number;
	p->bytes += size;
	return 0;
}

size_t pprof_bytes(const struct pprof *p)
{
	return p->bytes;
}

const struct pprof_tables *pprof_tables(const struct pprof *p)
{
	return &p->t;
}

/* zlib takes 60 % of the CPU time of a profile with three stacks (perf), and saves no disk space
 * there. */
int pprof_encode(const struct pprof *p, struct buf *ret)
{
	const bool fits = p->for_disk && p->bytes <= DISK_BLOCK_BYTES - GZIP_BYTES;

	return wire_encode(&p->t, fits ? WIRE_LEVEL_NONE : WIRE_LEVEL, ret);
}
