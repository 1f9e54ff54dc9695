// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "support/allocfail.h"
#include "support/profiles.h"

#include "base/buf.h"
#include "pprof/projection.h"
#include "pprof/reader.h"

DEFINE_CLEANUP(struct profile *, profile_freep, profile_free);

static struct reader *read_pprof(const void *data, size_t n)
{
	struct reader *r;
	const char *why;

	assert_int_equal(reader_new(data, n, 1u << 20, &r, &why), 0);
	return r;
}

struct row {
	const char *name;
	struct projection projection;
	const char *types; /* of the result, with the default in brackets */
	size_t n_samples;
	int64_t total; /* of the first type */
};

static const struct row rows[] = {
	{"one type without its zeros",
	 {.types = {"cpu"}, .n_types = 1},
	 "[cpu]/nanoseconds ",
	 3,
	 60ll * PROFILE_REAL_PERIOD},
	{"renamed",
	 {.types = {"cpu"}, .names = {"ebpf:cpu"}, .n_types = 1},
	 "ebpf:cpu/nanoseconds ",
	 3,
	 60ll * PROFILE_REAL_PERIOD},
	{"another order",
	 {.types = {"cpu", "samples"}, .n_types = 2},
	 "[cpu]/nanoseconds samples/count ",
	 3,
	 60ll * PROFILE_REAL_PERIOD},
	{"a missing type", {.types = {"none", "samples"}, .n_types = 2}, "samples/count ", 3, 60},
};

static void describe(const struct pprof_tables *t, char *ret, size_t n)
{
	*ret = '\0';
	for (size_t i = 0; i < t->n_types; i++) {
		const struct pprof_type_row *row = &t->types[i];
		const bool main = t->default_type && row->type == t->default_type;
		const size_t len = strlen(ret);

		snprintf(ret + len, n - len, "%s%s%s/%s ", main ? "[" : "", t->strings[row->type],
			 main ? "]" : "", t->strings[row->unit]);
	}
}

static void test_rows(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
	_cleanup_(reader_freep) struct reader *from =
		read_pprof(profile->pprof, profile->pprof_len);

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf out = BUF_INIT(1u << 20);
		_cleanup_(reader_freep) struct reader *to = NULL;
		struct projection projection = rows[i].projection;
		const struct pprof_tables *t;
		char types[128];

		row_begin(rows[i].name);
		projection.time_ns = 5;
		projection.duration_ns = 7;
		assert_int_equal(projection_encode(reader_tables(from), &projection, &out), 0);
		to = read_pprof(out.data, out.len);
		t = reader_tables(to);
		describe(t, types, sizeof(types));
		assert_string_equal(types, rows[i].types);
		assert_int_equal(t->n_samples, rows[i].n_samples);
		assert_int_equal(tables_total(t, 0), rows[i].total);
		assert_int_equal(t->time_ns, 5);
		assert_int_equal(t->duration_ns, 7);
		assert_int_equal(t->period, PROFILE_REAL_PERIOD);
		assert_string_equal(t->strings[t->period_type.type], "cpu");
		assert_int_equal(t->n_locations, 4);
	}
}

/* A sample stays if one of the selected values is not 0. */
static void test_zeros(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_GO_HEAP);
	_cleanup_(reader_freep) struct reader *from =
		read_pprof(profile->pprof, profile->pprof_len);
	static const struct {
		struct projection projection;
		size_t n_samples;
		int64_t total;
	} cases[] = {
		{{.types = {"inuse_objects"}, .n_types = 1}, 2, 12 + 22},
		{{.types = {"inuse_space"}, .n_types = 1}, 2, 13 + 33},
		{{.types = {"inuse_objects", "inuse_space"}, .n_types = 2}, 3, 12 + 22},
		{{.n_types = 0}, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_(buf_deinit) struct buf out = BUF_INIT(1u << 20);
		_cleanup_(reader_freep) struct reader *to = NULL;

		assert_int_equal(projection_encode(reader_tables(from), &cases[i].projection, &out),
				 0);
		to = read_pprof(out.data, out.len);
		assert_int_equal(reader_tables(to)->n_samples, cases[i].n_samples);
		if (cases[i].n_samples)
			assert_int_equal(tables_total(reader_tables(to), 0), cases[i].total);
	}
}

static int project(void *ctx)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(1u << 20);

	return projection_encode(ctx, &rows[1].projection, &out);
}

static void test_no_memory(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
	_cleanup_(reader_freep) struct reader *from =
		read_pprof(profile->pprof, profile->pprof_len);

	(void)state;
	allocfail_each(project, (void *)(uintptr_t)reader_tables(from));
}

static void test_ceiling(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_make_real(PROFILE_CPU);
	_cleanup_(reader_freep) struct reader *from =
		read_pprof(profile->pprof, profile->pprof_len);
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(64);

	(void)state;
	assert_int_equal(projection_encode(reader_tables(from), &rows[0].projection, &out),
			 PPROF_FULL);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
