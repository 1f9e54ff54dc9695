// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>

#include "base/buf.h"
#include "export/destination.h"
#include "export/profile.h"
#include "export/rewrite.h"
#include "pprof/pprof.h"
#include "pprof/reader.h"
#include "pprof/tables.h"
#include "support/allocfail.h"

#define BYTES_MAX (1u << 20)

static const struct rewrite whole_mappings = {.placeholders = true, .whole_mappings = true};
static const struct rewrite placeholders = {.placeholders = true};
static const struct rewrite threads = {.thread_names = true};

struct place_row {
	const char *name; /* of the function; NULL: no line */
	const char *file;
	const char *build_id;
	bool has_functions;
	bool inlined; /* a second line */
	bool stays;
};

static const struct place_row place_rows[] = {
	{"libx.so+0x12af", "", "abcd", false, false, false},
	{"a+b.so+0x0", "", "abcd", false, false, false},
	/* names */
	{"main", "", "abcd", false, false, true},
	{"operator+", "", "abcd", false, false, true},
	{"libx.so+0x12af", "x.c", "abcd", false, false, true},
	{"libx.so+0x12ag", "", "abcd", false, false, true},
	{"libx.so+0x", "", "abcd", false, false, true},
	{"+0x12", "", "abcd", false, false, true},
	{"libx.so+12", "", "abcd", false, false, true},
	{"libx.so+0x12", "", "abcd", false, true, true},
	/* no server can name these */
	{"libx.so+0x12af", "", "", false, false, true},
	{"libx.so+0x12af", "", "abcd", true, false, true},
	{NULL, "", "abcd", false, false, true},
};

static struct pprof *make(const struct place_row *rows, size_t n)
{
	static const struct pprof_opts opts = {.types = {{"samples", "count"}},
					       .n_types = 1,
					       .period_type = {"cpu", "nanoseconds"}};
	struct pprof *p;

	assert_int_equal(pprof_new(&opts, &p), 0);
	for (size_t i = 0; i < n; i++) {
		const struct pprof_mapping mapping = {.start = 0x1000,
						      .limit = UINT64_MAX,
						      .offset = 0x1000,
						      .path = "/lib/x.so",
						      .build_id = rows[i].build_id,
						      .has_functions = rows[i].has_functions};
		struct pprof_line lines[2] = {0};
		const size_t n_lines = !rows[i].name ? 0 : rows[i].inlined ? 2 : 1;
		const int64_t value = (int64_t)i + 1;
		uint32_t map, at;

		assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
		for (size_t k = 0; k < n_lines; k++)
			assert_int_equal(pprof_function(p, rows[i].name, rows[i].name, rows[i].file,
							0, &lines[k].function),
					 0);
		assert_int_equal(pprof_location(p, map, 0x1000 + i, lines, n_lines, &at), 0);
		assert_int_equal(pprof_sample(p, &at, 1, &value, NULL, 0), 0);
	}
	return p;
}

static void encode(const struct place_row *rows, size_t n, struct buf *ret)
{
	struct pprof *p = make(rows, n);

	assert_int_equal(pprof_encode(p, ret), 0);
	pprof_free(p);
}

static void test_places(void **state)
{
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX), after = BUF_INIT(BYTES_MAX);
	_cleanup_(reader_freep) struct reader *reader = NULL;
	const size_t n = array_size(place_rows);
	const struct pprof_tables *t;
	const char *why;

	(void)state;
	encode(place_rows, n, &before);
	assert_int_equal(rewrite_without(&(struct destination_profile){.pprof = before.data,
								       .pprof_len = before.len},
					 &placeholders, &after),
			 0);
	assert_int_equal(reader_new(after.data, after.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(t->n_locations, n);
	assert_int_equal(t->n_samples, n);
	for (size_t i = 0; i < n; i++) {
		const struct place_row *row = &place_rows[i];
		const size_t before_lines = !row->name ? 0 : row->inlined ? 2 : 1;

		row_begin(row->name ? row->name : "no line");
		assert_int_equal(t->locations[i].address, 0x1000 + i);
		assert_int_equal(t->locations[i].n_lines, row->stays ? before_lines : 0);
		assert_true(t->locations[i].mapping);
		assert_int_equal(t->values[i], i + 1);
	}
}

/* Only a mapping with such a frame becomes the whole address space; its other frames stay. */
static void test_whole(void **state)
{
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX), after = BUF_INIT(BYTES_MAX);
	_cleanup_(reader_freep) struct reader *reader = NULL, *old = NULL;
	const size_t n = array_size(place_rows);
	const struct destination_profile *p;
	const struct pprof_tables *t, *was;
	const char *why;

	(void)state;
	encode(place_rows, n, &before);
	p = &(struct destination_profile){.pprof = before.data, .pprof_len = before.len};
	assert_int_equal(rewrite_without(p, &whole_mappings, &after), 0);
	assert_int_equal(reader_new(before.data, before.len, BYTES_MAX, &old, &why), 0);
	assert_int_equal(reader_new(after.data, after.len, BYTES_MAX, &reader, &why), 0);
	was = reader_tables(old);
	t = reader_tables(reader);
	assert_int_equal(t->n_mappings, was->n_mappings);
	for (size_t i = 0; i < n; i++) {
		const struct pprof_mapping_row *now = &t->mappings[t->locations[i].mapping - 1];
		const struct pprof_mapping_row *then =
			&was->mappings[was->locations[i].mapping - 1];
		bool whole = false;

		for (size_t k = 0; k < n; k++)
			whole |= !place_rows[k].stays &&
				 was->locations[k].mapping == was->locations[i].mapping;
		assert_int_equal(now->start, whole ? 0 : then->start);
		assert_int_equal(now->limit, whole ? 0 : then->limit);
		assert_int_equal(now->offset, whole ? 0 : then->offset);
		assert_string_equal(t->strings[now->build_id], was->strings[then->build_id]);
		assert_int_equal(t->locations[i].address, was->locations[i].address);
	}
}

static void test_nothing_to_do(void **state)
{
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX), after = BUF_INIT(BYTES_MAX);
	struct destination_profile p;

	(void)state;
	encode(place_rows + 2, array_size(place_rows) - 2, &before);
	p = (struct destination_profile){.pprof = before.data, .pprof_len = before.len};
	assert_int_equal(rewrite_without(&p, &placeholders, &after), 0);
	assert_int_equal(after.len, 0);
	p.pprof_len /= 2;
	assert_int_equal(rewrite_without(&p, &placeholders, &after), -EBADMSG);
	assert_int_equal(after.len, 0);
}

/* ---------------------------------------------------------------- names of threads */

struct sample_row {
	const char *name;
	uint32_t locations[3];	  /* 0 ends */
	const char *pid, *thread; /* "@" and the name of a task */
	int64_t value;
	size_t want; /* the sample of the result */
};

static const struct sample_row sample_rows[] = {
	{"a name", {1, 2}, NULL, "main", 1, 0},
	{"another", {1, 2}, NULL, "worker", 2, 0},
	{"none", {1, 2}, NULL, NULL, 4, 0},
	{"another stack", {2, 1}, NULL, "main", 8, 1},
	{"a longer one", {1, 2, 1}, NULL, "main", 16, 2},
	{"another label", {1, 2}, "7", "main", 32, 3},
	{"the same label", {1, 2}, "7", "worker", 64, 3},
	{"another value of it", {1, 2}, "8", "worker", 128, 4},
	{"nothing", {0}, NULL, "main", 256, 5},
	{"nothing again", {0}, NULL, "x", 512, 5},
	{"a task", {1, 2}, NULL, "@task", 1024, 0},
};
#define SAMPLES_LEFT 6

static void encode_samples(const struct sample_row *rows, size_t n, struct buf *ret)
{
	static const struct pprof_opts opts = {.types = {{"samples", "count"}, {"cpu", "ns"}},
					       .n_types = 2,
					       .period_type = {"cpu", "ns"}};
	const struct pprof_mapping mapping = {.limit = UINT64_MAX};
	uint32_t map, at[2];
	struct pprof *p;

	assert_int_equal(pprof_new(&opts, &p), 0);
	assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
	for (size_t i = 0; i < array_size(at); i++)
		assert_int_equal(pprof_location(p, map, 0x1000 + i, NULL, 0, &at[i]), 0);
	for (size_t i = 0; i < n; i++) {
		const int64_t values[PPROF_VALUES_MAX] = {rows[i].value, 10 * rows[i].value};
		struct pprof_label labels[2];
		size_t n_labels = 0, k = 0;

		if (rows[i].pid)
			labels[n_labels++] = (struct pprof_label){.key = "pid", .str = rows[i].pid};
		if (rows[i].thread)
			labels[n_labels++] = (struct pprof_label){
				.key = *rows[i].thread == '@' ? PROFILE_TASK : PROFILE_THREAD,
				.str = rows[i].thread};
		while (k < array_size(rows[i].locations) && rows[i].locations[k])
			k++;
		assert_int_equal(pprof_sample(p, rows[i].locations, k, values, labels, n_labels),
				 0);
	}
	assert_int_equal(pprof_encode(p, ret), 0);
	pprof_free(p);
}

static void test_threads(void **state)
{
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX), after = BUF_INIT(BYTES_MAX);
	_cleanup_(reader_freep) struct reader *reader = NULL;
	int64_t sums[SAMPLES_LEFT] = {0};
	const struct pprof_tables *t;
	const char *why;

	(void)state;
	encode_samples(sample_rows, array_size(sample_rows), &before);
	assert_int_equal(rewrite_without(&(struct destination_profile){.pprof = before.data,
								       .pprof_len = before.len},
					 &threads, &after),
			 0);
	assert_int_equal(reader_new(after.data, after.len, BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(t->n_samples, SAMPLES_LEFT);
	for (size_t i = 0; i < array_size(sample_rows); i++) {
		const struct sample_row *row = &sample_rows[i];
		const struct pprof_sample_row *got = &t->samples[row->want];

		row_begin(row->name);
		sums[row->want] += row->value;
		assert_int_equal(got->n_labels, row->pid ? 1 : 0);
		if (row->pid)
			assert_string_equal(t->strings[got->labels[0].str], row->pid);
		for (size_t k = 0; k < got->n_locations; k++)
			assert_int_equal(got->locations[k], row->locations[k]);
	}
	for (size_t i = 0; i < SAMPLES_LEFT; i++) {
		assert_int_equal(t->values[2 * i], sums[i]);
		assert_int_equal(t->values[2 * i + 1], 10 * sums[i]);
	}
}

/* A profile without names stays, byte by byte. */
static void test_no_threads(void **state)
{
	static const struct sample_row rows[] = {{"none", {1, 2}, NULL, NULL, 4, 0},
						 {"another label", {1, 2}, "7", NULL, 32, 1}};
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX), after = BUF_INIT(BYTES_MAX);

	(void)state;
	encode_samples(rows, array_size(rows), &before);
	assert_int_equal(rewrite_without(&(struct destination_profile){.pprof = before.data,
								       .pprof_len = before.len},
					 &threads, &after),
			 0);
	assert_int_equal(after.len, 0);
}

static int rewrite_again(void *ctx)
{
	_cleanup_(buf_deinit) struct buf after = BUF_INIT(BYTES_MAX);

	return rewrite_without(ctx, &(struct rewrite){true, true, true}, &after);
}

static void test_no_memory(void **state)
{
	_cleanup_(buf_deinit) struct buf before = BUF_INIT(BYTES_MAX);
	struct destination_profile p;

	(void)state;
	encode(place_rows, 3, &before);
	p = (struct destination_profile){.pprof = before.data, .pprof_len = before.len};
	allocfail_each(rewrite_again, &p);
	buf_reset(&before);
	encode_samples(sample_rows, array_size(sample_rows), &before);
	p = (struct destination_profile){.pprof = before.data, .pprof_len = before.len};
	allocfail_each(rewrite_again, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	      cmocka_unit_test(test_whole),
		cmocka_unit_test(test_nothing_to_do), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_threads),    cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
