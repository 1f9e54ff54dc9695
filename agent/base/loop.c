// SPDX-License-Identifier: Apache-2.0
/*
 * Each timer and signal is a descriptor of its own (timerfd, signalfd): a dozen at most, kept in
 * order by the kernel.
 *
 * A callback may remove a source whose event is still waiting in the batch from epoll_wait(). A
 * removed source therefore leaves epoll at once but is freed only after the batch.
 */
#include "base/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"

#define LOOP_BATCH 64

struct loop_source {
	struct loop *loop;
	struct loop_source *prev, *next; /* loop->sources, or loop->removed by next */
	int fd;
	bool removed;
	enum { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNAL } kind;
	union {
		loop_fd_fn fd;
		loop_timer_fn timer;
		loop_signal_fn signal;
	} fn;
	void *ctx;
};

struct loop {
	int epoll_fd;
	bool stop;
	struct loop_source *sources;
	struct loop_source *removed;
};

int loop_new(struct loop **ret)
{
	_cleanup_(freep) struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	*ret = take_ptr(loop);
	return 0;
}

static void loop_free_removed(struct loop *loop)
{
	while (loop->removed) {
		struct loop_source *source = loop->removed;

		loop->removed = source->next;
		free(source);
	}
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->sources)
		loop_remove(loop->sources);
	loop_free_removed(loop);
	close(loop->epoll_fd);
	free(loop);
}

static int loop_add(struct loop *loop, struct loop_source *template, uint32_t events,
		    struct loop_source **ret)
{
	struct loop_source *source = malloc(sizeof(*source));
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!source)
		return -ENOMEM;
	*source = *template;
	source->loop = loop;
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

int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *ctx,
		struct loop_source **ret)
{
	struct loop_source source = {.fd = fd, .kind = SOURCE_FD, .fn.fd = fn, .ctx = ctx};

	return loop_add(loop, &source, events, ret);
}

int loop_change_fd(struct loop_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	return epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &ev) < 0 ? -errno : 0;
}

int loop_add_timer(struct loop *loop, loop_timer_fn fn, void *ctx, struct loop_source **ret)
{
	_cleanup_(close_fdp) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct loop_source source = {.fd = fd, .kind = SOURCE_TIMER, .fn.timer = fn, .ctx = ctx};
	int r;

	if (fd < 0)
		return -errno;
	r = loop_add(loop, &source, EPOLLIN, ret);
	if (r == 0)
		(void)take_fd(fd);
	return r;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC)};
}

int loop_arm(struct loop_source *timer, uint64_t delay_ns, uint64_t period_ns)
{
	struct itimerspec spec = {
		.it_value = timespec_of(delay_ns ? delay_ns : 1), /* 0 would disarm the timer */
		.it_interval = timespec_of(period_ns),
	};

	return timerfd_settime(timer->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int loop_disarm(struct loop_source *timer)
{
	struct itimerspec spec = {0};

	return timerfd_settime(timer->fd, 0, &spec, NULL) < 0 ? -errno : 0;
}

int loop_add_signal(struct loop *loop, int signo, loop_signal_fn fn, void *ctx,
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
	r = loop_add(loop, &source, EPOLLIN, ret);
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

static void dispatch(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo info;
	uint64_t expirations;

	if (source->removed)
		return;
	switch (source->kind) {
	case SOURCE_FD:
		source->fn.fd(source->ctx, source->fd, events);
		break;
	case SOURCE_TIMER:
		/* re-armed between epoll_wait() and here: not due any more */
		if (read(source->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
			source->fn.timer(source->ctx);
		break;
	case SOURCE_SIGNAL:
		if (read(source->fd, &info, sizeof(info)) == sizeof(info))
			source->fn.signal(source->ctx, (int)info.ssi_signo);
		break;
	}
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[LOOP_BATCH];

	loop->stop = false;
	while (!loop->stop) {
		int n = epoll_wait(loop->epoll_fd, events, LOOP_BATCH, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !loop->stop; i++)
			dispatch(events[i].data.ptr, events[i].events);
		loop_free_removed(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}
