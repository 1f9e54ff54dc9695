// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/metric.h"
#include "server/exposition.h"
#include "support/allocfail.h"

/* A family with a single sample, and the text in both formats. */
struct sample_row {
	const char *name;
	struct metric_family_desc family;
	struct metric_value value;
	const char *text, *openmetrics;
};

#define LABELS(...)                                           \
	.labels = (const struct metric_label[]){__VA_ARGS__}, \
	.n_labels = array_size(((const struct metric_label[]){__VA_ARGS__}))

static const struct sample_row sample_rows[] = {
	{"counter",
	 {"a_seconds", METRIC_COUNTER, "Help.", "seconds"},
	 {.u = 3, LABELS({"b", "x"})},
	 "# TYPE a_seconds_total counter\n# HELP a_seconds_total Help.\n"
	 "a_seconds_total{b=\"x\"} 3\n",
	 "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Help.\n"
	 "a_seconds_total{b=\"x\"} 3\n# EOF\n"},
	{"gauge",
	 {"a_bytes", METRIC_GAUGE, "Help.", "bytes"},
	 {.u = UINT64_MAX},
	 "# TYPE a_bytes gauge\n# HELP a_bytes Help.\na_bytes 18446744073709551615\n",
	 "# TYPE a_bytes gauge\n# UNIT a_bytes bytes\n# HELP a_bytes Help.\n"
	 "a_bytes 18446744073709551615\n# EOF\n"},
	{"info",
	 {"a", METRIC_INFO, "Help.", NULL},
	 {.u = 1, LABELS({"version", "1"})},
	 "# TYPE a_info gauge\n# HELP a_info Help.\na_info{version=\"1\"} 1\n",
	 "# TYPE a info\n# HELP a Help.\na_info{version=\"1\"} 1\n# EOF\n"},
	{"unit that is not the name's end",
	 {"a_bytesize", METRIC_GAUGE, "Help.", "bytes"},
	 {.u = 0},
	 "# TYPE a_bytesize gauge\n# HELP a_bytesize Help.\na_bytesize 0\n",
	 "# TYPE a_bytesize gauge\n# HELP a_bytesize Help.\na_bytesize 0\n# EOF\n"},
	{"help is escaped",
	 {"a", METRIC_GAUGE, "One \"\\\"\nTwo\xff", NULL},
	 {.u = 0},
	 "# TYPE a gauge\n# HELP a One \"\\\\\"\\nTwo?\na 0\n",
	 "# TYPE a gauge\n# HELP a One \\\"\\\\\\\"\\nTwo?\na 0\n# EOF\n"},
	{"labels are escaped and sorted",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.u = 0, LABELS({"z", "\"\\\n"}, {"b", "\xff\xc3\xa9"}, {"c", ""}, {"d", NULL})},
	 "# TYPE a gauge\n# HELP a \na{b=\"?\xc3\xa9\",z=\"\\\"\\\\\\n\"} 0\n",
	 "# TYPE a gauge\n# HELP a \na{b=\"?\xc3\xa9\",z=\"\\\"\\\\\\n\"} 0\n# EOF\n"},
	{"all digits of a double",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.is_double = 1, .d = 0.1},
	 "# TYPE a gauge\n# HELP a \na 0.10000000000000001\n",
	 "# TYPE a gauge\n# HELP a \na 0.10000000000000001\n# EOF\n"},
	{"minus infinity",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.is_double = 1, .d = -INFINITY},
	 "# TYPE a gauge\n# HELP a \na -Inf\n",
	 "# TYPE a gauge\n# HELP a \na -Inf\n# EOF\n"},
	{"not a number",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.is_double = 1, .d = NAN},
	 "# TYPE a gauge\n# HELP a \na NaN\n",
	 "# TYPE a gauge\n# HELP a \na NaN\n# EOF\n"},
};

static void collect_row(void *ctx, struct metric_sink *sink)
{
	const struct sample_row *row = ctx;

	metric_family(sink, &row->family);
	sink->value(sink, &row->value);
}

static void assert_page(metric_collect_fn collect, const void *ctx, enum accept_format format,
			struct exposition_stats *stats, const char *want)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(EXPOSITION_PAGE_MAX);

	assert_int_equal(metric_list_add(&list, collect, (void *)ctx), 0);
	assert_int_equal(exposition_render(&list, format, stats, &page), 0);
	assert_string_equal(page.data, want);
}

static void test_formats(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(sample_rows); i++) {
		const struct sample_row *row = &sample_rows[i];
		struct exposition_stats stats = {0};

		row_begin(row->name);
		assert_page(collect_row, row, ACCEPT_TEXT, &stats, row->text);
		assert_page(collect_row, row, ACCEPT_OPENMETRICS, &stats, row->openmetrics);
		assert_page(collect_row, row, ACCEPT_OPENMETRICS_01, &stats, row->openmetrics);
		assert_int_equal(stats.samples[EXPOSITION_OK], 3);
	}
}

/* Must not reach the page: on its own it leaves nothing, not even the head of the family. */
struct bad_row {
	const char *name;
	struct metric_family_desc family;
	struct metric_value value;
	enum exposition_outcome outcome;
};

static const struct bad_row bad_rows[] = {
	{"metric's name", {"a-b", METRIC_GAUGE, "", NULL}, {.u = 0}, EXPOSITION_BAD_NAME},
	{"no name", {"", METRIC_GAUGE, "", NULL}, {.u = 0}, EXPOSITION_BAD_NAME},
	{"label's name",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.u = 0, LABELS({"ok", "x"}, {"b\"} 1\nc", "x"})},
	 EXPOSITION_BAD_NAME},
	{"label twice",
	 {"a", METRIC_GAUGE, "", NULL},
	 {.u = 0, LABELS({"b", "x"}, {"c", "x"}, {"b", "y"})},
	 EXPOSITION_BAD_NAME},
	{"counter below zero",
	 {"a", METRIC_COUNTER, "", NULL},
	 {.is_double = 1, .d = -0.5},
	 EXPOSITION_BAD_VALUE},
	{"counter not a number",
	 {"a", METRIC_COUNTER, "", NULL},
	 {.is_double = 1, .d = NAN},
	 EXPOSITION_BAD_VALUE},
	{"endless counter",
	 {"a", METRIC_COUNTER, "", NULL},
	 {.is_double = 1, .d = INFINITY},
	 EXPOSITION_BAD_VALUE},
};

static void collect_bad(void *ctx, struct metric_sink *sink)
{
	const struct bad_row *row = ctx;

	metric_family(sink, &row->family);
	sink->value(sink, &row->value);
}

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bad_rows); i++) {
		struct exposition_stats stats = {0};

		row_begin(bad_rows[i].name);
		assert_page(collect_bad, &bad_rows[i], ACCEPT_OPENMETRICS, &stats, "# EOF\n");
		assert_int_equal(stats.samples[bad_rows[i].outcome], 1);
		assert_int_equal(stats.samples[EXPOSITION_OK], 0);
	}
}

static void collect_mess(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc a = {"a", METRIC_GAUGE, "A.", NULL};
	static const struct metric_family_desc b = {"b", METRIC_GAUGE, "B.", NULL};
	static const struct metric_family_desc empty = {"c", METRIC_GAUGE, "C.", NULL};

	(void)ctx;
	metric_u64(sink, 0, NULL, 0);
	metric_family(sink, &a);
	metric_u64(sink, 1, (const struct metric_label[]){{"x", "1"}, {"y", "2"}}, 2);
	metric_u64(sink, 2, (const struct metric_label[]){{"y", "2"}, {"x", "1"}}, 2);
	metric_u64(sink, 3, (const struct metric_label[]){{"x", "1"}}, 1);
	metric_family(sink, &empty);
	metric_family(sink, &b);
	metric_u64(sink, 4, (const struct metric_label[]){{"x", "1"}}, 1);
	metric_family(sink, &a);
	metric_u64(sink, 5, (const struct metric_label[]){{"x", "5"}}, 1);
}

static void test_mess(void **state)
{
	struct exposition_stats stats = {0};

	(void)state;
	assert_page(collect_mess, NULL, ACCEPT_TEXT, &stats,
		    "# TYPE a gauge\n# HELP a A.\na{x=\"1\",y=\"2\"} 1\na{x=\"1\"} 3\n"
		    "# TYPE b gauge\n# HELP b B.\nb{x=\"1\"} 4\n");
	assert_int_equal(stats.samples[EXPOSITION_OK], 3);
	assert_int_equal(stats.samples[EXPOSITION_DUPLICATE], 1);
	assert_int_equal(stats.samples[EXPOSITION_REOPENED], 1);
	assert_int_equal(stats.samples[EXPOSITION_NO_FAMILY], 1);
}

/* A ceiling of any size: the page ends well and every sample is counted. */
static void test_full(void **state)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};

	(void)state;
	assert_int_equal(metric_list_add(&list, collect_mess, NULL), 0);
	for (size_t max = 6; max < 120; max++) {
		_cleanup_(buf_deinit) struct buf page = BUF_INIT(max);
		struct exposition_stats stats = {0};
		uint64_t total = 0;

		assert_int_equal(exposition_render(&list, ACCEPT_OPENMETRICS, &stats, &page), 0);
		assert_string_equal(page.data + page.len - 6, "# EOF\n");
		assert_true(page.len == 6 || page.data[page.len - 7] == '\n');
		for (int i = 0; i < EXPOSITION_OUTCOME_MAX; i++)
			total += stats.samples[i];
		assert_int_equal(total, 6);
		assert_int_equal(stats.samples[EXPOSITION_PAGE_FULL] == 0,
				 max >= 99 /* the whole page */);
	}
}

static int render(void *ctx)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(EXPOSITION_PAGE_MAX);
	struct exposition_stats stats = {0};
	int r = metric_list_add(&list, collect_mess, ctx);

	return r ? r : exposition_render(&list, ACCEPT_TEXT, &stats, &page);
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(allocfail_survive(render, NULL) > 5);
}

#define MANY 1000

/* One more call of a collector. */
static void collect_call(void *ctx, struct metric_sink *sink)
{
	int *n = ctx;

	metric_family(sink, &(struct metric_family_desc){"call", METRIC_GAUGE, "Call.", NULL});
	metric_u64(sink, (uint64_t)++ * n, NULL, 0);
}

static void collect_part(void *ctx, struct metric_sink *sink, size_t part)
{
	int *n = ctx;

	++*n;
	metric_family(sink, &(struct metric_family_desc){part ? "part_b" : "part_a", METRIC_GAUGE,
							 "Part.", NULL});
	metric_u64(sink, part, NULL, 0);
}

/* A step calls one collector, for one of its parts. */
static void test_slices_of_values(void **state)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(EXPOSITION_PAGE_MAX);
	struct exposition_stats stats = {0};
	struct exposition *page;
	int n = 0, last = 0, r;

	(void)state;
	assert_int_equal(metric_list_add(&list, collect_call, &n), 0);
	assert_int_equal(metric_list_add_parts(&list, collect_part, 2, &n), 0);
	assert_int_equal(exposition_new(&list, ACCEPT_TEXT, &stats, &text, &page), 0);
	do {
		assert_in_range(n, last, last + 1);
		last = n;
		r = exposition_step(page);
	} while (r == EXPOSITION_MORE);
	exposition_free(page);
	assert_int_equal(r, 0);
	assert_string_equal(text.data, "# TYPE call gauge\n# HELP call Call.\ncall 1\n"
				       "# TYPE part_a gauge\n# HELP part_a Part.\npart_a 0\n"
				       "# TYPE part_b gauge\n# HELP part_b Part.\npart_b 1\n");
}

static void collect_many(void *ctx, struct metric_sink *sink)
{
	const int *value = ctx;

	metric_family(sink, &(struct metric_family_desc){"many", METRIC_GAUGE, "Many.", NULL});
	for (int i = 0; i < MANY; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		metric_u64(sink, (uint64_t)*value, &(struct metric_label){"i", text}, 1);
	}
}

/* The values of a family are of one moment, whatever happens between two steps. */
static void test_slices(void **state)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT(EXPOSITION_PAGE_MAX);
	_cleanup_(buf_deinit) struct buf sliced = BUF_INIT(EXPOSITION_PAGE_MAX);
	struct exposition_stats stats = {0};
	struct exposition *page;
	int value = 7, n_steps = 1, r;

	(void)state;
	assert_int_equal(metric_list_add(&list, collect_many, &value), 0);
	assert_int_equal(exposition_render(&list, ACCEPT_OPENMETRICS, &stats, &whole), 0);
	assert_int_equal(exposition_new(&list, ACCEPT_OPENMETRICS, &stats, &sliced, &page), 0);
	assert_int_equal(exposition_step(page), EXPOSITION_MORE);
	value = 8;
	while ((r = exposition_step(page)) == EXPOSITION_MORE)
		n_steps++;
	exposition_free(page);
	assert_int_equal(r, 0);
	assert_in_range(n_steps, MANY / 100, MANY);
	assert_string_equal(sliced.data, whole.data);
	assert_int_equal(stats.samples[EXPOSITION_OK], 2 * MANY);
	buf_reset(&sliced);
	assert_int_equal(exposition_new(&list, ACCEPT_TEXT, &stats, &sliced, &page), 0);
	assert_int_equal(exposition_step(page), EXPOSITION_MORE);
	exposition_free(page); /* in the middle */
	assert_int_equal(sliced.max, EXPOSITION_PAGE_MAX);
}

static void test_stats(void **state)
{
	struct exposition_stats stats = {.samples = {[EXPOSITION_DUPLICATE] = 7}};

	(void)state;
	assert_page(exposition_collect, &stats, ACCEPT_TEXT, &(struct exposition_stats){0},
		    "# TYPE podprof_exposition_samples_total counter\n"
		    "# HELP podprof_exposition_samples_total Samples of this page by outcome; all "
		    "but ok were left out.\n"
		    "podprof_exposition_samples_total{outcome=\"ok\"} 0\n"
		    "podprof_exposition_samples_total{outcome=\"bad_name\"} 0\n"
		    "podprof_exposition_samples_total{outcome=\"bad_value\"} 0\n"
		    "podprof_exposition_samples_total{outcome=\"duplicate\"} 7\n"
		    "podprof_exposition_samples_total{outcome=\"reopened\"} 0\n"
		    "podprof_exposition_samples_total{outcome=\"no_family\"} 0\n"
		    "podprof_exposition_samples_total{outcome=\"page_full\"} 0\n");
}

static void collect_histogram(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"h_seconds", METRIC_HISTOGRAM, "Help.",
							 "seconds"};
	static const double bounds[] = {0.001, 0.5, 10};
	static const uint64_t counts[] = {1, 0, 2, 4};

	(void)ctx;
	metric_histogram(sink, &family, &(struct metric_histogram){bounds, counts, 3, 2.5});
}

/* Buckets are cumulative. */
static void test_histogram(void **state)
{
	static const char head[] = "# TYPE h_seconds histogram\n",
			  unit[] = "# UNIT h_seconds seconds\n",
			  rest[] = "# HELP h_seconds Help.\n"
				   "h_seconds_bucket{le=\"0.001\"} 1\n"
				   "h_seconds_bucket{le=\"0.5\"} 1\n"
				   "h_seconds_bucket{le=\"10.0\"} 3\n"
				   "h_seconds_bucket{le=\"+Inf\"} 7\n"
				   "h_seconds_sum 2.5\n"
				   "h_seconds_count 7\n";
	char expected[1024];

	(void)state;
	for (int openmetrics = 0; openmetrics < 2; openmetrics++) {
		_cleanup_(metric_list_deinit) struct metric_list list = {0};
		_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);
		struct exposition_stats stats = {0};

		assert_int_equal(metric_list_add(&list, collect_histogram, NULL), 0);
		assert_int_equal(exposition_render(&list,
						   openmetrics ? ACCEPT_OPENMETRICS : ACCEPT_TEXT,
						   &stats, &page),
				 0);
		snprintf(expected, sizeof(expected), "%s%s%s%s", head, openmetrics ? unit : "",
			 rest, openmetrics ? "# EOF\n" : "");
		assert_string_equal(page.data, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_mess),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_slices_of_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
