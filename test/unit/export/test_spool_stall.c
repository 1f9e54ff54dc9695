// SPDX-License-Identifier: Apache-2.0
/* A spool whose directory is not there yet: on a file system that stops answering, or with another
 * process's lock. The loop goes on, profiles are sent from memory, and the spool follows. */
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "support/spooling.h"
#include "support/stalldir.h"
#include "support/threads.h"
#include "support/until.h"

#define LONG_NS	 (120 * NSEC_PER_SEC)
#define TICK_NS	 (5 * NSEC_PER_MSEC)
/* Turns of the loop that a test waits for during a stall. */
#define TICKS	 20
#define PROFILES "podprof_spool_profiles"
#define BACKLOG	 10

struct fixture {
	struct spooling s;
	struct stalldir *disk;
	struct loop_source *tick;
	size_t n_ticks;
	uint64_t want; /* of sent() and is_recovered() */
};

static void on_tick(void *ctx)
{
	struct fixture *f = ctx;

	f->n_ticks++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	spooling_init(&f->s);
	f->disk = stalldir_new(f->s.tree.path);
	f->s.blocked_ns = 100 * NSEC_PER_MSEC;
	f->s.n_urls = 1;
	assert_int_equal(loop_add_timer(f->s.loop, on_tick, f, &f->tick), 0);
	assert_int_equal(loop_arm(f->tick, TICK_NS, TICK_NS), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	spooling_stop(&f->s);
	loop_remove(f->tick);
	threads_wait();
	stalldir_free(f->disk);
	spooling_deinit(&f->s);
	free(f);
	return 0;
}

/* Away for longer than a row takes, then back. */
static struct sink *new_sink(void)
{
	static const struct sink_answer script[] = {{.status = 503, .retry_after = "300"},
						    {.status = 200}};

	return sink_new(script, 2, NULL);
}

static bool has_backlog(void *ctx)
{
	struct fixture *f = ctx;

	return spooling_metric(&f->s, PROFILES, "stored") == BACKLOG &&
	       spooling_outcome(&f->s, "pyroscope", "retried") > 0;
}

/* Profiles on disk that the server did not take. The export goes on. */
static void make_backlog(struct fixture *f, struct sink *sink)
{
	f->s.blocked_ns = 0; /* a slow disk is no matter here */
	f->s.open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC;
	f->s.urls[0] = sink_url(sink);
	assert_int_equal(spooling_start(&f->s), 0);
	spooling_submit(&f->s, BACKLOG, 1000, nsec_wall());
	loop_until(f->s.loop, has_backlog, f);
	f->s.blocked_ns = 100 * NSEC_PER_MSEC;
}

static bool is_held(void *ctx)
{
	const struct fixture *f = ctx;

	return stalldir_n_held(f->disk) > 0 && f->n_ticks >= TICKS;
}

static bool sent(void *ctx)
{
	const struct fixture *f = ctx;

	return spooling_outcome(&f->s, "pyroscope", "sent") == f->want;
}

static bool is_recovered(void *ctx)
{
	const struct fixture *f = ctx;

	return spooling_metric(&f->s, "podprof_spool_recovered", "") == BACKLOG;
}

static bool stored_one(void *ctx)
{
	struct fixture *f = ctx;

	if (spooling_metric(&f->s, PROFILES, "stored"))
		return true;
	if (sent(f)) {
		spooling_submit(&f->s, 1, 1000, nsec_wall());
		f->want++;
	}
	return false;
}

/* The server gets all profiles of both runs, each once, and the spool takes profiles again. */
static void assert_all_arrive(struct fixture *f, struct sink *sink)
{
	static unsigned char arrived[SPOOLING_PROFILES_MAX];
	size_t n = 0;

	f->want += BACKLOG;
	loop_until(f->s.loop, sent, f);
	loop_until(f->s.loop, stored_one, f);
	spooling_flush(&f->s, LONG_NS);
	assert_int_equal(spooling_arrived(sink, 0, true, arrived), f->want);
	for (size_t i = 0; i < SPOOLING_PROFILES_MAX; i++)
		n += arrived[i];
	assert_int_equal(n, f->want);
}

/* The next run begins while the disk stalls at @operation, and gets three profiles. */
static void start_stalled(struct fixture *f, const char *operation)
{
	spooling_stop(&f->s);
	stalldir_stall(f->disk, operation);
	f->s.open_wait_ns = 1;
	f->n_ticks = 0;
	assert_int_equal(spooling_start(&f->s), 0);
	spooling_submit(&f->s, 3, 1000, nsec_wall());
	loop_until(f->s.loop, is_held, f);
}

/* The run begins without the disk, and has the profiles of the earlier run when the disk is back.
 */
static void test_start(void **state)
{
	static const char *const rows[] = {"lookup", "opendir", "readdir", "open", "read"};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		struct sink *sink = new_sink();

		row_begin(rows[i]);
		make_backlog(f, sink);
		start_stalled(f, rows[i]);
		f->want = 3;
		loop_until(f->s.loop, sent, f); /* from memory, once the disk is blocked */
		assert_int_equal(spooling_metric(&f->s, PROFILES, "blocked"), 3);
		assert_int_equal(spooling_metric(&f->s, PROFILES, "stored"), 0);
		assert_int_equal(spooling_metric(&f->s, "podprof_spool_recovered", ""), 0);

		stalldir_answer(f->disk, 0);
		loop_until(f->s.loop, is_recovered, f);
		assert_all_arrive(f, sink);
		spooling_stop(&f->s);
		sink_free(sink);
	}
}

static bool all_blocked(void *ctx)
{
	const struct fixture *f = ctx;

	return spooling_metric(&f->s, PROFILES, "blocked") == 3;
}

/* The end of the run does not wait for a disk that was silent from the start. */
static void test_end(void **state)
{
	static const char *const rows[] = {"lookup", "readdir"};
	struct fixture *f = *state;

	f->s.urls[0] = "http://127.0.0.1:1";
	f->s.open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC;
	assert_int_equal(spooling_start(&f->s), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i]);
		start_stalled(f, rows[i]);
		loop_until(f->s.loop, all_blocked, f); /* so that the end does not wait */
		spooling_stop(&f->s);
		assert_true(stalldir_n_held(f->disk) > 0);
		stalldir_answer(f->disk, 0);
		threads_wait();
	}
}

static bool has_failed(void *ctx)
{
	const struct fixture *f = ctx;

	return spooling_metric(&f->s, PROFILES, "failed") == 3;
}

/* The disk comes back with an error, later without: the spool tries again. */
static void test_start_fails(void **state)
{
	static const char *const rows[] = {"opendir", "readdir"};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		struct sink *sink = new_sink();

		row_begin(rows[i]);
		make_backlog(f, sink);
		f->s.blocked_ns = NSEC_PER_SEC;
		start_stalled(f, rows[i]);
		stalldir_answer(f->disk, EIO);
		f->want = 3;
		loop_until(f->s.loop, sent, f);
		assert_true(has_failed(f) || spooling_metric(&f->s, PROFILES, "blocked"));
		loop_until(f->s.loop, is_recovered, f);
		assert_all_arrive(f, sink);
		spooling_stop(&f->s);
		sink_free(sink);
	}
}

static bool has_ticked(void *ctx)
{
	const struct fixture *f = ctx;

	return f->n_ticks >= TICKS;
}

/* Another process has the lock: profiles are sent from memory. When the lock is free, the spool has
 * the profiles on disk. */
static void test_busy(void **state)
{
	struct fixture *f = *state;

	for (int attempt_stalls = 0; attempt_stalls < 2; attempt_stalls++) {
		struct sink *sink = new_sink();
		struct spooling first;
		char text[64];

		row_begin(attempt_stalls ? "the disk does not answer either" : "the disk answers");
		make_backlog(f, sink);
		first = f->s;
		f->s.e = NULL;
		assert_int_equal(spooling_start(&f->s), 0);
		snprintf(text, sizeof(text), "--spool-dir is locked by process %d", (int)getpid());
		assert_string_equal(f->s.busy, text);
		assert_int_equal(spooling_metric(&f->s, "podprof_spool_busy", ""), 1);
		assert_int_equal(spooling_metric(&first, "podprof_spool_busy", ""), 0);
		spooling_submit(&f->s, 3, 1000, nsec_wall());
		f->want = 3;
		loop_until(f->s.loop, sent, f);
		assert_int_equal(spooling_metric(&f->s, PROFILES, "blocked"), 3);
		f->n_ticks = 0;
		if (attempt_stalls) {
			stalldir_stall(f->disk, "opendir");
			loop_until(f->s.loop, is_held, f);
			f->n_ticks = 0;
			loop_until(f->s.loop, has_ticked, f);
			stalldir_answer(f->disk, 0);
		}
		loop_until(f->s.loop, has_ticked, f);
		assert_string_equal(f->s.busy, text);
		assert_int_equal(spooling_metric(&f->s, "podprof_spool_recovered", ""), 0);

		spooling_stop(&first);
		loop_until(f->s.loop, is_recovered, f);
		assert_string_equal(f->s.busy, "");
		assert_int_equal(spooling_metric(&f->s, "podprof_spool_busy", ""), 0);
		assert_all_arrive(f, sink);
		spooling_stop(&f->s);
		sink_free(sink);
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_start),
		TEST(test_end),
		TEST(test_start_fails),
		TEST(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
