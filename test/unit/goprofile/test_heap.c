// SPDX-License-Identifier: Apache-2.0
/* Windows, ceilings and memory of a heap report. test_gomatrix checks the values. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "pprof/pprof.h"
#include "pprof/reader.h"
#include "pprof/tables.h"
#include "support/allocfail.h"
#include "support/gofixture.h"
#include "support/heapoutside.h"
#include "support/samelines.h"
#include "version.h"

#define N_VALUES 4

static const char *const types[N_VALUES] = {"alloc_objects", "alloc_space", "inuse_objects",
					    "inuse_space"};

/* ---------------------------------------------------------------- windows */

static void sum_values(const struct buf *bytes, int64_t sums[N_VALUES])
{
	_cleanup_(samelines_deinit) struct samelines l = {0};

	samelines_of(bytes, types, N_VALUES, &l);
	for (size_t i = 0; i < l.n; i++) {
		for (size_t k = 0; k < N_VALUES; k++) {
			assert_true(l.items[i].values[k] >= 0);
			sums[k] += l.items[i].values[k];
		}
		assert_true(l.items[i].values[0] || l.items[i].values[2]);
	}
}

/* One window, and the totals of the same read. */
static void read_window(struct heapoutside *o, bool since_start, int64_t sums[N_VALUES],
			struct goheap_totals *ret_totals)
{
	const struct go_profile_report_opts delta = {.delta = true, .duration_ns = 1};
	_cleanup_(buf_deinit) struct buf window = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	struct go_profile_report_stats stats = {0};

	memset(sums, 0, N_VALUES * sizeof(*sums));
	assert_int_equal(heapoutside_read(o, &delta, since_start, &window, &stats, ret_totals), 0);
	assert_int_equal(stats.n_left_out, 0);
	sum_values(&window, sums);
}

/* The allocations of the windows add up to the total at the end; the first window has none, unless
 * the process began in it. */
static void windows_add_up(void **state)
{
	const char *const args[] = {"/dev/null", "inline", "large", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	for (int since_start = 0; since_start <= 1; since_start++) {
		_cleanup_(heapoutside_deinit) struct heapoutside o = HEAPOUTSIDE_INIT;
		struct goheap_totals before = {0}, after = {0};
		int64_t sums[N_VALUES];

		heapoutside_start(&o, path, args, "HEAP_RATE=4096");
		read_window(&o, since_start, sums, &before);
		assert_int_equal(sums[0], since_start ? before.alloc.objects : 0);
		assert_int_equal(sums[1], since_start ? before.alloc.bytes : 0);
		assert_int_equal(sums[2], before.inuse.objects);
		assert_int_equal(sums[3], before.inuse.bytes);

		goprocess_order(&o.process, "again");
		read_window(&o, since_start, sums, &after);
		assert_int_equal(sums[0], after.alloc.objects - before.alloc.objects);
		assert_int_equal(sums[1], after.alloc.bytes - before.alloc.bytes);
		assert_int_equal(sums[2], after.inuse.objects);
		/* four large objects; Go 1.16 may miss the first after a change of the rate */

		before = after;
		read_window(&o, since_start, sums, &after);
		assert_int_equal(sums[0], after.alloc.objects - before.alloc.objects);
		assert_true(sums[1] < 8 << 20);
	}
}

/* ---------------------------------------------------------------- ceilings, memory */

static void totals_of(const struct buf *out, int64_t sums[N_VALUES])
{
	struct reader *reader;
	const char *why;

	assert_int_equal(reader_new(out->data, out->len, HEAPOUTSIDE_BYTES_MAX, &reader, &why), 0);
	for (size_t i = 0; i < N_VALUES; i++)
		sums[i] = tables_total(reader_tables(reader), i);
	reader_free(reader);
}

/* The records without room are the last sample, so the sums are those of the whole profile. */
static void check_sums(const struct buf *out, size_t n_samples, const int64_t sums[N_VALUES])
{
	struct reader *reader;
	const struct pprof_tables *t;
	const char *why;

	assert_int_equal(reader_new(out->data, out->len, HEAPOUTSIDE_BYTES_MAX, &reader, &why), 0);
	t = reader_tables(reader);
	assert_int_equal(t->n_samples, n_samples);
	assert_string_equal(t->strings[t->functions[t->n_functions - 1].name], PPROF_REST_NAME);
	assert_string_equal(t->strings[t->comments[0]], "podprof " PODPROF_VERSION);
	for (size_t i = 0; i < N_VALUES; i++)
		assert_int_equal(tables_total(t, i), sums[i]);
	reader_free(reader);
}

static void ceilings(void **state)
{
	const struct go_profile_report_opts few = {.max_samples = 3};
	const struct go_profile_report_opts small = {.max_bytes = 3000};
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	_cleanup_(buf_deinit) struct buf tiny = BUF_INIT(100);
	_cleanup_(heapoutside_deinit) struct heapoutside o = HEAPOUTSIDE_INIT;
	const char *const args[] = {"/dev/null", "inline", "tiny", "deep", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};
	struct go_profile_report_stats stats = {0};
	int64_t sums[N_VALUES] = {0};
	struct goheap_totals totals;

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	heapoutside_start(&o, path, args, "HEAP_RATE=4096");
	assert_int_equal(
		heapoutside_read(&o, &heapoutside_cumulative, false, &out, &stats, &totals), 0);
	totals_of(&out, sums);
	buf_reset(&out);
	assert_int_equal(heapoutside_read(&o, &few, false, &out, &stats, &totals), 0);
	assert_true(stats.n_records >= 2);
	assert_true(stats.n_left_out > 0);
	check_sums(&out, 3, sums);
	buf_reset(&out);
	assert_int_equal(heapoutside_read(&o, &small, false, &out, &stats, &totals), 0);
	assert_int_equal(stats.n_records, 0); /* no room for the names */
	assert_true(stats.n_left_out > 0);
	check_sums(&out, 1, sums);
	assert_int_equal(
		heapoutside_read(&o, &heapoutside_cumulative, false, &tiny, &stats, &totals),
		BUF_FULL);
	assert_int_equal(tiny.len, 0);
}

static int report_again(void *ctx)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(HEAPOUTSIDE_BYTES_MAX);
	struct go_profile_report_stats stats = {0};
	struct goheap_totals totals;

	return heapoutside_read(ctx, &heapoutside_cumulative, false, &out, &stats, &totals);
}

static void no_memory(void **state)
{
	_cleanup_(heapoutside_deinit) struct heapoutside o = HEAPOUTSIDE_INIT;
	const char *const args[] = {"/dev/null", "tiny", NULL};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX] = {NULL};

	(void)state;
	gofixture_gos(gos);
	path = gofixture_build("test/fixtures/go/heap", gos[0], "default");
	heapoutside_start(&o, path, args, "HEAP_RATE=4096");
	assert_int_equal(report_again(&o), 0);
	assert_true(allocfail_each(report_again, &o) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_add_up),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
