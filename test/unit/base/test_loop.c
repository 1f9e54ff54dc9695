// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "support/allocfail.h"
#include "support/metrics.h"
#include "support/timers.h"

/* A test source: counts its calls and may act on another source. */
struct probe {
	struct loop *loop;
	struct loop_source *source;
	struct loop_source *other; /* removed by this source's call */
	int fd;
	int calls;
	int stop_after;
	int signo;
};

static void probe_called(struct probe *p)
{
	p->calls++;
	if (p->other)
		loop_remove(p->other);
	p->other = NULL;
	if (p->calls == p->stop_after)
		loop_stop(p->loop);
}

static void on_fd(void *ctx, int fd, uint32_t events)
{
	struct probe *p = ctx;

	assert_int_equal(fd, p->fd);
	assert_true(events & (EPOLLIN | EPOLLOUT));
	probe_called(p);
}

static void on_timer(void *ctx)
{
	probe_called(ctx);
}

static void on_signal(void *ctx, int signo)
{
	struct probe *p = ctx;

	p->signo = signo;
	probe_called(p);
}

/* Run until a millisecond has passed with nothing else to do. */
static void run_idle(struct loop *loop)
{
	struct probe end = {.loop = loop, .stop_after = 1};
	struct loop_source *timer;

	assert_int_equal(loop_add_timer(loop, on_timer, &end, &timer), 0);
	assert_int_equal(loop_arm(timer, NSEC_PER_MSEC, 0), 0);
	assert_int_equal(loop_run(loop), 0);
	loop_remove(timer);
}

static void test_fd(void **state)
{
	struct loop *loop;
	struct probe p = {.fd = eventfd(1, EFD_CLOEXEC), .stop_after = 3};

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	p.loop = loop;
	assert_int_equal(loop_add_fd(loop, p.fd, EPOLLIN, on_fd, &p, &p.source), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(p.calls, 3); /* level-triggered: the data is still unread */
	assert_int_equal(loop_change_fd(p.source, EPOLLOUT), 0);
	p.stop_after = 4;
	assert_int_equal(loop_run(loop), 0);
	loop_remove(p.source);
	loop_remove(p.source); /* a second removal before the loop's free: no effect */
	run_idle(loop);
	assert_int_equal(p.calls, 4);
	loop_free(loop);
	assert_int_equal(close(p.fd), 0); /* is the caller's */
}

static void test_bad_fd(void **state)
{
	struct loop *loop;
	struct loop_source *source = NULL;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(loop_add_fd(loop, 9999, EPOLLIN, on_fd, NULL, &source), -EBADF);
	assert_null(source);
	loop_remove(NULL);
	loop_free(loop);
	loop_free(NULL);
}

/* Two sources are ready in one batch and each would remove the other: exactly one is called. */
static void test_remove_other(void **state)
{
	struct loop *loop;
	struct probe a = {.fd = eventfd(1, EFD_CLOEXEC)};
	struct probe b = {.fd = eventfd(1, EFD_CLOEXEC)};

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	a.loop = b.loop = loop;
	a.stop_after = b.stop_after = 2;
	assert_int_equal(loop_add_fd(loop, a.fd, EPOLLIN, on_fd, &a, &a.source), 0);
	assert_int_equal(loop_add_fd(loop, b.fd, EPOLLIN, on_fd, &b, &b.source), 0);
	a.other = b.source;
	b.other = a.source;
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(a.calls + b.calls, 2);
	assert_true(a.calls == 0 || b.calls == 0);
	loop_free(loop);
	close(a.fd);
	close(b.fd);
}

static void test_remove_self(void **state)
{
	struct loop *loop;
	struct probe p = {0};

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	p.loop = loop;
	assert_int_equal(loop_add_timer(loop, on_timer, &p, &p.source), 0);
	assert_int_equal(loop_arm(p.source, 0, 1), 0);
	p.other = p.source;
	run_idle(loop);
	assert_int_equal(p.calls, 1);
	loop_free(loop);
}

static void test_timer(void **state)
{
	struct loop *loop;
	struct probe once = {0}, again = {0}, never = {0};

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	once.loop = again.loop = never.loop = loop;
	again.stop_after = 5;
	assert_int_equal(loop_add_timer(loop, on_timer, &once, &once.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &again, &again.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &never, &never.source), 0);
	assert_int_equal(loop_arm(once.source, 0, 0), 0);
	assert_int_equal(loop_arm(again.source, NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(loop_arm(never.source, 0, 0), 0);
	assert_int_equal(loop_disarm(never.source), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(once.calls, 1);
	assert_int_equal(again.calls, 5);
	assert_int_equal(never.calls, 0);
	loop_free(loop);
}

static void test_signal(void **state)
{
	struct loop *loop;
	struct probe p = {.stop_after = 1};

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	p.loop = loop;
	assert_int_equal(loop_add_signal(loop, SIGUSR1, on_signal, &p, &p.source), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(p.signo, SIGUSR1);
	loop_free(loop);
}

static int build(void *ctx)
{
	struct loop *loop;
	struct loop_source *source;
	int r = loop_new(&loop);

	if (r)
		return r;
	r = loop_add_timer(loop, on_timer, ctx, &source);
	if (!r)
		r = loop_add_signal(loop, SIGUSR2, on_signal, ctx, &source);
	loop_free(loop);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_int_equal(allocfail_each(build, NULL), 3);
}

static void on_slow(void *ctx)
{
	usleep(25000);
	probe_called(ctx);
}

/* Turns are counted by their time, and the longest callback has its name. A busy machine makes a
 * turn longer, never shorter. */
static void test_turns(void **state)
{
	struct probe p = {.stop_after = 3};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	p.loop = loop;
	assert_int_equal(loop_add_timer(loop, on_slow, &p, &p.source), 0);
	assert_int_equal(loop_arm(p.source, 1, 1), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(metrics_get(loop_collect, loop, "podprof_loop_turn_seconds", "0.02"), 0);
	assert_int_equal(metrics_get(loop_collect, loop, "podprof_loop_turn_seconds", "10.0"), 3);
	assert_int_equal(metrics_get(loop_collect, loop, "podprof_loop_turn_seconds", "+Inf"), 3);
	assert_int_equal(metrics_get(loop_collect, loop, "podprof_loop_turn_seconds", ""), 3);
	(void)metrics_get(loop_collect, loop, "podprof_loop_longest_callback_seconds",
			  "test/unit/base/test_loop.c:on_slow,wall");
	assert_int_equal(metrics_get(loop_collect, loop, "podprof_loop_longest_callback_seconds",
				     "test/unit/base/test_loop.c:on_slow,cpu"),
			 0);
	loop_free(loop);
}

/* A callback that works for some CPU time, or sleeps. */
struct clocked {
	struct loop_source *source;
	uint64_t work_ns; /* CPU time of the next call */
	uint64_t sleep_us;
	uint64_t longest_ns; /* CPU time of a call, as the callback reads the clock */
};

static void on_clocked(void *ctx)
{
	struct clocked *c = ctx;
	const uint64_t from_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	uint64_t ns;

	if (c->sleep_us)
		usleep((useconds_t)c->sleep_us);
	do
		ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) - from_ns;
	while (ns < c->work_ns);
	if (ns > c->longest_ns)
		c->longest_ns = ns;
}

struct clocked_turns {
	struct loop *loop;
	struct loop_source *source;
	struct clocked works, sleeps;
	int n;
};

#define CLOCKED_TURNS	 300
/* The longest calls are late, after many short ones. */
#define CLOCKED_LATE	 290
#define CLOCKED_NS	 (12 * NSEC_PER_MSEC)
/* What a callback may have of the calls before it, and a lot of room for the waits of the loop. */
#define CLOCKED_ERROR_NS (6 * NSEC_PER_MSEC)

static void on_clocked_turn(void *ctx)
{
	struct clocked_turns *t = ctx;

	if (++t->n == CLOCKED_TURNS) {
		loop_stop(t->loop);
		return;
	}
	t->works.work_ns = t->n == CLOCKED_LATE ? CLOCKED_NS : 10 * NSEC_PER_USEC;
	t->sleeps.sleep_us = t->n == CLOCKED_LATE ? 25000 : 0;
	assert_int_equal(loop_arm(t->works.source, 0, 0), 0);
	assert_int_equal(loop_arm(t->sleeps.source, 0, 0), 0);
	assert_int_equal(loop_arm(t->source, 0, 0), 0);
}

static uint64_t longest_ns(struct loop *loop, const char *labels)
{
	return (uint64_t)(1e9 * metrics_get_double(loop_collect, loop,
						   "podprof_loop_longest_callback_seconds",
						   labels));
}

/* The CPU clock is not read for each callback. Still no CPU time is missing, and a callback has
 * hardly any of the others'. All bounds are of CPU time, so that a busy machine changes nothing. */
static void test_clocks(void **state)
{
	struct clocked_turns t = {0};
	uint64_t works_ns, sleeps_ns;

	(void)state;
	assert_int_equal(loop_new(&t.loop), 0);
	assert_int_equal(loop_add_timer_as(t.loop, "turn", on_clocked_turn, &t, &t.source), 0);
	assert_int_equal(loop_add_timer_as(t.loop, "works", on_clocked, &t.works, &t.works.source),
			 0);
	assert_int_equal(
		loop_add_timer_as(t.loop, "sleeps", on_clocked, &t.sleeps, &t.sleeps.source), 0);
	assert_int_equal(loop_arm(t.source, 0, 0), 0);
	assert_int_equal(loop_run(t.loop), 0);
	works_ns = longest_ns(t.loop, "works,cpu");
	sleeps_ns = longest_ns(t.loop, "sleeps,cpu");
	assert_true(t.works.longest_ns >= CLOCKED_NS);
	assert_in_range(works_ns, t.works.longest_ns - 1, t.works.longest_ns + CLOCKED_ERROR_NS);
	assert_in_range(sleeps_ns, t.sleeps.longest_ns - 1, t.sleeps.longest_ns + CLOCKED_ERROR_NS);
	assert_true(works_ns <= longest_ns(t.loop, "works,wall"));
	assert_true(longest_ns(t.loop, "sleeps,wall") >= 25 * NSEC_PER_MSEC);
	loop_free(t.loop);
}

/* Work of ten steps beside a source that is always ready, and so is called once a turn. */
struct work {
	struct loop *loop;
	struct loop_source *source;
	int n_turns;
	int n_steps;
	int n_last;    /* at the turn before */
	int most;      /* steps between two turns */
	int stop_at;   /* the step that stops the loop */
	int remove_at; /* the step that removes its source */
};

static bool on_step(void *ctx)
{
	struct work *w = ctx;

	w->n_steps++;
	if (w->n_steps == w->stop_at)
		loop_stop(w->loop);
	if (w->n_steps == w->remove_at)
		loop_remove(w->source);
	return w->n_steps < 10;
}

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct work *w = ctx;

	(void)fd;
	(void)events;
	if (w->n_steps - w->n_last > w->most)
		w->most = w->n_steps - w->n_last;
	w->n_last = w->n_steps;
	if (++w->n_turns == 100)
		loop_stop(w->loop);
}

static void run_work(struct work *w, uint64_t slice_ns)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;

	assert_int_equal(loop_new(&w->loop), 0);
	loop_set_slice(w->loop, slice_ns);
	assert_int_equal(loop_add_fd(w->loop, fd, EPOLLIN, on_turn, w, &turn), 0);
	assert_int_equal(loop_add_steps(w->loop, on_step, w, &w->source), 0);
	assert_int_equal(loop_arm(w->source, 0, 0), 0);
	assert_int_equal(loop_run(w->loop), 0);
	loop_free(w->loop);
	close(fd);
}

static void test_steps(void **state)
{
	struct work one = {0}, all = {0}, stopped = {.stop_at = 3}, removed = {.remove_at = 3};

	(void)state;
	run_work(&one, 0);
	assert_int_equal(one.n_steps, 10);
	assert_int_equal(one.most, 1);
	run_work(&all, 3600 * NSEC_PER_SEC);
	assert_int_equal(all.n_steps, 10);
	assert_int_equal(all.most, 10);
	run_work(&stopped, 3600 * NSEC_PER_SEC);
	assert_int_equal(stopped.n_steps, 3);
	run_work(&removed, 3600 * NSEC_PER_SEC);
	assert_int_equal(removed.n_steps, 3);
}

/* ---------------------------------------------------------------- without a delay */

static void test_due(void **state)
{
	struct probe due = {0}, disarmed = {0}, later = {0}, removed = {0}, again = {0};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &due, &due.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &disarmed, &disarmed.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &later, &later.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &removed, &removed.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &again, &again.source), 0);
	assert_int_equal(loop_arm(due.source, 0, 0), 0);
	assert_int_equal(loop_arm(due.source, 1, 0), 0);
	assert_int_equal(loop_arm(disarmed.source, 0, 0), 0);
	assert_int_equal(loop_arm(later.source, 0, 0), 0);
	assert_int_equal(loop_arm(removed.source, 0, 0), 0);
	assert_int_equal(timers_armed(), 0);
	assert_int_equal(loop_disarm(disarmed.source), 0);
	assert_int_equal(loop_arm(later.source, 3600 * NSEC_PER_SEC, 0), 0);
	due.other = removed.source; /* called before: its source came first */
	assert_int_equal(loop_arm(again.source, 3600 * NSEC_PER_SEC, 0), 0);
	assert_int_equal(loop_arm(again.source, 0, 0), 0);
	run_idle(loop);
	assert_int_equal(due.calls, 1);
	assert_int_equal(disarmed.calls, 0);
	assert_int_equal(later.calls, 0);
	assert_int_equal(removed.calls, 0);
	assert_int_equal(again.calls, 1);
	assert_int_equal(loop_arm(disarmed.source, 0, 0), 0);
	assert_int_equal(loop_arm(due.source, 0, 0), 0); /* freed with the loop */
	loop_remove(due.source);
	loop_free(loop);
}

/* Due sources that a stop leaves are called in the next run, in their order. */
static void test_due_after_stop(void **state)
{
	struct probe first = {.stop_after = 1}, second = {.stop_after = 1},
		     third = {.stop_after = 1};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	first.loop = second.loop = third.loop = loop;
	assert_int_equal(loop_add_timer(loop, on_timer, &first, &first.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &second, &second.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &third, &third.source), 0);
	assert_int_equal(loop_arm(first.source, 0, 0), 0);
	assert_int_equal(loop_arm(second.source, 0, 0), 0);
	assert_int_equal(loop_arm(third.source, 0, 0), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(first.calls + second.calls, 1);
	assert_int_equal(first.calls, 1);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(second.calls, 1);
	assert_int_equal(third.calls, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(third.calls, 1);
	loop_free(loop);
}

/* An event that stops each run does not put off a due source. */
static void test_due_before_events(void **state)
{
	struct probe due = {0}, stops = {.fd = eventfd(1, EFD_CLOEXEC), .stop_after = 1};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	stops.loop = loop;
	assert_int_equal(loop_add_fd(loop, stops.fd, EPOLLIN, on_fd, &stops, &stops.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &due, &due.source), 0);
	assert_int_equal(loop_arm(due.source, 0, 0), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(stops.calls, 1);
	assert_int_equal(due.calls, 1);
	loop_free(loop);
	close(stops.fd);
}

/* Threads that make sources due while the loop waits, or does not run yet. */
#define WAKERS 4
#define WAKES  20000

struct waker {
	struct probe probe;
	pthread_t thread;
	_Atomic int seen; /* calls of the source */
};

static void on_woken(void *ctx)
{
	struct waker *w = ctx;

	probe_called(&w->probe);
	atomic_store(&w->seen, w->probe.calls);
}

static void *wake(void *ctx)
{
	struct waker *w = ctx;

	for (int i = 0; i < WAKES; i++) {
		assert_int_equal(loop_arm(w->probe.source, 0, 0), 0);
		while (atomic_load(&w->seen) <= i) /* no call is lost */
			sched_yield();
	}
	return NULL;
}

static void on_all(void *ctx)
{
	struct waker *wakers = ctx;
	int n = 0;

	for (int i = 0; i < WAKERS; i++)
		n += wakers[i].probe.calls >= WAKES;
	if (n == WAKERS)
		loop_stop(wakers->probe.loop);
}

static void test_wake(void **state)
{
	struct waker wakers[WAKERS] = {0};
	struct loop_source *all;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	for (int i = 0; i < WAKERS; i++) {
		wakers[i].probe.loop = loop;
		assert_int_equal(
			loop_add_timer(loop, on_woken, &wakers[i], &wakers[i].probe.source), 0);
		assert_int_equal(pthread_create(&wakers[i].thread, NULL, wake, &wakers[i]), 0);
	}
	assert_int_equal(loop_add_timer(loop, on_all, wakers, &all), 0);
	assert_int_equal(loop_arm(all, 10 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(loop), 0);
	for (int i = 0; i < WAKERS; i++)
		pthread_join(wakers[i].thread, NULL);
	loop_free(loop);
}

/* The timer itself, without slack: nothing else wakes the loop. No timer of the kernel is armed. */
static void test_within(void **state)
{
	struct probe p = {.stop_after = 1};
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(loop_new(&p.loop), 0);
	assert_int_equal(loop_add_timer(p.loop, on_timer, &p, &p.source), 0);
	begin_ns = nsec_monotonic();
	assert_int_equal(loop_arm_within(p.source, 5 * NSEC_PER_MSEC, 0), 0);
	assert_int_equal(timers_armed(), 0);
	assert_int_equal(loop_n_within(p.loop), 1);
	assert_int_equal(loop_run(p.loop), 0);
	assert_int_equal(loop_n_within(p.loop), 0);
	assert_int_equal(p.calls, 1);
	assert_true(nsec_monotonic() - begin_ns >= 5 * NSEC_PER_MSEC);
	loop_free(p.loop);
}

/* A callback that fires again in the next turn, and counts the turns. */
struct again {
	struct probe probe;
	struct probe *turns;
	int last_turn;
};

static void on_again(void *ctx)
{
	struct again *a = ctx;

	assert_true(a->turns->calls > a->last_turn);
	a->last_turn = a->turns->calls;
	assert_int_equal(loop_arm_within(a->probe.source, 0, 3600 * NSEC_PER_SEC), 0);
	probe_called(&a->probe);
}

/* With an hour of slack, another timer's turns call it, and once each. */
static void test_within_slack(void **state)
{
	struct probe turns = {0};
	struct again a = {.probe = {.stop_after = 10}, .turns = &turns};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	turns.loop = a.probe.loop = loop;
	assert_int_equal(loop_add_timer(loop, on_timer, &turns, &turns.source), 0);
	assert_int_equal(loop_add_timer(loop, on_again, &a, &a.probe.source), 0);
	assert_int_equal(loop_arm(turns.source, NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(loop_arm_within(a.probe.source, 3 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC),
			 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(a.probe.calls, 10);
	loop_free(loop);
}

static void disarm(struct loop_source *timer)
{
	assert_int_equal(loop_disarm(timer), 0);
}

static void arm_later(struct loop_source *timer)
{
	assert_int_equal(loop_arm(timer, 3600 * NSEC_PER_SEC, 0), 0);
}

static void within_later(struct loop_source *timer)
{
	assert_int_equal(loop_arm_within(timer, 3600 * NSEC_PER_SEC, 0), 0);
}

/* Replaced, disarmed or removed, by itself and in any place of the list. */
static void test_within_ended(void **state)
{
	static void (*const ends[])(struct loop_source * timer) = {disarm, arm_later, within_later,
								   loop_remove};

	(void)state;
	for (size_t i = 0; i < array_size(ends) * 3; i++) {
		struct probe ended = {0}, p[3] = {{0}, {0}, {.stop_after = 1}};
		struct loop *loop;

		assert_int_equal(loop_new(&loop), 0);
		assert_int_equal(loop_add_timer(loop, on_timer, &ended, &ended.source), 0);
		for (size_t k = 0; k < array_size(p); k++) {
			p[k].loop = loop;
			if (k == i % 3)
				assert_int_equal(loop_arm_within(ended.source, 0, 0), 0);
			assert_int_equal(loop_add_timer(loop, on_timer, &p[k], &p[k].source), 0);
			assert_int_equal(loop_arm_within(p[k].source, k == 2 ? NSEC_PER_MSEC : 0,
							 k == 2 ? 0 : NSEC_PER_SEC),
					 0);
		}
		ends[i / 3](ended.source);
		assert_int_equal(loop_run(loop), 0);
		assert_int_equal(ended.calls, 0);
		assert_int_equal(p[0].calls, 1);
		assert_int_equal(p[1].calls, 1);
		loop_free(loop);
	}
}

/* A timer that was armed in the other way before fires once. */
static void test_within_replaces(void **state)
{
	struct probe p = {.stop_after = 2}, end = {.stop_after = 1};
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	p.loop = end.loop = loop;
	assert_int_equal(loop_add_timer(loop, on_timer, &p, &p.source), 0);
	assert_int_equal(loop_add_timer(loop, on_timer, &end, &end.source), 0);
	assert_int_equal(loop_arm(p.source, 2 * NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(loop_arm_within(p.source, NSEC_PER_MSEC, 0), 0);
	assert_int_equal(loop_arm_within(end.source, 20 * NSEC_PER_MSEC, 0), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(p.calls, 1);
	assert_int_equal(timers_armed(), 0);
	loop_free(loop);
}

/* More names than there is room for. */
static void test_names(void **state)
{
	struct loop_source *source;
	char names[LOOP_NAMES_MAX + 2][8];
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	for (size_t i = 0; i < array_size(names); i++) {
		snprintf(names[i], sizeof(names[i]), "n%zu", i);
		assert_int_equal(loop_add_timer_as(loop, names[i], on_slow, NULL, &source), 0);
		assert_int_equal(loop_add_timer_as(loop, names[i], on_slow, NULL, &source), 0);
	}
	(void)metrics_get(loop_collect, loop, "podprof_loop_longest_callback_seconds", "n63,cpu");
	(void)metrics_get(loop_collect, loop, "podprof_loop_longest_callback_seconds", "other,cpu");
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fd),
		cmocka_unit_test(test_bad_fd),
		cmocka_unit_test(test_remove_other),
		cmocka_unit_test(test_remove_self),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_due_after_stop),
		cmocka_unit_test(test_due_before_events),
		cmocka_unit_test(test_wake),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_within_slack),
		cmocka_unit_test(test_within_ended),
		cmocka_unit_test(test_within_replaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
