// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"

struct work_list {
	struct work *first;
	struct work **last;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock; /* guards todo, finished and stop */
	pthread_cond_t wake;
	struct work_list todo;
	struct work_list finished;
	bool stop;
	size_t n_waiting; /* under the lock: jobs in todo */
	size_t queue_max;
	size_t n_pending; /* loop's thread only */
	int event_fd;
	struct loop_source *source;
};

static void work_list_init(struct work_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void work_list_push(struct work_list *list, struct work *work)
{
	work->next = NULL;
	*list->last = work;
	list->last = &work->next;
}

static struct work *work_list_pop(struct work_list *list)
{
	struct work *work = list->first;

	if (work) {
		list->first = work->next;
		if (!list->first)
			list->last = &list->first;
	}
	return work;
}

static void worker_finish(struct worker *w, struct work *work)
{
	uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	work_list_push(&w->finished, work);
	pthread_mutex_unlock(&w->lock);
	/* cannot fail: the counter would have to reach 2^64-1 */
	(void)!write(w->event_fd, &one, sizeof(one));
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct work *work;

		while (!w->stop && !w->todo.first)
			pthread_cond_wait(&w->wake, &w->lock);
		if (w->stop)
			break;
		work = work_list_pop(&w->todo);
		w->n_waiting--;
		pthread_mutex_unlock(&w->lock);
		work->run(work);
		worker_finish(w, work);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static struct work *worker_pop(struct worker *w, struct work_list *list)
{
	struct work *work;

	pthread_mutex_lock(&w->lock);
	work = work_list_pop(list);
	pthread_mutex_unlock(&w->lock);
	return work;
}

static void worker_deliver(struct worker *w)
{
	struct work *work;

	while ((work = worker_pop(w, &w->finished))) {
		w->n_pending--;
		work->done(work);
	}
}

static void on_finished(void *ctx, int fd, uint32_t events)
{
	uint64_t count;

	(void)events;
	(void)!read(fd, &count, sizeof(count));
	worker_deliver(ctx);
}

/* The thread takes no signals: they are the loop's. */
static int worker_start(struct worker *w, const char *name)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	pthread_setname_np(w->thread, name);
	return 0;
}

int worker_new(struct loop *loop, const char *name, size_t queue_max, struct worker **ret)
{
	_cleanup_(freep) struct worker *w = calloc(1, sizeof(*w));
	_cleanup_(close_fdp) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (!w)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	work_list_init(&w->todo);
	work_list_init(&w->finished);
	w->queue_max = queue_max;
	w->event_fd = fd;
	r = loop_add_fd(loop, fd, EPOLLIN, on_finished, w, &w->source);
	if (r)
		return r;
	r = worker_start(w, name);
	if (r) {
		loop_remove(w->source);
		return r;
	}
	(void)take_fd(fd);
	*ret = take_ptr(w);
	return 0;
}

void worker_free(struct worker *w)
{
	struct work *work;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	worker_deliver(w);
	while ((work = work_list_pop(&w->todo))) {
		work->cancelled = 1;
		work->done(work);
	}
	loop_remove(w->source);
	close(w->event_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int worker_submit(struct worker *w, struct work *work)
{
	bool full;

	work->cancelled = 0;
	pthread_mutex_lock(&w->lock);
	full = w->n_waiting >= w->queue_max;
	if (!full) {
		work_list_push(&w->todo, work);
		w->n_waiting++;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	if (full)
		return WORKER_FULL;
	w->n_pending++;
	return 0;
}

bool worker_wait(struct worker *w, uint64_t timeout_ns)
{
	struct pollfd ended = {.fd = w->event_fd, .events = POLLIN};

	if (!w->n_pending || poll(&ended, 1, (int)(timeout_ns / NSEC_PER_MSEC)) <= 0)
		return false;
	on_finished(w, w->event_fd, EPOLLIN);
	return true;
}

size_t worker_pending(const struct worker *w)
{
	return w->n_pending;
}
