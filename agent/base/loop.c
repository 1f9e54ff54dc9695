// SPDX-License-Identifier: Apache-2.0
/*
 * Each timer and signal is a descriptor of its own (timerfd, signalfd): a dozen at most, kept in
 * order by the kernel.
 *
 * A timer without a delay needs no timer of the kernel: to set one that is due at once costs an
 * interrupt, and in a virtual machine an exit. Its source comes into the list of due sources, which
 * the loop calls after the events. Another thread wakes the loop by an eventfd.
 *
 * A timer within a time (loop_arm_within()) has no timer of the kernel either: the loop waits for
 * events no longer than until the first of these times ends. So such a timer costs no system call
 * and, if the loop wakes for something else meanwhile, no wake-up.
 *
 * A callback may remove a source whose event is still waiting in the batch from epoll_wait(). A
 * removed source therefore leaves epoll at once but is freed only after the batch.
 */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/wakeup.h"

#define LOOP_BATCH 64

/* The CPU clock is a system call, so it is not read for each callback. After so many callbacks
 * without a read, or so much of their time, it is. */
#define LOOP_UNREAD    32
#define LOOP_UNREAD_NS NSEC_PER_MSEC

/* Upper bounds of the buckets of turns. 0.02 is the goal: with more, health checks and the emptying
 * of the kernel's maps begin to be late. */
static const double turn_bounds[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
				     0.2,   0.5,   1,	  2,	5,    10};

/* Time that passes, and time that the loop's thread has a CPU: the first is longer on a busy node.
 */
enum loop_clock { LOOP_CLOCK_WALL, LOOP_CLOCK_CPU, LOOP_CLOCK_MAX };

static const char *const clock_names[LOOP_CLOCK_MAX] = {
	[LOOP_CLOCK_WALL] = "wall",
	[LOOP_CLOCK_CPU] = "cpu",
};

/* All callbacks of one name. */
struct callback_time {
	const char *name;
	uint64_t longest_ns[LOOP_CLOCK_MAX];
};

/* Of the running thread. */
struct loop_clocks {
	uint64_t wall_ns;   /* end of the last callback, or begin of the turn */
	uint64_t cpu_ns;    /* read last */
	uint64_t unread_ns; /* of callbacks since then */
	unsigned int n_unread;
};

enum armed { ARMED_NOT, ARMED_ONCE, ARMED_PERIODIC };

struct loop_source {
	struct loop *loop;
	struct callback_time *time;	 /* of the loop */
	struct loop_source *prev, *next; /* loop->sources, or loop->removed by next */
	int fd;
	bool removed;
	/* of a timer, set by any thread */
	_Atomic enum armed armed; /* the timerfd */
	atomic_bool is_due;
	atomic_bool is_queued; /* in loop->due, perhaps not due any more */
	struct loop_source *next_due;
	/* of a timer within a time; the loop's thread */
	bool is_within;		    /* in loop->within */
	uint64_t from_ns, until_ns; /* monotonic */
	struct loop_source *next_within;
	enum { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNAL, SOURCE_STEPS } kind;
	union {
		loop_fd_fn fd;
		loop_timer_fn timer;
		loop_signal_fn signal;
		loop_step_fn step;
	} fn;
	void *ctx;
};

struct loop {
	int epoll_fd;
	int wake_fd;			   /* by make_due() */
	atomic_bool is_woken;		   /* @wake_fd is written since the last turn */
	_Atomic pthread_t thread;	   /* of loop_run() */
	_Atomic(struct loop_source *) due; /* by next_due, the last first */
	struct loop_source *within;	   /* by next_within; a dozen at most */
	bool stop;
	uint64_t slice_ns;
	uint64_t slice_end_ns; /* monotonic: of this turn */
	struct loop_source *sources;
	struct loop_source *removed;
	uint64_t turns[array_size(turn_bounds) + 1]; /* by duration */
	uint64_t turns_ns;
	struct loop_clocks clocks;
	struct callback_time times[LOOP_NAMES_MAX + 1]; /* the last: others */
};

int loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	/* by edges: nothing to read */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};

	if (!loop)
		return -ENOMEM;
	loop->slice_ns = LOOP_SLICE_NS;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = wakeup_open();
	if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &ev) < 0) {
		int err = errno;

		loop_free(loop);
		return -err;
	}
	*ret = loop;
	return 0;
}

void loop_set_slice(struct loop *loop, uint64_t slice_ns)
{
	loop->slice_ns = slice_ns;
}

/* A source in the list of due ones stays until it comes out of the list. */
static void loop_free_removed(struct loop *loop)
{
	struct loop_source **at = &loop->removed;

	while (*at) {
		struct loop_source *source = *at;

		if (atomic_load(&source->is_queued)) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		free(source);
	}
}

/* The due sources, the first first. */
static struct loop_source *take_due(struct loop *loop)
{
	struct loop_source *taken = atomic_exchange(&loop->due, NULL), *first = NULL;

	while (taken) {
		struct loop_source *next = taken->next_due;

		taken->next_due = first;
		first = taken;
		taken = next;
	}
	return first;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->sources)
		loop_remove(loop->sources);
	for (struct loop_source *source = take_due(loop); source; source = source->next_due)
		atomic_store(&source->is_queued, false);
	loop_free_removed(loop);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

static struct callback_time *time_of(struct loop *loop, const char *name)
{
	size_t i = 0;

	while (i < LOOP_NAMES_MAX && loop->times[i].name && strcmp(loop->times[i].name, name) != 0)
		i++;
	loop->times[i].name = i < LOOP_NAMES_MAX ? name : "other";
	return &loop->times[i];
}

static int loop_add(struct loop *loop, const char *name, struct loop_source *template,
		    uint32_t events, struct loop_source **ret)
{
	struct loop_source *source = malloc(sizeof(*source));
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!source)
		return -ENOMEM;
	*source = *template;
	source->loop = loop;
	source->time = time_of(loop, name);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &ev) < 0) {
		int err = errno;

		free(source);
		return -err;
	}
	source->next = loop->sources;
	if (source->next)
		source->next->prev = source;
	loop->sources = source;
	*ret = source;
	return 0;
}

int loop_add_fd_as(struct loop *loop, const char *name, int fd, uint32_t events, loop_fd_fn fn,
		   void *ctx, struct loop_source **ret)
{
	struct loop_source source = {.fd = fd, .kind = SOURCE_FD, .fn.fd = fn, .ctx = ctx};

	return loop_add(loop, name, &source, events, ret);
}

int loop_change_fd(struct loop_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	return epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &ev) < 0 ? -errno : 0;
}

/* @template without its descriptor. */
static int add_timerfd(struct loop *loop, const char *name, struct loop_source *template,
		       struct loop_source **ret)
{
	_cleanup_(close_fdp) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r;

	if (fd < 0)
		return -errno;
	template->fd = fd;
	r = loop_add(loop, name, template, EPOLLIN, ret);
	if (r == 0)
		(void)take_fd(fd);
	return r;
}

int loop_add_timer_as(struct loop *loop, const char *name, loop_timer_fn fn, void *ctx,
		      struct loop_source **ret)
{
	struct loop_source source = {.kind = SOURCE_TIMER, .fn.timer = fn, .ctx = ctx};

	return add_timerfd(loop, name, &source, ret);
}

int loop_add_steps_as(struct loop *loop, const char *name, loop_step_fn fn, void *ctx,
		      struct loop_source **ret)
{
	struct loop_source source = {.kind = SOURCE_STEPS, .fn.step = fn, .ctx = ctx};

	return add_timerfd(loop, name, &source, ret);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC)};
}

static void push_due(struct loop *loop, struct loop_source *source)
{
	struct loop_source *first = atomic_load(&loop->due);

	do
		source->next_due = first;
	while (!atomic_compare_exchange_weak(&loop->due, &first, source));
}

/* The loop's thread looks at the list before it waits. */
static void make_due(struct loop_source *source)
{
	struct loop *loop = source->loop;

	atomic_store(&source->is_due, true);
	if (!atomic_exchange(&source->is_queued, true))
		push_due(loop, source);
	if (!pthread_equal(atomic_load(&loop->thread), pthread_self()) &&
	    !atomic_exchange(&loop->is_woken, true))
		wakeup_send(loop->wake_fd);
}

static void within_remove(struct loop_source *timer)
{
	if (!timer->is_within)
		return;
	LL_DELETE2(timer->loop->within, timer, next_within);
	timer->is_within = false;
}

int loop_arm(struct loop_source *timer, uint64_t delay_ns, uint64_t period_ns)
{
	struct itimerspec spec = {
		.it_value = timespec_of(delay_ns ? delay_ns : 1), /* 0 would disarm the timer */
		.it_interval = timespec_of(period_ns),
	};

	within_remove(timer);
	if (delay_ns <= 1 && !period_ns && atomic_load(&timer->armed) == ARMED_NOT) {
		make_due(timer);
		return 0;
	}
	atomic_store(&timer->is_due, false);
	atomic_store(&timer->armed, period_ns ? ARMED_PERIODIC : ARMED_ONCE);
	return timerfd_settime(timer->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int loop_disarm(struct loop_source *timer)
{
	struct itimerspec spec = {0};

	within_remove(timer);
	atomic_store(&timer->is_due, false);
	if (atomic_exchange(&timer->armed, ARMED_NOT) == ARMED_NOT)
		return 0;
	return timerfd_settime(timer->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int loop_arm_within(struct loop_source *timer, uint64_t delay_ns, uint64_t slack_ns)
{
	struct loop *loop = timer->loop;
	const int r = loop_disarm(timer);

	if (r)
		return r;
	timer->from_ns = nsec_monotonic() + delay_ns;
	timer->until_ns = timer->from_ns + slack_ns;
	LL_PREPEND2(loop->within, timer, next_within);
	timer->is_within = true;
	return 0;
}

size_t loop_n_within(const struct loop *loop)
{
	const struct loop_source *s;
	size_t n;

	LL_COUNT2(loop->within, s, n, next_within);
	return n;
}

int loop_add_signal_as(struct loop *loop, const char *name, int signo, loop_signal_fn fn, void *ctx,
		       struct loop_source **ret)
{
	_cleanup_(close_fdp) int fd = -1;
	struct loop_source source = {.kind = SOURCE_SIGNAL, .fn.signal = fn, .ctx = ctx};
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, signo);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	source.fd = fd;
	r = loop_add(loop, name, &source, EPOLLIN, ret);
	if (r == 0)
		(void)take_fd(fd);
	return r;
}

void loop_remove(struct loop_source *source)
{
	struct loop *loop;

	if (!source || source->removed)
		return;
	loop = source->loop;
	within_remove(source);
	/* fails only if the caller has closed, and thereby removed, the descriptor already */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (source->kind != SOURCE_FD)
		close(source->fd);
	if (source->prev)
		source->prev->next = source->next;
	else
		loop->sources = source->next;
	if (source->next)
		source->next->prev = source->prev;
	source->removed = true;
	source->next = loop->removed;
	loop->removed = source;
}

/* @source may be removed by a step. */
static void run_steps(struct loop_source *source)
{
	const struct loop *loop = source->loop;
	bool more;

	do
		more = source->fn.step(source->ctx);
	while (more && !source->removed && !loop->stop && nsec_monotonic() < loop->slice_end_ns);
	if (more && !source->removed)
		(void)loop_arm(source, 0, 0);
}

/* False: re-armed between epoll_wait() and here, so not due any more. */
static bool has_expired(struct loop_source *timer)
{
	const enum armed armed = atomic_load(&timer->armed);
	uint64_t expirations;

	/* before the read: another thread may arm the timer after it */
	if (armed == ARMED_ONCE)
		atomic_store(&timer->armed, ARMED_NOT);
	if (read(timer->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		return true;
	atomic_store(&timer->armed, armed);
	return false;
}

static void run_timer(struct loop_source *source)
{
	if (source->kind == SOURCE_STEPS)
		run_steps(source);
	else
		source->fn.timer(source->ctx);
}

static void dispatch(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo info;

	if (source->removed)
		return;
	switch (source->kind) {
	case SOURCE_FD:
		source->fn.fd(source->ctx, source->fd, events);
		break;
	case SOURCE_TIMER:
	case SOURCE_STEPS:
		if (has_expired(source))
			run_timer(source);
		break;
	case SOURCE_SIGNAL:
		if (read(source->fd, &info, sizeof(info)) == sizeof(info))
			source->fn.signal(source->ctx, (int)info.ssi_signo);
		break;
	}
}

static void count_turn(struct loop *loop, uint64_t ns)
{
	size_t i = 0;

	while (i < array_size(turn_bounds) && (double)ns > turn_bounds[i] * (double)NSEC_PER_SEC)
		i++;
	loop->turns[i]++;
	loop->turns_ns += ns;
}

static void clocks_init(struct loop_clocks *clocks)
{
	*clocks = (struct loop_clocks){.cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID)};
}

/* The CPU time since the last read. */
static uint64_t clocks_read_cpu(struct loop_clocks *clocks)
{
	const uint64_t now_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID),
		       past_ns = now_ns - clocks->cpu_ns;

	clocks->cpu_ns = now_ns;
	clocks->unread_ns = 0;
	clocks->n_unread = 0;
	return past_ns;
}

static void keep_longest(struct callback_time *time, enum loop_clock clock, uint64_t ns)
{
	if (ns > time->longest_ns[clock])
		time->longest_ns[clock] = ns;
}

/*
 * Counts a callback that began at @clocks->wall_ns. A callback has at most as much CPU time as
 * time, so one that is shorter than the longest CPU time so far changes nothing. Otherwise the CPU
 * time is the smaller of its time and the CPU time since the last read. This is never less than its
 * CPU time, and more by that of the unread callbacks and of the waits between them at most.
 */
static void count_callback(struct callback_time *time, struct loop_clocks *clocks)
{
	const uint64_t now_ns = nsec_monotonic(), wall_ns = now_ns - clocks->wall_ns;
	const bool is_long = wall_ns > time->longest_ns[LOOP_CLOCK_CPU];

	clocks->wall_ns = now_ns;
	clocks->unread_ns += wall_ns;
	clocks->n_unread++;
	keep_longest(time, LOOP_CLOCK_WALL, wall_ns);
	if (is_long || clocks->n_unread >= LOOP_UNREAD || clocks->unread_ns >= LOOP_UNREAD_NS) {
		const uint64_t cpu_ns = clocks_read_cpu(clocks);

		keep_longest(time, LOOP_CLOCK_CPU, cpu_ns < wall_ns ? cpu_ns : wall_ns);
	}
}

static void run_due(struct loop *loop, struct loop_source *rest)
{
	struct loop_source *source;

	while ((source = rest)) {
		rest = source->next_due;
		if (loop->stop) { /* for the next run */
			push_due(loop, source);
			continue;
		}
		atomic_store(&source->is_queued, false);
		if (!atomic_exchange(&source->is_due, false) || source->removed)
			continue;
		run_timer(source);
		count_callback(source->time, &loop->clocks);
	}
}

/* The source that may fire first, if it may at @now_ns, and out of the list. */
static struct loop_source *within_take(struct loop *loop, uint64_t now_ns)
{
	struct loop_source *first = loop->within;

	for (struct loop_source *s = first; s; s = s->next_within)
		first = s->from_ns < first->from_ns ? s : first;
	if (!first || first->from_ns > now_ns)
		return NULL;
	within_remove(first);
	return first;
}

/* What fires, may fire again from the next turn on: then it is after @now_ns, the begin of this
 * one.
 */
static void run_within(struct loop *loop, uint64_t now_ns)
{
	struct loop_source *source;

	while (!loop->stop && (source = within_take(loop, now_ns))) {
		run_timer(source);
		count_callback(source->time, &loop->clocks);
	}
}

/* For epoll_wait(): until something is due, -1 without end. Rounded up, so that something is. */
static int wait_ms(const struct loop *loop)
{
	uint64_t until_ns = UINT64_MAX, now_ns, ms;

	if (atomic_load(&loop->due))
		return 0;
	if (!loop->within)
		return -1;
	for (const struct loop_source *s = loop->within; s; s = s->next_within)
		until_ns = s->until_ns < until_ns ? s->until_ns : until_ns;
	now_ns = nsec_monotonic();
	if (until_ns <= now_ns)
		return 0;
	ms = (until_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void run_turn(struct loop *loop, const struct epoll_event *events, int n)
{
	struct loop_source *due = take_due(loop); /* what comes due in this turn waits */
	const uint64_t begun_ns = nsec_monotonic();

	loop->clocks.wall_ns = begun_ns;
	loop->slice_end_ns = begun_ns + loop->slice_ns;
	for (int i = 0; i < n && !loop->stop; i++) {
		/* freed after the batch even if the callback removes its source */
		struct loop_source *source = events[i].data.ptr;

		if (!source)
			continue; /* woken */
		dispatch(source, events[i].events);
		count_callback(source->time, &loop->clocks);
	}
	run_due(loop, due);
	run_within(loop, begun_ns);
	count_turn(loop, loop->clocks.wall_ns - begun_ns);
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[LOOP_BATCH];

	loop->stop = false;
	atomic_store(&loop->thread, pthread_self());
	clocks_init(&loop->clocks);
	/* a run that its first event stops does not put them off */
	if (atomic_load(&loop->due))
		run_turn(loop, NULL, 0);
	while (!loop->stop) {
		int n = epoll_wait(loop->epoll_fd, events, LOOP_BATCH, wait_ms(loop));

		if (n < 0 && errno != EINTR)
			return -errno;
		atomic_store(&loop->is_woken, false); /* before the list is taken */
		run_turn(loop, events, n);
		loop_free_removed(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

void loop_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc turns = {
		"podprof_loop_turn_seconds", METRIC_HISTOGRAM,
		"Time that the event loop works between two waits for events.", "seconds"};
	static const struct metric_family_desc longest = {
		"podprof_loop_longest_callback_seconds", METRIC_GAUGE,
		"Longest call of each callback of the event loop since the start.", "seconds"};
	const struct loop *loop = ctx;
	const struct metric_histogram histogram = {
		.bounds = turn_bounds,
		.counts = loop->turns,
		.n_bounds = array_size(turn_bounds),
		.sum = (double)loop->turns_ns / (double)NSEC_PER_SEC,
	};

	metric_histogram(sink, &turns, &histogram);
	metric_family(sink, &longest);
	for (size_t i = 0; i < array_size(loop->times) && loop->times[i].name; i++)
		for (enum loop_clock c = 0; c < LOOP_CLOCK_MAX; c++)
			metric_double(
				sink, (double)loop->times[i].longest_ns[c] / (double)NSEC_PER_SEC,
				(const struct metric_label[]){{"callback", loop->times[i].name},
							      {"clock", clock_names[c]}},
				2);
}
