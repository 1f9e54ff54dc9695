// SPDX-License-Identifier: Apache-2.0
/*
 * The thread works less than 0.3 ms a second, so it needs a CPU soon rather than much of a CPU. It
 * asks the scheduler for SCHED_RR, and without the right to it for short slices (base/slice.h).
 * Beside 150 spinning processes on 2 CPUs, a sleeping thread waited for a CPU: 322 ms at most, with
 * short slices 244 ms, with a nice value of -10 94 ms, with SCHED_RR 0.1 ms. The maps hold two
 * seconds, so none of these needs CAP_SYS_NICE to lose nothing there. Inside of a cgroup a nice
 * value weighs against the agent's own threads only: in Kubernetes the CPU request decides about
 * the rest of the node. There, with 4 ms of CPU a second for all threads, the ring of stack dumps
 * was full 43 times in 2,214 without short slices and never in 1,791 with them. But a storm of
 * forks once kept the whole cgroup from the CPUs for 14 s, and a third of the samples was lost.
 */
#include "profile/drain.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/slice.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "profile/sideband.h"

/* The longest sleep, in ns: without kinds of samples, the dumps alone are due after it. */
#define DRAIN_SLEEP_NS (2 * NSEC_PER_SEC)

/* Intervals from a look at maps without samples to the next, and from a drain with few samples. The
 * maps hold the samples of two intervals, if all of these are distinct. */
#define DRAIN_IDLE_INTERVALS 2

struct drain {
	struct drain_opts opts;
	uint64_t due_ns[DRAIN_KINDS];	  /* monotonic; the thread's */
	uint64_t fetched_ns[DRAIN_KINDS]; /* the last drain; monotonic; the thread's */
	bool idle[DRAIN_KINDS];		  /* no sample was stored at the last look; the thread's */
	bool dumped;			  /* there were dumps at the last look; the thread's */
	_Atomic bool busy;
	_Atomic bool now;
	_Atomic uint64_t soon_since_ns; /* drain_set_soon() */
	pthread_t thread;
	bool started;
	_Atomic int error;
	int stop_fd;
	int now_fd; /* wakes the thread after a change of @now or @soon_since_ns */
	int ready_fd;
};

DEFINE_CLEANUP(struct drain *, drain_freep, drain_free);

static void note(struct drain *d, int r)
{
	if (r < 0)
		d->error = r;
}

/* One kind of samples: a half of a drain, or nothing while no sample is stored. As stacks_fetch().
 */
static int fetch_stacks(struct drain *d, size_t i, bool now)
{
	struct stacks *stacks = d->opts.stacks[i];

	d->idle[i] = !now && !d->busy && !d->dumped && d->opts.idle_ns && stacks_idle(stacks);
	if (!d->idle[i])
		return stacks_fetch(stacks);
	if (nsec_monotonic() - d->fetched_ns[i] < d->opts.idle_ns)
		return 0;
	return stacks_fetch_none(stacks);
}

/* New processes have dumps, and their tables keep the owner busy. */
static void set_due(struct drain *d, size_t i)
{
	const bool quiet = d->opts.idle_ns && !d->busy && stacks_sparse(d->opts.stacks[i]);
	const unsigned int n = (d->idle[i] || quiet) && !d->dumped ? DRAIN_IDLE_INTERVALS : 1;

	d->due_ns[i] = nsec_monotonic() + stacks_interval_ns(d->opts.stacks[i], n);
}

/* Dumps come after the stacks: an off-CPU sample and its dump are in both, and the dump is older.
 */
static void fetch(struct drain *d, bool woken)
{
	bool fetched = woken, now = atomic_exchange(&d->now, false), looked[DRAIN_KINDS] = {false};

	for (size_t i = 0; i < d->opts.n; i++) {
		int r;

		looked[i] = now || nsec_monotonic() >= d->due_ns[i];
		r = looked[i] ? fetch_stacks(d, i, now) : 0;
		note(d, r);
		fetched = fetched || r; /* an error is for the loop, too */
		if (r)
			d->fetched_ns[i] = nsec_monotonic();
	}
	if (d->opts.dumps) {
		note(d, stack_dumps_fetch(d->opts.dumps));
		d->dumped = stack_dumps_waiting(d->opts.dumps);
	}
	for (size_t i = 0; i < d->opts.n; i++)
		if (looked[i])
			set_due(d, i);
	if (fetched || d->dumped)
		drain_again(d);
}

/* A sleep can have begun before the owner wanted samples soon. */
static void hurry(struct drain *d, uint64_t now_ns)
{
	const uint64_t since_ns = d->soon_since_ns;
	const uint64_t age_ns = now_ns > since_ns ? now_ns - since_ns : 0;
	uint64_t soon_ns = age_ns / DRAIN_SOON_PART;

	if (!since_ns || age_ns >= DRAIN_SOON_NS)
		return;
	if (soon_ns < DRAIN_SOON_FIRST_NS)
		soon_ns = DRAIN_SOON_FIRST_NS;
	if (soon_ns > DRAIN_SOON_LAST_NS)
		soon_ns = DRAIN_SOON_LAST_NS;
	for (size_t i = 0; i < d->opts.n; i++)
		if (d->due_ns[i] > now_ns + soon_ns)
			d->due_ns[i] = now_ns + soon_ns;
}

/* What the thread waits for; the numbers of its descriptors. */
enum wait { WAIT_STOP, WAIT_NOW, WAIT_DUMPS, WAIT_SIDEBAND, WAIT_MAX };

/* Until the next drain is due, or a ring needs room (@ret_woken). False: the end. */
static bool wait_for_work(struct drain *d, bool ret_woken[WAIT_MAX])
{
	struct pollfd fds[WAIT_MAX] = {
		[WAIT_STOP] = {.fd = d->stop_fd, .events = POLLIN},
		[WAIT_NOW] = {.fd = d->now_fd, .events = POLLIN},
		[WAIT_DUMPS] = {.fd = -1, .events = POLLIN},
		[WAIT_SIDEBAND] = {.fd = -1, .events = POLLIN},
	};
	uint64_t now_ns = nsec_monotonic(), next_ns = now_ns + DRAIN_SLEEP_NS;

	hurry(d, now_ns);
	for (size_t i = 0; i < d->opts.n; i++)
		if (d->due_ns[i] < next_ns)
			next_ns = d->due_ns[i];
	if (d->opts.dumps && !stack_dumps_full(d->opts.dumps)) /* else it would not wait */
		fds[WAIT_DUMPS].fd = stack_dumps_fd(d->opts.dumps);
	if (d->opts.sideband)
		fds[WAIT_SIDEBAND].fd = sideband_fd(d->opts.sideband);
	next_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	(void)poll(fds, WAIT_MAX, (int)((next_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));
	for (int i = 0; i < WAIT_MAX; i++)
		ret_woken[i] = fds[i].revents != 0;
	if (ret_woken[WAIT_NOW])
		wakeup_take(d->now_fd);
	return !ret_woken[WAIT_STOP];
}

/* A walk needs the events before its dump. With younger dumps the loop could do nothing until the
 * next drain. */
static void wait_for_events(void)
{
	const struct timespec arrival = {.tv_nsec = SIDEBAND_ARRIVAL_NS};

	(void)nanosleep(&arrival, NULL);
}

static void *drain_main(void *arg)
{
	struct drain *d = arg;
	bool woken[WAIT_MAX];

	slice_ask_first();
	while (wait_for_work(d, woken)) {
		if (woken[WAIT_DUMPS] && d->opts.sideband)
			wait_for_events();
		if (woken[WAIT_SIDEBAND] && sideband_fetch(d->opts.sideband))
			drain_again(d);
		fetch(d, woken[WAIT_DUMPS]);
	}
	return NULL;
}

int drain_new(const struct drain_opts *opts, struct drain **ret)
{
	_cleanup_(drain_freep) struct drain *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	d->ready_fd = d->now_fd = -1;
	d->stop_fd = wakeup_open();
	if (d->stop_fd < 0)
		return -errno;
	d->now_fd = wakeup_open();
	if (d->now_fd < 0)
		return -errno;
	d->ready_fd = wakeup_open();
	if (d->ready_fd < 0)
		return -errno;
	for (size_t i = 0; i < opts->n; i++)
		d->due_ns[i] = nsec_monotonic() + stacks_interval_ns(opts->stacks[i], 1);
	r = thread_start("drain", drain_main, d, &d->thread);
	if (r)
		return r;
	d->started = true;
	*ret = take_ptr(d);
	return 0;
}

void drain_free(struct drain *d)
{
	if (!d)
		return;
	if (d->started) {
		wakeup_send(d->stop_fd);
		pthread_join(d->thread, NULL);
	}
	close_fdp(&d->stop_fd);
	close_fdp(&d->now_fd);
	close_fdp(&d->ready_fd);
	free(d);
}

int drain_fd(const struct drain *d)
{
	return d->ready_fd;
}

void drain_again(struct drain *d)
{
	wakeup_send(d->ready_fd);
}

void drain_now(struct drain *d)
{
	d->now = true;
	wakeup_send(d->now_fd);
}

void drain_set_soon(struct drain *d, uint64_t since_ns)
{
	if (atomic_exchange(&d->soon_since_ns, since_ns) < since_ns)
		wakeup_send(d->now_fd);
}

void drain_set_busy(struct drain *d, bool busy)
{
	d->busy = busy;
}

int drain_error(struct drain *d)
{
	return atomic_exchange(&d->error, 0);
}
