// SPDX-License-Identifier: Apache-2.0
/* A store on a file system that stops answering: the loop goes on, memory stays bounded, and the
 * store goes on when the file system does. */
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "export/outbox.h"
#include "export/profile.h"
#include "export/store.h"
#include "support/metrics.h"
#include "support/stalldir.h"
#include "support/threads.h"
#include "support/until.h"

#define PROFILE_BYTES 4096
#define STORED_MAX    4
#define WAITING_BYTES (64 << 10)
#define TICK_NS	      (5 * NSEC_PER_MSEC)
/* Turns of the loop that a test waits for during a stall. */
#define TICKS	      20

struct fixture {
	char dir[64];
	char path[96];
	struct stalldir *disk;
	struct store_opts opts;
	struct loop *loop;
	struct loop_source *tick;
	struct outbox_budget budget;
	struct store *s;
	size_t n_put, n_ended, n_ticks;
	size_t n_outcomes[STORE_OUTCOME_MAX];
	int health;
	pid_t holder;
};

static void on_ended(void *ctx, const struct profile *profile, int r)
{
	struct fixture *f = ctx;

	(void)profile;
	assert_true(r >= 0);
	f->n_ended++;
	f->n_outcomes[r]++;
}

static void on_changed(void *ctx, enum store_outcome outcome, pid_t holder)
{
	struct fixture *f = ctx;

	f->health = outcome;
	f->holder = holder;
}

static void on_tick(void *ctx)
{
	struct fixture *f = ctx;

	f->n_ticks++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_store_stall.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->disk = stalldir_new(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/store", f->dir);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(loop_add_timer(f->loop, on_tick, f, &f->tick), 0);
	assert_int_equal(loop_arm(f->tick, TICK_NS, TICK_NS), 0);
	f->opts = (struct store_opts){
		.loop = f->loop,
		.dir = f->path,
		.max_bytes = STORED_MAX * PROFILE_BYTES,
		.max_age_ns = 3600 * NSEC_PER_SEC,
		.waiting_bytes = WAITING_BYTES,
		.blocked_ns = 100 * NSEC_PER_MSEC,
		.open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC,
		.ended = on_ended,
		.changed = on_changed,
		.ctx = f,
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_free(f->s);
	loop_remove(f->tick);
	loop_free(f->loop);
	assert_int_equal(f->budget.used_bytes, 0);
	threads_wait();
	stalldir_free(f->disk);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void put(struct fixture *f, size_t n)
{
	for (size_t i = 0; i < n; i++, f->n_put++) {
		struct profile *p = calloc(1, sizeof(*p));
		struct queued_profile *queued;
		char service[32];

		/* each in a folder of its own, so folders come and go */
		snprintf(service, sizeof(service), "s%zu", f->n_put);
		assert_int_equal(labels_set(&p->labels, "service_name", service), 0);
		p->start_ns = nsec_wall() + f->n_put * NSEC_PER_MSEC;
		p->duration_ns = NSEC_PER_SEC;
		p->pprof_len = PROFILE_BYTES;
		p->pprof = calloc(1, PROFILE_BYTES);
		assert_int_equal(queued_profile_new(&f->budget, p, &queued), 0);
		store_put(f->s, queued);
		queued_profile_unref(queued);
	}
}

static bool all_ended(void *ctx)
{
	const struct fixture *f = ctx;

	return f->n_ended == f->n_put;
}

static bool is_held(void *ctx)
{
	const struct fixture *f = ctx;

	return stalldir_n_held(f->disk) > 0;
}

/* The watchdog has seen it. */
static bool is_blocked(void *ctx)
{
	const struct fixture *f = ctx;

	return is_held(ctx) && store_is_idle(f->s) && f->n_ticks >= TICKS;
}

static void open_with(struct fixture *f, size_t n)
{
	assert_int_equal(store_open(&f->opts, &f->s), 0);
	put(f, n);
	loop_until(f->loop, all_ended, f);
	assert_int_equal(f->n_outcomes[STORE_OK], n);
}

static void reset(struct fixture *f)
{
	f->n_ended = f->n_put = 0;
	memset(f->n_outcomes, 0, sizeof(f->n_outcomes));
}

/* A disk that stops at each step of a write or a removal. */
static void test_write(void **state)
{
	static const char *const rows[] = {"lookup", "mkdir",  "opendir", "create", "write",
					   "flush",  "rename", "unlink",  "rmdir"};
	struct fixture *f = *state;

	open_with(f, STORED_MAX);
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t n_ok;

		row_begin(rows[i]);
		reset(f);
		stalldir_stall(f->disk, rows[i]);
		put(f, 1);
		loop_until(f->loop, is_held, f);
		f->n_ticks = 0;
		put(f, 99);
		assert_in_range(f->n_outcomes[STORE_BLOCKED], 80, 95);
		assert_int_equal(f->n_ended, f->n_outcomes[STORE_BLOCKED]);
		assert_in_range(f->budget.used_bytes, WAITING_BYTES / 2, WAITING_BYTES);
		store_trim(f->s, nsec_wall());
		loop_until(f->loop, is_blocked, f);
		assert_int_equal(f->health, STORE_BLOCKED);
		n_ok = f->n_put - f->n_ended;
		assert_int_equal(store_n_waiting(f->s), n_ok);

		stalldir_answer(f->disk, 0);
		loop_until(f->loop, all_ended, f);
		assert_int_equal(f->n_outcomes[STORE_OK], n_ok);
		assert_int_equal(f->n_outcomes[STORE_OK] + f->n_outcomes[STORE_BLOCKED], 100);
		assert_int_equal(f->health, STORE_OK);
		assert_int_equal(f->budget.used_bytes, 0);
		assert_int_equal(store_n_waiting(f->s), 0);
		put(f, 1);
		loop_until(f->loop, all_ended, f);
		assert_int_equal(f->n_outcomes[STORE_OK], n_ok + 1);
		assert_int_equal(store_n_profiles(f->s), STORED_MAX);
	}
}

/* The end of the run does not wait for the disk. */
static void test_end(void **state)
{
	static const char *const rows[] = {"mkdir", "write", "unlink"};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i]);
		reset(f);
		open_with(f, STORED_MAX);
		stalldir_stall(f->disk, rows[i]);
		put(f, 10);
		loop_until(f->loop, is_held, f);
		f->n_ticks = 0;
		if (i)
			loop_until(f->loop, is_blocked, f);
		store_free(take_ptr(f->s));
		assert_true(is_held(f));
		assert_int_equal(f->budget.used_bytes, 0);
		stalldir_answer(f->disk, 0);
		threads_wait();
	}
}

/* The run begins without the disk, and has the earlier profiles when the disk is back. */
static void test_start(void **state)
{
	static const char *const rows[] = {"lookup", "opendir", "readdir", "open", "read"};
	_cleanup_(root_deinit) struct root dir = ROOT_INIT;
	struct fixture *f = *state;

	open_with(f, 2);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i]);
		store_free(take_ptr(f->s));
		reset(f);
		stalldir_stall(f->disk, rows[i]);
		f->opts.open_wait_ns = 1;
		assert_int_equal(store_open(&f->opts, &f->s), 0);
		assert_int_equal(f->health, STORE_BLOCKED);
		assert_int_equal(store_n_profiles(f->s), 0);
		assert_int_equal(store_dup_dir(f->s, &dir), -ENOENT);
		f->n_ticks = 0;
		put(f, 100);
		loop_until(f->loop, is_blocked, f);
		assert_in_range(f->n_outcomes[STORE_BLOCKED], 80, 95);
		if (i == 0) { /* an end before the beginning */
			store_free(take_ptr(f->s));
			assert_int_equal(f->budget.used_bytes, 0);
			stalldir_answer(f->disk, 0);
			threads_wait();
			f->opts.open_wait_ns = UNTIL_SECONDS * NSEC_PER_SEC;
			assert_int_equal(store_open(&f->opts, &f->s), 0);
			assert_int_equal(store_n_profiles(f->s), 2);
			continue;
		}
		stalldir_answer(f->disk, 0);
		loop_until(f->loop, all_ended, f);
		assert_int_equal(f->n_outcomes[STORE_OK] + f->n_outcomes[STORE_BLOCKED], 100);
		assert_int_equal(f->health, STORE_OK);
		assert_int_equal(store_n_profiles(f->s), STORED_MAX);
		assert_int_equal(store_dup_dir(f->s, &dir), 0);
		root_deinit(&dir);
		dir = (struct root)ROOT_INIT;
	}
}

static uint64_t busy(const struct fixture *f)
{
	return metrics_get(store_collect, f->s, "podprof_store_busy", "");
}

static bool has_ticked(void *ctx)
{
	const struct fixture *f = ctx;

	return f->n_ticks >= TICKS;
}

/* Another process has the lock: profiles wait. When the lock is free, the store has the files. */
static void test_busy(void **state)
{
	_cleanup_(root_deinit) struct root dir = ROOT_INIT;
	struct fixture *f = *state;
	struct store *first;

	open_with(f, 2);
	first = take_ptr(f->s);
	for (int attempt_stalls = 0; attempt_stalls < 2; attempt_stalls++) {
		size_t n_ok;

		row_begin(attempt_stalls ? "the disk does not answer either" : "the disk answers");
		reset(f);
		assert_int_equal(store_open(&f->opts, &f->s), 0);
		assert_int_equal(f->health, STORE_BUSY);
		assert_int_equal(f->holder, getpid());
		assert_int_equal(busy(f), 1);
		assert_true(store_is_idle(f->s));
		assert_int_equal(store_n_profiles(f->s), 0);
		assert_int_equal(store_dup_dir(f->s, &dir), -ENOENT);
		put(f, 100);
		assert_in_range(f->n_outcomes[STORE_BLOCKED], 80, 95);
		assert_int_equal(f->n_ended, f->n_outcomes[STORE_BLOCKED]);
		assert_in_range(f->budget.used_bytes, WAITING_BYTES / 2, WAITING_BYTES);
		n_ok = f->n_put - f->n_ended;
		assert_int_equal(store_n_waiting(f->s), n_ok);
		f->n_ticks = 0;
		if (attempt_stalls) {
			stalldir_stall(f->disk, "opendir");
			loop_until(f->loop, is_held, f);
			f->n_ticks = 0;
			loop_until(f->loop, is_blocked, f);
			stalldir_answer(f->disk, 0);
		}
		loop_until(f->loop, has_ticked, f);
		assert_int_equal(busy(f), 1);
		assert_int_equal(f->n_ended, f->n_outcomes[STORE_BLOCKED]);

		store_free(first);
		loop_until(f->loop, all_ended, f);
		assert_int_equal(f->n_outcomes[STORE_OK], n_ok);
		assert_int_equal(f->health, STORE_OK);
		assert_int_equal(busy(f), 0);
		assert_int_equal(store_n_profiles(f->s), STORED_MAX);
		assert_int_equal(store_dup_dir(f->s, &dir), 0);
		root_deinit(&dir);
		dir = (struct root)ROOT_INIT;
		first = take_ptr(f->s);
	}
	row_begin("the end");
	reset(f);
	assert_int_equal(store_open(&f->opts, &f->s), 0);
	put(f, 3);
	store_free(take_ptr(f->s));
	assert_int_equal(f->n_ended, 0);
	assert_int_equal(f->budget.used_bytes, 0);
	store_free(first);
}

static bool stored_one(void *ctx)
{
	struct fixture *f = ctx;

	if (all_ended(f) && !f->n_outcomes[STORE_OK])
		put(f, 1);
	return f->n_outcomes[STORE_OK] > 0;
}

/* The disk comes back with an error: later profiles try again. */
static void test_start_fails(void **state)
{
	struct fixture *f = *state;

	stalldir_stall(f->disk, "opendir");
	f->opts.open_wait_ns = 1;
	assert_int_equal(store_open(&f->opts, &f->s), 0);
	put(f, 3);
	loop_until(f->loop, is_held, f);
	stalldir_answer(f->disk, EIO);
	loop_until(f->loop, all_ended, f);
	assert_int_equal(f->n_outcomes[STORE_FAILED], 3);
	assert_int_equal(f->health, STORE_FAILED);
	loop_until(f->loop, stored_one, f);
	assert_int_equal(f->health, STORE_OK);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_write), TEST(test_end),	  TEST(test_start),
		TEST(test_busy),  TEST(test_start_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
