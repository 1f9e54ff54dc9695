// SPDX-License-Identifier: Apache-2.0
#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/thread.h"

#define STOP_PAUSE_NS NSEC_PER_MSEC
/* Delay of a finished job while other jobs wait. One turn of the loop then takes many short jobs: a
 * turn for each job costs more than a short job. */
#define GATHER_NS     (2 * NSEC_PER_MSEC)

struct work_list {
	struct work *first;
	struct work **last;
};

/* The first thread to decide that a job has ended, or is abandoned, wins. */
enum thread_state {
	THREAD_IDLE,
	THREAD_RUNNING,
	THREAD_HELD, /* about to be abandoned: wait for the decision */
	THREAD_ABANDONED,
};

/* If abandoned, the thread outlives the worker and frees this struct. */
struct worker_thread {
	struct worker *worker;
	pthread_t id;
	_Atomic int state;
	_Atomic uint64_t alive_ns;
	_Atomic pid_t tid;	 /* set before the first job */
	struct work *running;	 /* set before the state is THREAD_RUNNING */
	struct worker_left left; /* set before THREAD_ABANDONED */
};

struct worker {
	struct worker_thread *thread; /* NULL: abandoned at the end */
	const char *name;
	pthread_mutex_t lock; /* guards todo, finished and stop */
	pthread_cond_t wake;  /* a job in todo, or stop */
	pthread_cond_t ended; /* a job in finished */
	struct work_list todo;
	struct work_list finished;
	bool stop;
	size_t n_waiting; /* under the lock: jobs in todo */
	size_t queue_max;
	size_t n_pending; /* this and the next two: loop's thread only */
	void (*busy)(void *ctx);
	void (*idle)(void *ctx);
	void *listener;
	struct loop_source *source; /* steps; armed by the thread */
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

/* The timer of the first finished job also fires if the next job blocks. */
static void worker_finish(struct worker *w, struct work *work)
{
	bool is_first, is_last;

	pthread_mutex_lock(&w->lock);
	is_first = !w->finished.first;
	is_last = !w->todo.first;
	work_list_push(&w->finished, work);
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->lock);
	if (is_first || is_last) /* cannot fail: the timer is the worker's */
		(void)loop_arm(w->source, is_last ? 0 : GATHER_NS, 0);
}

/* The next job, or NULL when there will be none. The job counts as running before the lock is
 * released, so worker_stop() finds it in the queue or running, and worker_abandon() finds it
 * begun. */
static struct work *worker_next(struct worker *w, struct worker_thread *t)
{
	struct work *work = NULL;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !w->todo.first)
		pthread_cond_wait(&w->wake, &w->lock);
	if (!w->stop) {
		work = work_list_pop(&w->todo);
		w->n_waiting--;
		work->thread = t;
		t->running = work;
		if (work->begin)
			work->begin(work);
		atomic_store(&t->alive_ns, nsec_monotonic());
		atomic_store(&t->state, THREAD_RUNNING);
	}
	pthread_mutex_unlock(&w->lock);
	return work;
}

/* False if the job was given up in the meantime: then the worker may be no more. */
static bool thread_run(struct worker_thread *t, struct work *work)
{
	int state;

	work->run(work);
	do {
		state = THREAD_RUNNING;
		if (atomic_compare_exchange_strong(&t->state, &state, THREAD_IDLE))
			return true;
		sched_yield();
	} while (state == THREAD_HELD);
	return false;
}

static void *worker_main(void *arg)
{
	struct worker_thread *t = arg;
	struct work *work;

	atomic_store(&t->tid, gettid());
	while ((work = worker_next(t->worker, t))) {
		if (!thread_run(t, work)) {
			t->left.orphan(t->left.ctx, work);
			free(t);
			return NULL;
		}
		worker_finish(t->worker, work);
	}
	return NULL;
}

void work_alive(struct work *work)
{
	atomic_store(&work->thread->alive_ns, nsec_monotonic());
}

uint64_t worker_busy_ns(const struct worker *w)
{
	uint64_t alive_ns, now_ns;

	if (!w->thread || atomic_load(&w->thread->state) != THREAD_RUNNING)
		return 0;
	alive_ns = atomic_load(&w->thread->alive_ns);
	now_ns = nsec_monotonic();
	return now_ns > alive_ns ? now_ns - alive_ns : 1;
}

bool worker_running(const struct worker *w, struct worker_running *ret)
{
	if (!w->thread)
		return false;
	*ret = (struct worker_running){atomic_load(&w->thread->tid),
				       atomic_load(&w->thread->alive_ns)};
	return atomic_load(&w->thread->state) == THREAD_RUNNING;
}

static struct work *worker_pop(struct worker *w, struct work_list *list)
{
	struct work *work;

	pthread_mutex_lock(&w->lock);
	work = work_list_pop(list);
	pthread_mutex_unlock(&w->lock);
	return work;
}

/* One job. False: none has finished. */
static bool worker_deliver(struct worker *w)
{
	struct work *work = worker_pop(w, &w->finished);

	if (!work)
		return false;
	if (--w->n_pending == 0 && w->idle)
		w->idle(w->listener);
	work->done(work);
	return true;
}

static bool on_finished(void *ctx)
{
	return worker_deliver(ctx);
}

static int worker_start(struct worker *w)
{
	_cleanup_(freep) struct worker_thread *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->worker = w;
	r = thread_start(w->name, worker_main, t, &t->id);
	if (r)
		return r;
	w->thread = take_ptr(t);
	return 0;
}

int worker_abandon(struct worker *w, const struct worker_left *left)
{
	struct worker_thread *t = w->thread;
	int running = THREAD_RUNNING, r;

	if (!t || !atomic_compare_exchange_strong(&t->state, &running, THREAD_HELD))
		return WORKER_IDLE;
	pthread_mutex_lock(&w->lock); /* the new thread takes no job before all is said */
	r = w->stop ? 0 : worker_start(w);
	if (!r && left->seen)
		left->seen(left->ctx, t->running);
	pthread_mutex_unlock(&w->lock);
	if (r) {
		atomic_store(&t->state, THREAD_RUNNING);
		return r;
	}
	if (w->thread == t) /* the end needs no other, and there may be none to be had */
		w->thread = NULL;
	t->left = *left;
	w->n_pending--;
	pthread_detach(t->id);
	atomic_store(&t->state, THREAD_ABANDONED); /* from here on the thread may free @t */
	return 0;
}

int worker_new(struct loop *loop, const char *name, size_t queue_max, struct worker **ret)
{
	_cleanup_(freep) struct worker *w = calloc(1, sizeof(*w));
	pthread_condattr_t monotonic;
	int r;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	work_list_init(&w->todo);
	work_list_init(&w->finished);
	w->name = name;
	w->queue_max = queue_max;
	/* steps: any number of jobs may finish together, such as the reports of a window */
	r = loop_add_steps_as(loop, name, on_finished, w, &w->source);
	if (r)
		return r;
	r = worker_start(w);
	if (r) {
		loop_remove(w->source);
		return r;
	}
	*ret = take_ptr(w);
	return 0;
}

bool worker_stop(struct worker *w, uint64_t timeout_ns)
{
	const struct timespec pause = {.tv_nsec = STOP_PAUSE_NS};
	uint64_t end_ns = nsec_monotonic() + timeout_ns;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	while (worker_busy_ns(w) && nsec_monotonic() < end_ns)
		nanosleep(&pause, NULL);
	return !worker_busy_ns(w);
}

void worker_free(struct worker *w)
{
	struct work *work;

	if (!w)
		return;
	(void)worker_stop(w, 0);
	if (w->thread)
		pthread_join(w->thread->id, NULL);
	free(w->thread);
	while (worker_deliver(w))
		continue;
	while ((work = work_list_pop(&w->todo))) {
		work->cancelled = 1;
		work->done(work);
	}
	loop_remove(w->source);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void work_list_push_first(struct work_list *list, struct work *work)
{
	work->next = list->first;
	if (!list->first)
		list->last = &work->next;
	list->first = work;
}

static int submit(struct worker *w, struct work *work,
		  void (*push)(struct work_list *list, struct work *work))
{
	bool full;

	work->cancelled = 0;
	pthread_mutex_lock(&w->lock);
	full = w->n_waiting >= w->queue_max;
	if (!full) {
		push(&w->todo, work);
		w->n_waiting++;
	}
	pthread_mutex_unlock(&w->lock);
	if (full)
		return WORKER_FULL;
	/* with the lock held, the woken thread would sleep again until the unlock */
	pthread_cond_signal(&w->wake);
	if (w->n_pending++ == 0 && w->busy)
		w->busy(w->listener);
	return 0;
}

int worker_submit(struct worker *w, struct work *work)
{
	return submit(w, work, work_list_push);
}

int worker_submit_first(struct worker *w, struct work *work)
{
	return submit(w, work, work_list_push_first);
}

bool worker_wait(struct worker *w, uint64_t timeout_ns)
{
	const uint64_t end_ns = nsec_monotonic() + timeout_ns;
	const struct timespec end = {.tv_sec = (time_t)(end_ns / NSEC_PER_SEC),
				     .tv_nsec = (long)(end_ns % NSEC_PER_SEC)};
	int r = 0;

	if (!w->n_pending)
		return false;
	pthread_mutex_lock(&w->lock);
	while (!w->finished.first && !r)
		r = pthread_cond_timedwait(&w->ended, &w->lock, &end);
	pthread_mutex_unlock(&w->lock);
	return worker_deliver(w);
}

size_t worker_pending(const struct worker *w)
{
	return w->n_pending;
}

void worker_listen(struct worker *w, void (*busy)(void *ctx), void (*idle)(void *ctx), void *ctx)
{
	w->busy = busy;
	w->idle = idle;
	w->listener = ctx;
}
