// SPDX-License-Identifier: Apache-2.0
#include "base/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/thread.h"

/* Time to wait for the running job at the end of the program. */
#define END_WAIT_NS (2 * NSEC_PER_SEC)
/* Looks within the time limit. */
#define LOOKS	    4

/* The number of blocked threads, shared by the watchdog and the threads. */
struct blocked {
	_Atomic unsigned int n;
	_Atomic unsigned int n_refs;
};

/* One abandoned job. */
struct abandoned {
	struct watchdog *wd; /* for the loop's thread only */
	struct blocked *blocked;
	void (*drop)(struct work *work);
};

struct watchdog {
	struct watchdog_opts opts;
	struct loop_source *timer;
	bool armed; /* the timer: only while there are jobs */
	struct blocked *blocked;
	struct blocked_time time; /* of the running job */
};

static void blocked_unref(struct blocked *blocked)
{
	if (blocked && atomic_fetch_sub(&blocked->n_refs, 1) == 1)
		free(blocked);
}

/* Time on a CPU or waiting for one, except a wait that has not ended. 0 if the kernel does not say:
 * then all time is blocked time. */
static uint64_t ran_ns(pid_t tid)
{
	uint64_t cpu_ns;
	char text[96], *end;

	thread_read_file(0, tid, "schedstat", text, sizeof(text));
	cpu_ns = strtoull(text, &end, 10);
	return cpu_ns + strtoull(end, NULL, 10);
}

uint64_t blocked_time_ns(struct blocked_time *t, const struct worker *worker)
{
	struct worker_running running;
	uint64_t now_ns, ran;
	bool runnable;

	if (!worker_running(worker, &running)) {
		t->alive_ns = 0;
		return 0;
	}
	runnable =
		thread_is_runnable(0, running.tid); /* first: a blocked thread's waits have ended */
	now_ns = nsec_monotonic();
	ran = ran_ns(running.tid);
	if (running.alive_ns != t->alive_ns)
		*t = (struct blocked_time){running.alive_ns, now_ns, ran};
	if (runnable)
		return 0;
	ran -= ran < t->ran_ns ? ran : t->ran_ns;
	now_ns -= t->seen_ns;
	return now_ns > ran ? now_ns - ran : 0;
}

/* ---------------------------------------------------------------- a job that does not end */

static void on_seen(void *ctx, struct work *work)
{
	const struct abandoned *a = ctx;
	struct watchdog *wd = a->wd;

	atomic_fetch_add(&a->blocked->n, 1);
	atomic_fetch_add(&a->blocked->n_refs, 1);
	if (wd->opts.abandoned)
		wd->opts.abandoned(wd->opts.ctx, work);
}

/* The watchdog and the worker may no longer exist. */
static void on_orphan(void *ctx, struct work *work)
{
	struct abandoned *a = ctx;

	a->drop(work);
	atomic_fetch_sub(&a->blocked->n, 1);
	blocked_unref(a->blocked);
	free(a);
}

/* False if the job is still the worker's. */
static bool abandon(struct watchdog *wd)
{
	struct abandoned *a = calloc(1, sizeof(*a));
	const struct worker_left left = {on_seen, on_orphan, a};

	if (!a)
		return false;
	*a = (struct abandoned){wd, wd->blocked, wd->opts.drop};
	if (!worker_abandon(wd->opts.worker, &left))
		return true;
	free(a);
	return false;
}

static void on_busy(void *ctx)
{
	struct watchdog *wd = ctx;

	if (!wd->armed)
		wd->armed = !loop_arm_within(wd->timer, wd->opts.blocked_ns / LOOKS, 0);
}

/* So rare and short jobs do not wake the loop for a look. */
static void on_idle(void *ctx)
{
	struct watchdog *wd = ctx;

	(void)loop_disarm(wd->timer); /* cannot fail */
	wd->armed = false;
}

static void look(struct watchdog *wd)
{
	unsigned int n = watchdog_n_blocked(wd);

	if (blocked_time_ns(&wd->time, wd->opts.worker) < wd->opts.blocked_ns ||
	    n >= wd->opts.threads_max)
		return;
	if (wd->opts.prepare && wd->opts.prepare(wd->opts.ctx, n))
		return;
	if (!abandon(wd) && wd->opts.kept)
		wd->opts.kept(wd->opts.ctx);
}

static void on_timer(void *ctx)
{
	struct watchdog *wd = ctx;

	look(wd);
	wd->armed = false;
	if (worker_pending(wd->opts.worker))
		on_busy(wd);
}

/* ---------------------------------------------------------------- life */

int watchdog_new(const struct watchdog_opts *opts, struct watchdog **ret)
{
	struct watchdog *wd = calloc(1, sizeof(*wd));
	int r;

	if (!wd)
		return -ENOMEM;
	wd->opts = *opts;
	if (!wd->opts.blocked_ns)
		wd->opts.blocked_ns = WATCHDOG_BLOCKED_NS;
	if (!wd->opts.threads_max)
		wd->opts.threads_max = WATCHDOG_THREADS_MAX;
	wd->blocked = calloc(1, sizeof(*wd->blocked));
	r = wd->blocked ? 0 : -ENOMEM;
	if (!r) {
		wd->blocked->n_refs = 1;
		r = loop_add_timer(opts->loop, on_timer, wd, &wd->timer);
	}
	if (r) {
		blocked_unref(wd->blocked);
		free(wd);
		return r;
	}
	worker_listen(opts->worker, on_busy, on_idle, wd);
	*ret = wd;
	return 0;
}

/* A job that is blocked for long is not waited for: at the end, each worker's wait adds up. */
static uint64_t end_wait_ns(struct watchdog *wd)
{
	return blocked_time_ns(&wd->time, wd->opts.worker) < wd->opts.blocked_ns ? END_WAIT_NS : 0;
}

void watchdog_free(struct watchdog *wd)
{
	if (!wd)
		return;
	worker_listen(wd->opts.worker, NULL, NULL, NULL);
	loop_remove(wd->timer);
	if (!worker_stop(wd->opts.worker, end_wait_ns(wd)))
		(void)!abandon(wd);
	blocked_unref(wd->blocked);
	free(wd);
}

unsigned int watchdog_n_blocked(const struct watchdog *wd)
{
	return atomic_load(&wd->blocked->n);
}
