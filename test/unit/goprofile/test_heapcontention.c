// SPDX-License-Identifier: Apache-2.0
/* Mutex and block profiles, window after window, of a real process with both profilers on. */
#include "support/test.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/nsec.h"
#include "goprofile/reader.h"
#include "pprof/reader.h"
#include "goprofile/contention.h"
#include "support/gofixture.h"
#include "support/goprocess.h"

#define CONTENTION	  "test/fixtures/go/contention"
#define PROFILE_BYTES_MAX (16u << 20)

static const char *const args[] = {"/dev/null", NULL};

static struct go_profile_reader *open_readers(const struct goprocess *p)
{
	const struct go_profile_reader_opts opts = {
		.proc = &p->proc,
		.kinds = GO_PROFILE_CUMULATIVE,
		.rounds = true,
		.record_bytes = 64u << 20,
		.symbol_bytes = 16u << 20,
	};
	struct go_profile_reader *reader;

	assert_int_equal(go_profile_reader_new(&opts, &reader), 0);
	return reader;
}

/* A window that begins now; the caller frees the result. */
static struct go_profile_target read_window(struct go_profile_reader *reader,
					    const struct goprocess *p)
{
	struct go_profile_target target = {.pid = p->id};

	assert_int_equal(go_profile_reader_read(reader, nsec_boot(), &target), 0);
	go_profile_reader_end_round(reader);
	assert_int_equal(target.n_found, 1);
	return target;
}

struct sums {
	int64_t all;	/* contentions so far */
	int64_t window; /* contentions in this window */
};

static struct sums sum(const struct contentionsnap *snap)
{
	struct sums s = {0};

	assert_non_null(snap);
	for (size_t i = 0; i < snap->n_records; i++) {
		assert_true(snap->records[i].delay_ns >= snap->records[i].before_delay_ns);
		s.all += snap->records[i].contentions;
		s.window += snap->records[i].contentions - snap->records[i].before_contentions;
	}
	return s;
}

/* The sum of an encoded profile. */
static int64_t sum_encoded(struct go_profile_reader *reader, const struct go_profile_target *target,
			   enum go_profile_kind kind, bool delta)
{
	const struct go_profile_report_opts opts = {
		.delta = delta,
		.max_samples = 10000,
		.max_bytes = PROFILE_BYTES_MAX,
	};
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(PROFILE_BYTES_MAX);
	struct go_profile_report_stats stats;
	struct reader *parsed;
	const struct pprof_tables *t;
	const char *why;
	int64_t n = 0;

	assert_int_equal(go_profile_reader_encode(reader, kind, target, 1, &opts, &bytes, &stats),
			 0);
	assert_int_equal(stats.n_left_out, 0);
	assert_int_equal(stats.n_unnamed, 0);
	assert_int_equal(reader_new(bytes.data, bytes.len, PROFILE_BYTES_MAX, &parsed, &why), 0);
	t = reader_tables(parsed);
	assert_int_equal(t->n_types, 2);
	for (size_t i = 0; i < t->n_samples; i++)
		n += t->values[2 * i];
	reader_free(parsed);
	return n;
}

static void windows_add_up(void **state)
{
	const char *gos[GOFIXTURE_GOS_MAX];
	size_t n = gofixture_gos(gos);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		_cleanup_(freep) char *path = gofixture_build(CONTENTION, gos[i], "stripped");
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		int64_t before[GO_PROFILE_KIND_MAX] = {0};
		struct go_profile_reader *reader;

		row_begin(path);
		goprocess_start(&p, path, args, NULL);
		reader = open_readers(&p);
		for (int window = 0; window < 3; window++) {
			struct go_profile_target target = read_window(reader, &p);

			for (int k = GO_PROFILE_MUTEX; k <= GO_PROFILE_BLOCK; k++) {
				struct sums s = sum(target.found[0].snaps[k]);

				/* values from before the first window are not in the window */
				assert_true(s.all > before[k]);
				assert_int_equal(s.window, window ? s.all - before[k] : 0);
				assert_int_equal(sum_encoded(reader, &target, k, false), s.all);
				assert_int_equal(sum_encoded(reader, &target, k, true), s.window);
				before[k] = s.all;
			}
			go_profile_target_deinit(&target);
			goprocess_order(&p, "again");
		}
		go_profile_reader_free(reader);
	}
}

/* Nobody has read the program's own profile, so Go did not measure the length of a tick. */
static void ticks_are_measured(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX];
	struct go_profile_reader *reader;
	struct go_profile_target target;
	const struct contentionsnap *blocks;
	int64_t delay_ns = 0;

	(void)state;
	path = gofixture_build(CONTENTION, gos[gofixture_gos(gos) - 1], "default");
	goprocess_start(&p, path, args, "CONTENTION_UNREAD=1");
	reader = open_readers(&p);
	target = read_window(reader, &p);
	blocks = target.found[0].snaps[GO_PROFILE_BLOCK];
	assert_non_null(blocks);
	assert_true(blocks->measured);
	for (size_t i = 0; i < blocks->n_records; i++)
		delay_ns += blocks->records[i].delay_ns;
	/* the program sleeps for a millisecond with a lock held, a hundred times */
	assert_true(delay_ns > 20 * 1000000ll && delay_ns < 600 * 1000000000ll);
	go_profile_target_deinit(&target);
	go_profile_reader_free(reader);
}

static void off_is_no_profile(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path = NULL;
	const char *gos[GOFIXTURE_GOS_MAX];
	struct go_profile_reader *reader;
	struct go_profile_target target;

	(void)state;
	path = gofixture_build(CONTENTION, gos[gofixture_gos(gos) - 1], "default");
	goprocess_start(&p, path, args, "CONTENTION_RATES=0 0");
	reader = open_readers(&p);
	target = read_window(reader, &p);
	assert_non_null(target.found[0].snaps[GO_PROFILE_HEAP]);
	assert_null(target.found[0].snaps[GO_PROFILE_MUTEX]);
	assert_null(target.found[0].snaps[GO_PROFILE_BLOCK]);
	go_profile_target_deinit(&target);
	go_profile_reader_free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_add_up),
		cmocka_unit_test(ticks_are_measured),
		cmocka_unit_test(off_is_no_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
