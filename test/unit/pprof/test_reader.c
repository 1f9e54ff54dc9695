// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/root.h"
#include "pprof/pprof.h"
#include "pprof/reader.h"
#include "profile.pb-c.h"
#include "support/allocfail.h"

#define MAX_BYTES (1u << 20)

typedef Perftools__Profiles__Profile profile_msg;

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);

static void profile_msg_freep(profile_msg **m)
{
	if (*m)
		perftools__profiles__profile__free_unpacked(*m, NULL);
}

static void read_file(const char *path, struct buf *b)
{
	_cleanup_(root_deinit) struct root here = ROOT_INIT;

	assert_int_equal(root_open(".", &here), 0);
	assert_int_equal(root_read(&here, path, b), 0);
}

/* A small profile with some of everything. */
static int build(struct pprof **ret)
{
	const struct pprof_opts opts = {
		.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"cpu", "nanoseconds"},
		.period = 100,
		.default_type = "cpu",
		.doc_url = "https://runbook.example",
		.time_ns = 1000,
		.duration_ns = 60,
	};
	const struct pprof_mapping mapping = {.start = 0x1000,
					      .limit = 0x2000,
					      .offset = 0x1000,
					      .path = "/bin/a",
					      .build_id = "ab",
					      .has_functions = true,
					      .has_line_numbers = true};
	const struct pprof_label labels[] = {{.key = "k", .str = "v"},
					     {.key = "n", .num = -3, .unit = "bytes"}};
	const int64_t values[] = {2, -200};
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	struct pprof_line lines[2] = {{.line = 11, .column = 5}, {.line = -12}};
	uint32_t stack[2], map;
	int r;

	r = pprof_new(&opts, &p);
	if (!r)
		r = pprof_mapping(p, &mapping, &map);
	if (!r)
		r = pprof_function(p, "f", "_Z1f", "f.c", 10, &lines[0].function);
	if (!r)
		r = pprof_function(p, "g", "g", "g.c", 20, &lines[1].function);
	if (!r)
		r = pprof_location(p, map, 0x1234, lines, 2, &stack[0]);
	if (!r)
		r = pprof_location(p, 0, 0x99, NULL, 0, &stack[1]);
	if (!r)
		r = pprof_sample(p, stack, 2, values, labels, 2);
	if (!r)
		r = pprof_sample(p, stack + 1, 1, values, NULL, 0);
	if (!r)
		r = pprof_sample(p, NULL, 0, values, NULL, 0);
	if (!r)
		r = pprof_comment(p, "a comment");
	if (!r)
		*ret = take_ptr(p);
	return r;
}

static void check_equal(const struct pprof_tables *a, const struct pprof_tables *b)
{
	assert_int_equal(a->n_types, b->n_types);
	assert_memory_equal(a->types, b->types, a->n_types * sizeof(*a->types));
	assert_memory_equal(&a->period_type, &b->period_type, sizeof(a->period_type));
	assert_int_equal(a->default_type, b->default_type);
	assert_int_equal(a->doc_url, b->doc_url);
	assert_string_equal(b->strings[b->doc_url], "https://runbook.example");
	assert_int_equal(a->period, b->period);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->duration_ns, b->duration_ns);
	assert_int_equal(a->n_strings, b->n_strings);
	for (size_t i = 0; i < a->n_strings; i++)
		assert_string_equal(a->strings[i], b->strings[i]);
	assert_int_equal(a->n_mappings, b->n_mappings);
	assert_memory_equal(a->mappings, b->mappings, a->n_mappings * sizeof(*a->mappings));
	assert_int_equal(a->n_functions, b->n_functions);
	assert_memory_equal(a->functions, b->functions, a->n_functions * sizeof(*a->functions));
	assert_int_equal(a->n_comments, b->n_comments);
	assert_memory_equal(a->comments, b->comments, a->n_comments * sizeof(*a->comments));
}

static void check_equal_stacks(const struct pprof_tables *a, const struct pprof_tables *b)
{
	assert_int_equal(a->n_locations, b->n_locations);
	for (size_t i = 0; i < a->n_locations; i++) {
		const struct pprof_location_row *x = &a->locations[i], *y = &b->locations[i];

		assert_int_equal(x->address, y->address);
		assert_int_equal(x->mapping, y->mapping);
		assert_int_equal(x->n_lines, y->n_lines);
		for (size_t j = 0; j < x->n_lines; j++) {
			assert_int_equal(x->lines[j].function, y->lines[j].function);
			assert_int_equal(x->lines[j].line, y->lines[j].line);
			assert_int_equal(x->lines[j].column, y->lines[j].column);
		}
	}
	assert_int_equal(a->n_samples, b->n_samples);
	assert_memory_equal(a->values, b->values, a->n_samples * a->n_types * sizeof(*a->values));
	for (size_t i = 0; i < a->n_samples; i++) {
		const struct pprof_sample_row *x = &a->samples[i], *y = &b->samples[i];

		assert_int_equal(x->n_locations, y->n_locations);
		assert_int_equal(x->n_labels, y->n_labels);
		if (x->n_locations)
			assert_memory_equal(x->locations, y->locations,
					    x->n_locations * sizeof(*x->locations));
		if (x->n_labels)
			assert_memory_equal(x->labels, y->labels, x->n_labels * sizeof(*x->labels));
	}
}

static void test_round_trip(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	_cleanup_(reader_freep) struct reader *rd = NULL;
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(MAX_BYTES);
	const char *why = NULL;

	(void)state;
	assert_int_equal(build(&p), 0);
	assert_int_equal(pprof_encode(p, &gz), 0);
	assert_int_equal(reader_new(gz.data, gz.len, MAX_BYTES, &rd, &why), 0);
	check_equal(pprof_tables(p), reader_tables(rd));
	check_equal_stacks(pprof_tables(p), reader_tables(rd));
}

/* ---- broken profiles */

/* The small profile as protobuf-c's tree, to break in one place. */
static profile_msg *build_message(void)
{
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(MAX_BYTES);
	unsigned char raw[4096];
	z_stream z = {.next_out = raw, .avail_out = sizeof(raw)};
	profile_msg *m;

	assert_int_equal(build(&p), 0);
	assert_int_equal(pprof_encode(p, &gz), 0);
	z.next_in = (Bytef *)gz.data;
	z.avail_in = (uInt)gz.len;
	assert_int_equal(inflateInit2(&z, 16 + 15), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	m = perftools__profiles__profile__unpack(NULL, sizeof(raw) - z.avail_out, raw);
	inflateEnd(&z);
	assert_non_null(m);
	return m;
}

static void break_nothing(profile_msg *m)
{
	(void)m;
}

/* Ids other than 1, 2, ..., all consistent. */
static void break_id_order(profile_msg *m)
{
	m->mapping[0]->id = m->location[0]->mapping_id = UINT64_MAX;
	m->function[0]->id = m->location[0]->line[0]->function_id = 77;
	m->function[1]->id = m->location[0]->line[1]->function_id = 5;
	m->location[0]->id = m->sample[0]->location_id[0] = 1ull << 40;
	m->location[1]->id = m->sample[0]->location_id[1] = m->sample[1]->location_id[0] = 1;
}

static void break_time(profile_msg *m)
{
	m->time_nanos = 0;
}

static void break_string_0(profile_msg *m)
{
	char *first = m->string_table[0];

	m->string_table[0] = m->string_table[1];
	m->string_table[1] = first;
}

static void break_mapping_id_0(profile_msg *m)
{
	m->mapping[0]->id = 0;
}

static void break_function_id_0(profile_msg *m)
{
	m->function[0]->id = 0;
}

static void break_location_id_0(profile_msg *m)
{
	m->location[0]->id = 0;
}

static void break_function_twice(profile_msg *m)
{
	m->function[1]->id = m->function[0]->id;
}

static void break_location_twice(profile_msg *m)
{
	m->location[1]->id = m->location[0]->id;
}

static void break_sample_location(profile_msg *m)
{
	m->sample[0]->location_id[1] = 3;
}

static void break_sample_location_0(profile_msg *m)
{
	m->sample[0]->location_id[1] = 0;
}

static void break_location_mapping(profile_msg *m)
{
	m->location[0]->mapping_id = 2;
}

static void break_line_function(profile_msg *m)
{
	m->location[0]->line[1]->function_id = 3;
}

static void break_line_function_0(profile_msg *m)
{
	m->location[0]->line[1]->function_id = 0;
}

static void break_function_name(profile_msg *m)
{
	m->function[0]->name = (int64_t)m->n_string_table;
}

static void break_negative_string(profile_msg *m)
{
	m->mapping[0]->filename = -1;
}

static void break_label_key(profile_msg *m)
{
	m->sample[0]->label[0]->key = 1000;
}

static void break_type(profile_msg *m)
{
	m->sample_type[0]->unit = 1000;
}

static void break_comment(profile_msg *m)
{
	m->comment[0] = 1000;
}

static void break_doc_url(profile_msg *m)
{
	m->doc_url = 1000;
}

static void break_few_values(profile_msg *m)
{
	m->sample[1]->n_value = 1;
}

static void break_more_types(profile_msg *m)
{
	m->sample_type[0]->type = 0;
	m->n_sample_type = 1;
}

struct broken_row {
	const char *name;
	void (*spoil)(profile_msg *m);
	int r;
	const char *why;
};

static const struct broken_row broken_rows[] = {
	{"nothing", break_nothing, PPROF_OK, NULL},
	{"other ids", break_id_order, PPROF_OK, NULL},
	{"no time", break_time, PPROF_OK, NULL},
	{"string 0", break_string_0, PPROF_MALFORMED, "its first string is not empty"},
	{"mapping 0", break_mapping_id_0, PPROF_MALFORMED, "an id is 0"},
	{"function 0", break_function_id_0, PPROF_MALFORMED, "an id is 0"},
	{"location 0", break_location_id_0, PPROF_MALFORMED, "an id is 0"},
	{"function twice", break_function_twice, PPROF_MALFORMED, "an id is there twice"},
	{"location twice", break_location_twice, PPROF_MALFORMED, "an id is there twice"},
	{"no location", break_sample_location, PPROF_MALFORMED, "a sample names no location"},
	{"location 0", break_sample_location_0, PPROF_MALFORMED, "a sample names no location"},
	{"no mapping", break_location_mapping, PPROF_MALFORMED, "a location names no mapping"},
	{"no function", break_line_function, PPROF_MALFORMED, "a line names no function"},
	{"function 0", break_line_function_0, PPROF_MALFORMED, "a line names no function"},
	{"name", break_function_name, PPROF_MALFORMED, "a string's index is out of range"},
	{"negative", break_negative_string, PPROF_MALFORMED, "a string's index is out of range"},
	{"label key", break_label_key, PPROF_MALFORMED, "a string's index is out of range"},
	{"type", break_type, PPROF_MALFORMED, "a string's index is out of range"},
	{"comment", break_comment, PPROF_MALFORMED, "a string's index is out of range"},
	{"doc_url", break_doc_url, PPROF_MALFORMED, "a string's index is out of range"},
	{"few values", break_few_values, PPROF_MALFORMED,
	 "a sample has not one value for each type"},
	{"many values", break_more_types, PPROF_MALFORMED,
	 "a sample has not one value for each type"},
};

static void test_broken(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(broken_rows); i++) {
		const struct broken_row *row = &broken_rows[i];
		profile_msg *m = build_message(), *fresh = build_message();
		_cleanup_(reader_freep) struct reader *rd = NULL;
		_cleanup_(profile_msg_freep) profile_msg *again = NULL;
		const char *why = NULL;
		uint8_t raw[4096];
		size_t n;

		row_begin(row->name);
		row->spoil(m);
		n = perftools__profiles__profile__pack(m, raw);
		/* well-formed for protobuf-c: the contents are wrong */
		again = perftools__profiles__profile__unpack(NULL, n, raw);
		assert_non_null(again);
		assert_int_equal(reader_new(raw, n, MAX_BYTES, &rd, &why), row->r);
		if (row->why)
			assert_string_equal(why, row->why);
		assert_int_equal(rd != NULL, row->r == 0);
		/* restore the shortened arrays, to free them */
		m->n_sample_type = fresh->n_sample_type;
		m->sample[1]->n_value = fresh->sample[1]->n_value;
		perftools__profiles__profile__free_unpacked(m, NULL);
		perftools__profiles__profile__free_unpacked(fresh, NULL);
	}
}

/* ---- bytes */

struct bytes_row {
	const char *name;
	const char *bytes;
	size_t n;
	int r;
	const char *why;
};

#define BYTES(s) s, sizeof(s) - 1

#define NO_MESSAGE "it is no message of protobuf, or a damaged one"

static const struct bytes_row bytes_rows[] = {
	{"empty", BYTES(""), PPROF_MALFORMED, "it has no strings, so it is no profile"},
	{"only string 0", BYTES("\x32\x00"), PPROF_OK, NULL},
	{"unknown fields", BYTES("\x32\x00\xf8\x01\x05\xfa\x01\x02xx\xfd\x01xxxx\xf9\x01xxxxxxxx"),
	 PPROF_OK, NULL},
	{"text", BYTES("--- heapz 1 ---"), PPROF_MALFORMED, NO_MESSAGE},
	{"field 0", BYTES("\x02\x00"), PPROF_MALFORMED, NO_MESSAGE},
	{"a group", BYTES("\x32\x00\xfb\x01\xfc\x01"), PPROF_MALFORMED, NO_MESSAGE},
	{"string leaves", BYTES("\x32\x00\x32\x05xxxx"), PPROF_MALFORMED, NO_MESSAGE},
	{"length of 2^63", BYTES("\x32\x00\x32\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
	 PPROF_MALFORMED, NO_MESSAGE},
	{"time is bytes", BYTES("\x32\x00\x4a\x01x"), PPROF_MALFORMED, NO_MESSAGE},
	{"string is a number", BYTES("\x30\x00"), PPROF_MALFORMED, NO_MESSAGE},
	{"twice a time", BYTES("\x32\x00\x48\x01\x48\x01"), PPROF_MALFORMED,
	 "it is several profiles one after the other"},
	{"times of 0", BYTES("\x32\x00\x48\x00\x48\x01"), PPROF_OK, NULL},
	{"values unpacked", BYTES("\x32\x00\x0a\x00\x0a\x00\x12\x04\x10\x07\x10\x08"), PPROF_OK,
	 NULL},
	{"values packed", BYTES("\x32\x00\x0a\x00\x0a\x00\x12\x04\x12\x02\x07\x08"), PPROF_OK,
	 NULL},
	{"values half and half", BYTES("\x32\x00\x0a\x00\x0a\x00\x12\x05\x12\x01\x07\x10\x08"),
	 PPROF_OK, NULL},
	{"types behind samples", BYTES("\x12\x04\x12\x02\x07\x08\x32\x00\x0a\x00\x0a\x00"),
	 PPROF_OK, NULL},
	{"value does not end", BYTES("\x32\x00\x0a\x00\x12\x04\x12\x02\x07\x88"), PPROF_MALFORMED,
	 NO_MESSAGE},
	{"sample without types", BYTES("\x32\x00\x12\x00"), PPROF_MALFORMED,
	 "a sample has not one value for each type"},
	{"gzip magic only", BYTES("\x1f\x8b"), PPROF_MALFORMED,
	 "its gzip data is damaged or cut short"},
};

static void test_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bytes_rows); i++) {
		const struct bytes_row *row = &bytes_rows[i];
		_cleanup_(reader_freep) struct reader *rd = NULL;
		_cleanup_(freep) char *exact = malloc(row->n ? row->n : 1);
		const char *why = NULL;

		row_begin(row->name);
		memcpy(exact, row->bytes, row->n);
		assert_int_equal(reader_new(exact, row->n, MAX_BYTES, &rd, &why), row->r);
		if (row->why)
			assert_string_equal(why, row->why);
		if (rd && reader_tables(rd)->n_samples) {
			assert_int_equal(reader_tables(rd)->values[0], 7);
			assert_int_equal(reader_tables(rd)->values[1], 8);
		}
	}
}

static void test_strings_are_repaired(void **state)
{
	static const char bytes[] = "\x32\x00\x32\x03x\x00y\x32\x02\xff\xc3\x32\x02\xc3\xa9";
	_cleanup_(reader_freep) struct reader *rd = NULL;
	const char *why = NULL;

	(void)state;
	assert_int_equal(reader_new(bytes, sizeof(bytes) - 1, MAX_BYTES, &rd, &why), 0);
	assert_int_equal(reader_tables(rd)->n_strings, 4);
	assert_string_equal(reader_tables(rd)->strings[1], "x?y");
	assert_string_equal(reader_tables(rd)->strings[2], "??");
	assert_string_equal(reader_tables(rd)->strings[3], "\xc3\xa9");
}

/* ---- gzip and ceilings */

static void zip(const void *data, size_t n, struct buf *ret)
{
	size_t room = n + 1024;
	z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)n};
	char *to;

	assert_int_equal(buf_reserve(ret, room, &to), 0);
	z.next_out = (Bytef *)to;
	z.avail_out = (uInt)room;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + 15, 8, 0), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	ret->len += room - z.avail_out;
	deflateEnd(&z);
}

static int read_all(const struct buf *b, size_t max, const char **why)
{
	_cleanup_(reader_freep) struct reader *rd = NULL;

	return reader_new(b->data, b->len, max, &rd, why);
}

static void test_gzip(void **state)
{
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT(MAX_BYTES);
	_cleanup_(buf_deinit) struct buf two = BUF_INIT(MAX_BYTES);
	const char *why = NULL;

	(void)state;
	read_file("test/data/pprof/go_heap.pb.gz", &whole);
	for (size_t n = 2; n < whole.len; n += 7) {
		struct buf part = {.data = whole.data, .len = n};

		assert_int_equal(read_all(&part, MAX_BYTES, &why), PPROF_MALFORMED);
	}
	whole.data[whole.len - 5] ^= 1; /* the checksum */
	assert_int_equal(read_all(&whole, MAX_BYTES, &why), PPROF_MALFORMED);
	whole.data[whole.len - 5] ^= 1;
	assert_int_equal(buf_putc(&whole, 'x'), 0);
	assert_int_equal(read_all(&whole, MAX_BYTES, &why), PPROF_MALFORMED);
	assert_string_equal(why, "its gzip data is damaged or cut short");

	/* one message in two gzip members */
	zip("\x32\x00\x32", 3, &two);
	zip("\x01x", 2, &two);
	assert_int_equal(read_all(&two, MAX_BYTES, &why), 0);
}

static void test_bomb(void **state)
{
	size_t size = 64u << 20;
	_cleanup_(freep) char *zeroes = calloc(1, size);
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(size + 4096);
	const char *why = NULL;

	(void)state;
	zip(zeroes, size, &gz);
	assert_in_range(gz.len, 1, 100000);
	assert_int_equal(read_all(&gz, MAX_BYTES, &why), PPROF_FULL);
	assert_string_equal(why, "it is too large when unzipped");
}

/* The smallest parts of a message need more memory than real parts. */
static void test_many_small_parts(void **state)
{
	static const char *const parts[] = {"\x12\x00", "\x22\x00", "\x1a\x00", "\x2a\x00"};
	const char *why = NULL;

	(void)state;
	for (size_t i = 0; i < array_size(parts); i++) {
		_cleanup_(buf_deinit) struct buf raw = BUF_INIT(MAX_BYTES);

		assert_int_equal(buf_append(&raw, "\x32\x00", 2), 0);
		while (raw.len < MAX_BYTES)
			assert_int_equal(buf_append(&raw, parts[i], 2), 0);
		assert_int_equal(read_all(&raw, MAX_BYTES, &why), PPROF_FULL);
		assert_string_equal(why, "its tables would take too much memory");
	}
}

static void test_ceiling(void **state)
{
	_cleanup_(buf_deinit) struct buf raw = BUF_INIT(MAX_BYTES);
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(MAX_BYTES);
	const char *why = NULL;

	(void)state;
	assert_int_equal(buf_append(&raw, "\x32\x00", 2), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_append(&raw, "\x32\x01x", 3), 0);
	zip(raw.data, raw.len, &gz);
	assert_int_equal(read_all(&raw, raw.len, &why), 0);
	assert_int_equal(read_all(&gz, raw.len, &why), 0);
	assert_int_equal(read_all(&raw, raw.len - 1, &why), PPROF_FULL);
	assert_string_equal(why, "it is too large");
	assert_int_equal(read_all(&gz, raw.len - 1, &why), PPROF_FULL);
	assert_string_equal(why, "it is too large when unzipped");
}

/* ---- Go's own profiles; the numbers are from "go tool pprof -raw" */

struct go_row {
	const char *path;
	const char *types[4];
	const char *period_type;
	const char *default_type;
	size_t n_samples;
	int64_t total; /* of the last type */
};

static const struct go_row go_rows[] = {
	{"go_cpu", {"samples", "cpu"}, "cpu", "", 10, 800000000},
	{"go_heap",
	 {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
	 "space",
	 "",
	 70,
	 519925},
	{"go_mutex", {"contentions", "delay"}, "contentions", "", 1, 257580486},
	{"go_block", {"contentions", "delay"}, "contentions", "", 4, 347331637},
	{"go_goroutine", {"goroutine"}, "goroutine", "", 1, 1},
	{"go_empty", {"empty"}, "empty", "", 0, 0},
};

static void test_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(go_rows); i++) {
		const struct go_row *row = &go_rows[i];
		_cleanup_(buf_deinit) struct buf file = BUF_INIT(MAX_BYTES);
		_cleanup_(reader_freep) struct reader *rd = NULL;
		const struct pprof_tables *t;
		const char *why = NULL;
		char path[64];
		int64_t total = 0;

		row_begin(row->path);
		snprintf(path, sizeof(path), "test/data/pprof/%s.pb.gz", row->path);
		read_file(path, &file);
		assert_int_equal(reader_new(file.data, file.len, MAX_BYTES, &rd, &why), 0);
		t = reader_tables(rd);
		for (size_t j = 0; j < 4 && row->types[j]; j++) {
			assert_in_range(t->n_types, j + 1, 4);
			assert_string_equal(t->strings[t->types[j].type], row->types[j]);
		}
		assert_string_equal(t->strings[t->period_type.type], row->period_type);
		assert_string_equal(t->strings[t->default_type], row->default_type);
		for (size_t j = 0; j < t->n_samples; j++)
			total += t->values[(j + 1) * t->n_types - 1];
		assert_int_equal(t->n_samples, row->n_samples);
		assert_int_equal(total, row->total);
	}
}

/* ---- memory */

static int build_and_encode(void *ctx)
{
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(MAX_BYTES);
	int r = build(&p);

	(void)ctx;
	return r ? r : pprof_encode(p, &gz);
}

static int read_only(void *ctx)
{
	const char *why = NULL;

	return read_all(ctx, MAX_BYTES, &why);
}

static void test_without_memory(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(MAX_BYTES);

	(void)state;
	read_file("test/data/pprof/go_cpu.pb.gz", &file);
	assert_in_range(allocfail_each(build_and_encode, NULL), 10, 1000);
	assert_in_range(allocfail_each(read_only, &file), 3, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_strings_are_repaired),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_many_small_parts),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
