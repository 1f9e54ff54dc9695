// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "pprof/pprof.h"
#include "pprof/tables.h"
#include "profile.pb-c.h"

typedef Perftools__Profiles__Profile profile_msg;

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);

static void profile_msg_freep(profile_msg **m)
{
	if (*m)
		perftools__profiles__profile__free_unpacked(*m, NULL);
}

static const struct pprof_opts cpu_opts = {
	.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
	.n_types = 2,
	.period_type = {"cpu", "nanoseconds"},
	.period = 10309278,
	.time_ns = 1700000000000000000,
	.duration_ns = 60000000000,
};

static struct pprof *make(const struct pprof_opts *opts)
{
	struct pprof *p = NULL;

	assert_int_equal(pprof_new(opts, &p), 0);
	return p;
}

/* protobuf-c's parse of the gunzipped bytes. */
static profile_msg *decode(const struct buf *gz)
{
	size_t max = 8u << 20;
	_cleanup_(freep) unsigned char *raw = malloc(max);
	z_stream z = {.next_in = (Bytef *)gz->data, .avail_in = (uInt)gz->len};
	profile_msg *m;

	z.next_out = raw;
	z.avail_out = (uInt)max;
	assert_int_equal(inflateInit2(&z, 16 + 15), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	m = perftools__profiles__profile__unpack(NULL, max - z.avail_out, raw);
	inflateEnd(&z);
	assert_non_null(m);
	return m;
}

static profile_msg *encode(const struct pprof *p)
{
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(8u << 20);

	assert_int_equal(pprof_encode(p, &gz), 0);
	return decode(&gz);
}

static const char *string(const profile_msg *m, int64_t n)
{
	assert_in_range(n, 0, m->n_string_table - 1);
	return m->string_table[n];
}

static uint32_t function(struct pprof *p, const char *name)
{
	uint32_t number = 0;

	assert_int_equal(pprof_function(p, name, name, "x.c", 1, &number), 0);
	return number;
}

static uint32_t location(struct pprof *p, uint32_t mapping, uint64_t address, const char *name)
{
	struct pprof_line line = {.function = function(p, name), .line = 7};
	uint32_t number = 0;

	assert_int_equal(pprof_location(p, mapping, address, &line, 1, &number), 0);
	return number;
}

static uint32_t mapping(struct pprof *p, const char *path, uint64_t start)
{
	struct pprof_mapping m = {.start = start,
				  .limit = start + 0x1000,
				  .path = path,
				  .build_id = strstr(path, ".so") ? "50" : "abcdef",
				  .has_functions = true};
	uint32_t number = 0;

	assert_int_equal(pprof_mapping(p, &m, &number), 0);
	return number;
}

static void test_head(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;

	(void)state;
	assert_int_equal(pprof_comment(p, "made here"), 0);
	m = encode(p);
	assert_string_equal(m->string_table[0], "");
	assert_int_equal(m->n_sample_type, 2);
	assert_string_equal(string(m, m->sample_type[0]->type), "samples");
	assert_string_equal(string(m, m->sample_type[0]->unit), "count");
	assert_string_equal(string(m, m->sample_type[1]->type), "cpu");
	assert_string_equal(string(m, m->period_type->unit), "nanoseconds");
	assert_int_equal(m->period, 10309278);
	assert_true(m->time_nanos == 1700000000000000000);
	assert_true(m->duration_nanos == 60000000000);
	assert_int_equal(m->n_comment, 1);
	assert_string_equal(string(m, m->comment[0]), "made here");
	assert_int_equal(m->n_sample, 0);
}

static void test_equal_samples_add_up(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	uint32_t map = mapping(p, "/bin/a", 0x1000);
	uint32_t stack[] = {location(p, map, 0x1010, "leaf"), location(p, map, 0x1020, "root")};
	int64_t one[] = {1, 100}, two[] = {2, 200}, most[] = {INT64_MAX, INT64_MIN};
	struct pprof_label label = {.key = "thread", .str = "main"};
	struct pprof_label other = {.key = "thread", .num = 5, .unit = "id"};

	(void)state;
	assert_int_equal(location(p, map, 0x1010, "leaf"), stack[0]);
	assert_int_equal(pprof_sample(p, stack, 2, one, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack, 1, one, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack, 2, two, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack, 2, one, &label, 1), 0);
	assert_int_equal(pprof_sample(p, stack, 2, one, &other, 1), 0);
	assert_int_equal(pprof_sample(p, stack, 2, two, &label, 1), 0);
	assert_int_equal(pprof_sample(p, stack, 1, most, NULL, 0), 0);
	assert_int_equal(pprof_tables(p)->n_samples, 4);
	m = encode(p);
	assert_int_equal(m->n_sample, 4);
	assert_int_equal(m->sample[0]->value[0], 3);
	assert_int_equal(m->sample[0]->value[1], 300);
	assert_true(m->sample[1]->value[0] == INT64_MAX);
	assert_true(m->sample[1]->value[1] == INT64_MIN + 100);
	assert_int_equal(m->sample[2]->value[0], 3);
	assert_string_equal(string(m, m->sample[2]->label[0]->str), "main");
	assert_int_equal(m->sample[3]->label[0]->num, 5);
	assert_string_equal(string(m, m->sample[3]->label[0]->num_unit), "id");
	assert_int_equal(m->sample[3]->label[0]->str, 0);
	assert_int_equal(m->n_location, 2);
	assert_int_equal(m->n_function, 2);
	assert_int_equal(m->sample[0]->n_location_id, 2);
	assert_int_equal(m->sample[0]->location_id[0], stack[0]);
	assert_int_equal(m->location[stack[0] - 1]->address, 0x1010);
}

static void test_inlined_lines(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	struct pprof_line lines[] = {{.function = function(p, "inlined"), .line = 3, .column = 12},
				     {.function = function(p, "caller"), .line = 9}};
	uint32_t a = 0, b = 0;

	(void)state;
	assert_int_equal(pprof_location(p, 0, 5, lines, 2, &a), 0);
	assert_int_equal(pprof_location(p, 0, 5, lines, 1, &b), 0);
	assert_int_not_equal(a, b);
	m = encode(p);
	assert_int_equal(m->location[0]->n_line, 2);
	assert_int_equal(m->location[0]->mapping_id, 0);
	assert_int_equal(m->location[0]->line[1]->function_id, 2);
	assert_int_equal(m->location[0]->line[1]->line, 9);
	assert_int_equal(m->location[0]->line[0]->column, 12);
	assert_int_equal(m->location[0]->line[1]->column, 0);
	assert_string_equal(string(m, m->function[1]->name), "caller");
}

struct main_row {
	const char *name;
	const char *paths[4];
	const char *want[4];
};

static const struct main_row main_rows[] = {
	{"program first", {"/bin/a", "/lib/b.so"}, {"/bin/a", "/lib/b.so"}},
	{"library first", {"/lib/b.so.6", "/bin/a"}, {"/bin/a", "/lib/b.so.6"}},
	{"kernel first",
	 {"[kernel.kallsyms]", "[vdso]", "/a"},
	 {"/a", "[vdso]", "[kernel.kallsyms]"}},
	{"only a library", {"[vdso]", "/b.so"}, {"[vdso]", "/b.so"}},
	{"not a library's name", {"[vdso]", "/x.sound"}, {"/x.sound", "[vdso]"}},
	{"none", {NULL}, {NULL}},
};

static void test_main_mapping(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(main_rows); i++) {
		const struct main_row *row = &main_rows[i];
		_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
		_cleanup_(profile_msg_freep) profile_msg *m = NULL;
		size_t n = 0;

		row_begin(row->name);
		for (; n < 4 && row->paths[n]; n++) {
			uint32_t map = mapping(p, row->paths[n], 0x1000 * (n + 1));

			location(p, map, 0x1000 * (n + 1), row->paths[n]);
		}
		if (!n)
			location(p, 0, 1, "f");
		m = encode(p);
		assert_int_equal(m->n_mapping, n);
		for (size_t j = 0; j < n; j++) {
			assert_int_equal(m->mapping[j]->id, j + 1);
			assert_string_equal(string(m, m->mapping[j]->filename), row->want[j]);
		}
		/* locations followed their mappings */
		for (size_t j = 0; j < m->n_location; j++) {
			uint64_t id = m->location[j]->mapping_id;

			assert_int_equal(id != 0, n != 0);
			if (id)
				assert_int_equal(m->mapping[id - 1]->memory_start,
						 m->location[j]->address);
		}
	}
}

static void test_strings(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	_cleanup_(freep) char *longest = malloc(PPROF_STRING_MAX + 3);
	uint32_t bad, same, cut;

	(void)state;
	memset(longest, 'x', PPROF_STRING_MAX + 2);
	memcpy(longest + PPROF_STRING_MAX - 1, "\xc3\xa9", 2); /* one character beyond the limit */
	longest[PPROF_STRING_MAX + 2] = '\0';
	bad = function(p, "a\xff\xfe");
	same = function(p, "a??");
	cut = function(p, longest);
	assert_int_equal(bad, same);
	m = encode(p);
	assert_string_equal(string(m, m->function[bad - 1]->name), "a??");
	assert_int_equal(strlen(string(m, m->function[cut - 1]->name)), PPROF_STRING_MAX - 1);
}

static void test_wrong_numbers(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	struct pprof_line line = {.function = 1, .line = 1};
	uint32_t zero = 0, one = 1, number = 42;
	int64_t values[] = {1, 1};

	(void)state;
	assert_int_equal(pprof_location(p, 1, 0, NULL, 0, &number), -EINVAL);
	assert_int_equal(pprof_location(p, 0, 0, &line, 1, &number), -EINVAL);
	assert_int_equal(pprof_sample(p, &zero, 1, values, NULL, 0), -EINVAL);
	assert_int_equal(pprof_sample(p, &one, 1, values, NULL, 0), -EINVAL);
	assert_int_equal(number, 42);
}

static void test_bad_opts(void **state)
{
	struct pprof_opts opts = cpu_opts;
	struct pprof *p = NULL;

	(void)state;
	opts.n_types = 0;
	assert_int_equal(pprof_new(&opts, &p), -EINVAL);
	opts.n_types = PPROF_VALUES_MAX + 1;
	assert_int_equal(pprof_new(&opts, &p), -EINVAL);
	opts = cpu_opts;
	opts.period_type.type = NULL;
	assert_int_equal(pprof_new(&opts, &p), -EINVAL);
	opts = cpu_opts;
	opts.max_bytes = 40;
	assert_int_equal(pprof_new(&opts, &p), PPROF_FULL);
	assert_null(p);
}

static void test_ceilings(void **state)
{
	static uint32_t deep[PPROF_DEPTH_MAX + 1];
	static struct pprof_line lines[PPROF_LINES_MAX + 1];
	struct pprof_opts opts = cpu_opts;
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	int64_t values[] = {1, 1};
	uint32_t number;

	(void)state;
	opts.max_samples = 3;
	p = make(&opts);
	for (size_t i = 0; i < array_size(deep); i++)
		deep[i] = location(p, 0, i + 1, "f");
	for (size_t i = 0; i < array_size(lines); i++)
		lines[i].function = 1;
	assert_int_equal(pprof_location(p, 0, 0, lines, PPROF_LINES_MAX, &number), 0);
	assert_int_equal(pprof_location(p, 0, 0, lines, PPROF_LINES_MAX + 1, &number), PPROF_FULL);
	assert_int_equal(pprof_sample(p, deep, PPROF_DEPTH_MAX + 1, values, NULL, 0), PPROF_FULL);
	assert_int_equal(pprof_sample(p, deep, PPROF_DEPTH_MAX, values, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, deep, 1, values, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, deep, 2, values, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, deep, 3, values, NULL, 0), PPROF_FULL);
	assert_int_equal(pprof_sample(p, deep, 2, values, NULL, 0), 0);
	assert_int_equal(pprof_tables(p)->n_samples, 3);
}

/* @max_bytes 0: the default. @n: samples before the rest. */
struct rest_row {
	const char *name;
	size_t max_samples, max_bytes;
	bool with_rest;
	int64_t rest[2];
	size_t n;
	size_t n_written;
	int comment; /* the result of one of 800 bytes */
};

static const struct rest_row rest_rows[] = {
	{"samples without room", 3, 0, true, {5, 7}, 2, 3, 0},
	{"nothing without room", 3, 0, true, {0, 0}, 2, 2, 0},
	{"one value", 3, 0, true, {0, 7}, 2, 3, 0},
	{"not asked for", 3, 0, false, {5, 7}, 3, 3, 0},
	{"one sample", 1, 0, true, {5, 7}, 1, 1, 0},
	{"bytes without room", 1000, 3000, true, {5, 7}, 0, 1, 0},
	{"bytes without room, not asked for", 1000, 3000, false, {5, 7}, 0, 0, PPROF_FULL},
	{"too few bytes", 1000, 2 * PPROF_REST_BYTES, true, {5, 7}, 0, 0, PPROF_FULL},
};

/* Until the profile is full. */
static size_t fill(struct pprof *p)
{
	const int64_t values[] = {1, 2};
	struct pprof_line line = {0};
	uint32_t at;
	char name[64];
	size_t n = 0;

	for (unsigned int i = 0;; i++) {
		snprintf(name, sizeof(name), "a function with a number: %u", i);
		if (pprof_function(p, name, "", "", 0, &line.function) ||
		    pprof_location(p, 0, 0, &line, 1, &at) ||
		    pprof_sample(p, &at, 1, values, NULL, 0))
			return n;
		n++;
	}
}

static void test_rest(void **state)
{
	char comment[801];

	(void)state;
	memset(comment, 'c', 800);
	comment[800] = '\0';
	for (size_t i = 0; i < array_size(rest_rows); i++) {
		const struct rest_row *row = &rest_rows[i];
		_cleanup_(pprof_freep) struct pprof *p = NULL;
		_cleanup_(profile_msg_freep) profile_msg *m = NULL;
		struct pprof_opts opts = cpu_opts;
		size_t n, n_rest;

		row_begin(row->name);
		opts.max_samples = row->max_samples;
		opts.max_bytes = row->max_bytes;
		opts.with_rest = row->with_rest;
		p = make(&opts);
		n = fill(p);
		if (!row->max_bytes)
			assert_int_equal(n, row->n);
		assert_int_equal(pprof_rest(p, row->rest), 0);
		n_rest = pprof_tables(p)->n_samples - n;
		assert_int_equal(n_rest, row->n_written - row->n);
		if (n_rest)
			assert_memory_equal(pprof_tables(p)->values + 2 * n, row->rest,
					    sizeof(row->rest));
		assert_int_equal(pprof_comment(p, comment), row->comment);
		assert_int_equal(pprof_comment(p, comment), row->comment);
		assert_int_equal(pprof_tables(p)->n_comments, row->comment ? 0 : 1);
		if (row->max_bytes)
			assert_true(pprof_bytes(p) <= row->max_bytes);
		m = encode(p);
		assert_int_equal(m->n_sample, n + n_rest);
		assert_int_equal(m->n_mapping, n_rest);
		if (n_rest) /* no location without a mapping, no mapping without functions */
			assert_true(m->location[m->n_location - 1]->mapping_id == 1 &&
				    m->mapping[0]->has_functions);
	}
}

/* The raw bytes stay below the ceiling and below the builder's estimate, and close to both. */
static void test_bytes(void **state)
{
	struct pprof_opts opts = cpu_opts;
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	int64_t values[] = {INT64_MAX, -1};
	uint32_t stack[40];
	char name[64];
	size_t size;
	int r = 0;

	(void)state;
	opts.max_bytes = 200000;
	p = make(&opts);
	for (unsigned int i = 0; !r; i++) {
		struct pprof_label label = {.key = "n", .num = (int64_t)i << 40};
		struct pprof_line line = {.line = -1};

		snprintf(name, sizeof(name), "a function with a number: %u", i);
		r = pprof_function(p, name, name, "file", -1, &line.function);
		if (!r)
			r = pprof_location(p, 0, ~0ull - i, &line, 1, &stack[i % 40]);
		if (!r && i >= 40)
			r = pprof_sample(p, stack, 40, values, &label, 1);
	}
	assert_int_equal(r, PPROF_FULL);
	assert_in_range(pprof_bytes(p), opts.max_bytes - 300, opts.max_bytes);
	m = encode(p);
	size = perftools__profiles__profile__get_packed_size(m);
	assert_in_range(size, opts.max_bytes * 9 / 10, pprof_bytes(p));
}

static void test_encode_ceiling(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT(1u << 20);
	_cleanup_(buf_deinit) struct buf again = BUF_INIT(1u << 20);

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		location(p, mapping(p, "/bin/a", i * 0x1000), i * 0x1000, "f");
	assert_int_equal(pprof_encode(p, &whole), 0);
	for (size_t max = 0; max < whole.len; max += 1 + max / 2) {
		_cleanup_(buf_deinit) struct buf small = BUF_INIT(max);

		assert_int_equal(pprof_encode(p, &small), PPROF_FULL);
		assert_int_equal(small.len, 0);
	}
	{
		_cleanup_(buf_deinit) struct buf exact = BUF_INIT(whole.len);

		assert_int_equal(pprof_encode(p, &exact), 0);
	}
	assert_int_equal(buf_puts(&again, "abc"), 0);
	assert_int_equal(pprof_encode(p, &again), 0);
	assert_memory_equal(again.data, "abc", 3);
	assert_int_equal(again.len, whole.len + 3);
	assert_memory_equal(again.data + 3, whole.data, whole.len);
}

/* ---- Go's reader; the reader runs CheckValid on the input */

static void pclosep(FILE **f)
{
	if (*f)
		pclose(*f);
}

static void fill_for_go(struct pprof *p)
{
	uint32_t libc = mapping(p, "/lib/libc.so.6", 0x7000), app = mapping(p, "/bin/a", 0x1000);
	struct pprof_line lines[] = {{.function = function(p, "inlined"), .line = 3},
				     {.function = function(p, "caller"), .line = 9}};
	const struct pprof_label labels[] = {{.key = "thread", .str = "ma\"in"},
					     {.key = "size", .num = 5, .unit = "bytes"}};
	const int64_t values[] = {2, 20618556}, none[] = {0, -7};
	uint32_t stack[3];

	stack[0] = location(p, libc, 0x7010, "caf\xc3\xa9\xff");
	assert_int_equal(pprof_location(p, app, 0x1010, lines, 2, &stack[1]), 0);
	assert_int_equal(pprof_location(p, 0, 0x99, NULL, 0, &stack[2]), 0);
	assert_int_equal(pprof_sample(p, stack, 3, values, labels, 2), 0);
	assert_int_equal(pprof_sample(p, stack + 1, 2, values, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack + 1, 2, values, NULL, 0), 0);
	assert_int_equal(pprof_sample(p, stack + 2, 1, none, NULL, 0), 0);
	assert_int_equal(pprof_comment(p, "made here"), 0);
}

/* The same profile has the same bytes, also in other memory. */
static void test_same_bytes(void **state)
{
	_cleanup_(pprof_freep) struct pprof *a = make(&cpu_opts), *b = NULL;
	_cleanup_(buf_deinit) struct buf first = BUF_INIT(1u << 20), second = BUF_INIT(1u << 20);

	(void)state;
	fill_for_go(a);
	b = make(&cpu_opts);
	fill_for_go(b);
	assert_int_equal(pprof_encode(a, &first), 0);
	assert_int_equal(pprof_encode(b, &second), 0);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.data, second.data, first.len);
}

/* Joins runs of blanks, and drops the extra columns of newer tools. */
static void append_line(struct buf *b, char *line)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);

	for (; word; word = strtok_r(NULL, " \n", &save)) {
		char *column = strstr(word, ":0");

		if (column && !column[2])
			*column = '\0';
		assert_int_equal(buf_printf(b, "%s ", word), 0);
	}
	assert_int_equal(buf_putc(b, '\n'), 0);
}

static const char go_raw[] = "Comment: made here \n"
			     "PeriodType: cpu nanoseconds \n"
			     "Period: 10309278 \n"
			     "Time: 2023-11-14 22:13:20 +0000 UTC \n"
			     "Duration: 1m0s \n"
			     "Samples: \n"
			     "samples/count cpu/nanoseconds \n"
			     "2 20618556: 1 2 3 \n"
			     "thread:[ma\"in] \n"
			     "size:[5 bytes] \n"
			     "4 41237112: 2 3 \n"
			     "0 -7: 3 \n"
			     "Locations \n"
			     "1: 0x7010 M=2 caf\xc3\xa9? x.c:7 s=1 \n"
			     "2: 0x1010 M=1 inlined x.c:3 s=1 \n"
			     "caller x.c:9 s=1 \n"
			     "3: 0x99 \n"
			     "Mappings \n"
			     "1: 0x1000/0x2000/0x0 /bin/a abcdef [FN] \n"
			     "2: 0x7000/0x8000/0x0 /lib/libc.so.6 50 [FN] \n";

static void test_go_reads_it(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(1u << 20), got = BUF_INIT(1u << 20);
	_cleanup_(pclosep) FILE *raw = NULL;
	char path[] = "/tmp/test_pprof.XXXXXX", command[256], line[1024];
	int fd = mkstemp(path);

	(void)state;
	fill_for_go(p);
	assert_int_equal(pprof_encode(p, &gz), 0);
	assert_int_equal(write(fd, gz.data, gz.len), gz.len);
	close(fd);
	snprintf(command, sizeof(command),
		 "TZ=UTC go tool pprof -symbolize=none -raw %s 2>/dev/null; rm %s", path, path);
	raw = popen(command, "re");
	assert_non_null(raw);
	while (fgets(line, sizeof(line), raw))
		append_line(&got, line);
	assert_string_equal(got.data, go_raw);
}

/* 1,500 stacks of 8 to 71 frames; each function calls a few others. */
static void fill_deep(struct pprof *p)
{
	uint32_t map = mapping(p, "/bin/a", 0x1000), at[600], seed = 1;

	for (uint32_t i = 0; i < array_size(at); i++) {
		char name[64];

		snprintf(name, sizeof(name), "compiler::pass_%u::visit_%u", i % 37, i);
		at[i] = location(p, map, 0x1000 + i * 48, name);
	}
	for (uint32_t i = 0; i < 1500; i++) {
		int64_t values[] = {1 + i % 5, 10309278 * (1 + i % 5)};
		uint32_t stack[71], n = 8 + i % 64, f = 0;

		for (uint32_t j = n; j--; f = (f * 3 + 1 + (seed >> 30)) % array_size(at)) {
			seed = seed * 1664525 + 1013904223;
			stack[j] = at[f];
		}
		assert_int_equal(pprof_sample(p, stack, n, values, NULL, 0), 0);
	}
}

/* Go's encoder has one stream of zlib's default level. */
static void test_smaller_than_one_stream(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(8u << 20);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	_cleanup_(freep) uint8_t *raw = NULL, *stream = NULL;
	uLongf len;
	size_t n;

	(void)state;
	fill_deep(p);
	assert_int_equal(pprof_encode(p, &gz), 0);
	m = decode(&gz);
	n = perftools__profiles__profile__get_packed_size(m);
	len = compressBound(n);
	raw = malloc(n);
	stream = malloc(len);
	perftools__profiles__profile__pack(m, raw);
	assert_int_equal(compress(stream, &len, raw, n), Z_OK);
	print_message("%zu bytes, as one stream %lu\n", gz.len, len);
	assert_true(gz.len <= len);
}

/* Up to a block of a disk, a profile for a disk is in the file as it is. */
static void test_for_disk(void **state)
{
	enum { FITS = 4096 - 28 };
	static const struct {
		bool for_disk;
		size_t bytes;
		bool as_it_is;
	} rows[] = {{true, FITS, true}, {true, FITS + 1, false}, {false, FITS, false}};
	struct pprof_opts opts = cpu_opts;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pprof_freep) struct pprof *p = NULL;
		_cleanup_(buf_deinit) struct buf gz = BUF_INIT(8u << 20);
		_cleanup_(profile_msg_freep) profile_msg *m = NULL;
		_cleanup_(freep) char *text = calloc(1, FITS);
		uint32_t number;

		opts.for_disk = rows[i].for_disk;
		p = make(&opts);
		/* two bytes of length and a tag */
		memset(text, 'a', rows[i].bytes - pprof_bytes(p) - 3);
		assert_int_equal(pprof_string(p, text, &number), 0);
		assert_int_equal(pprof_bytes(p), rows[i].bytes);
		assert_int_equal(pprof_encode(p, &gz), 0);
		assert_true(gz.len <= 4096);
		assert_int_equal(memmem(gz.data, gz.len, text, strlen(text)) != NULL,
				 rows[i].as_it_is);
		m = decode(&gz);
		assert_string_equal(string(m, number), text);
	}
}

/* All comments are one field: a tag for each would be larger than in Go's. */
static void test_comments(void **state)
{
	_cleanup_(pprof_freep) struct pprof *p = make(&cpu_opts);
	_cleanup_(profile_msg_freep) profile_msg *m = NULL;
	static const char *const comments[] = {"a", "b", "c", "a"};

	(void)state;
	for (size_t i = 0; i < array_size(comments); i++)
		assert_int_equal(pprof_comment(p, comments[i]), 0);
	m = encode(p);
	assert_int_equal(m->n_comment, 3);
	for (size_t i = 0; i < m->n_comment; i++)
		assert_string_equal(string(m, m->comment[i]), comments[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_equal_samples_add_up),
		cmocka_unit_test(test_inlined_lines),
		cmocka_unit_test(test_main_mapping),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_wrong_numbers),
		cmocka_unit_test(test_bad_opts),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_encode_ceiling),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_go_reads_it),
		cmocka_unit_test(test_smaller_than_one_stream),
		cmocka_unit_test(test_for_disk),
		cmocka_unit_test(test_comments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
