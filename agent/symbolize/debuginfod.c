// SPDX-License-Identifier: Apache-2.0
/*
 * The callers and the thread share a table of build ids, under a lock:
 *
 *	WAITING   a caller asked; the thread begins when another download ends
 *	RUNNING   a download of the thread
 *	REFUSED   on no server, or the download failed: no request before a time
 *
 * A build id without an entry is new, or the directory has the file or the mark of no file. An
 * unreachable server delays all requests. An error for one build id delays the requests for this
 * build id only, because a container may have invented the id.
 *
 * The thread has a loop of its own, because writing the files can block.
 */
#include "symbolize/debuginfod.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "symbolize/debugcache.h"

#define DEBUGINFOD_CONNECT_NS (10 * NSEC_PER_SEC)
#define DEBUGINFOD_TOTAL_NS   (600 * NSEC_PER_SEC)
#define DEBUGINFOD_RETRY_NS   (60 * NSEC_PER_SEC)
/* Bytes of all URLs. Reached: podprof does not start. */
#define SERVERS_BYTES_MAX     (64u << 10)
/* The end of the thread, unless a write to the directory blocks it. */
#define DEBUGINFOD_END_NS     NSEC_PER_SEC

static const char *const end_names[DEBUGINFOD_END_MAX] = {
	[DEBUGINFOD_END_OK] = "ok",
	[DEBUGINFOD_END_NOT_FOUND] = "not_found",
	[DEBUGINFOD_END_FAILED] = "failed",
	[DEBUGINFOD_END_TOO_LARGE] = "too_large",
	[DEBUGINFOD_END_NOT_STORED] = "not_stored",
	[DEBUGINFOD_END_QUEUE_FULL] = "queue_full",
};

enum wanted_state { WANTED_WAITING, WANTED_RUNNING, WANTED_REFUSED, WANTED_STATES };

struct wanted {
	enum wanted_state state;
	uint64_t until_ns; /* WANTED_REFUSED */
	UT_hash_handle hh;
	char build_id[];
};

/**
 * struct download - of a build id, from the servers in turn; the thread's
 * @wanted: RUNNING; NULL: free
 * @url:    the server under way
 * @end:    the worst so far
 * @unreachable: a server was
 * @stored: 0, or why the file cannot be kept
 */
struct download {
	struct debuginfod *of;
	struct wanted *wanted;
	size_t url;
	enum debuginfod_end end;
	bool reached; /* the server began the file */
	bool unreachable;
	int stored;
	struct debugcache_file *file;
	struct http_call *call;
};

struct debuginfod {
	atomic_int refs;
	struct debugcache *cache;
	char **urls;
	size_t n_urls;
	uint64_t retry_ns;
	uint64_t total_ns;

	atomic_uint_fast64_t resume_ns; /* no server was reached: no request before; 0: reached */
	atomic_uint_fast64_t news;
	pthread_mutex_t lock; /* for the members below */
	struct wanted *wanted;
	size_t n_states[WANTED_STATES];
	uint64_t ends[DEBUGINFOD_END_MAX];
	bool stop;

	int wake; /* of the thread */
	bool has_thread;
	pthread_t thread;
	struct loop *loop;
	struct http *http;
	struct download downloads[DEBUGINFOD_RUNNING_MAX];
};

DEFINE_CLEANUP(struct debuginfod *, debuginfod_freep, debuginfod_unref);

/* ---------------------------------------------------------------- the table, under the lock */

static void wanted_set(struct debuginfod *d, struct wanted *w, enum wanted_state state)
{
	d->n_states[w->state]--;
	d->n_states[state]++;
	w->state = state;
}

static void wanted_drop(struct debuginfod *d, struct wanted *w)
{
	d->n_states[w->state]--;
	HASH_DEL(d->wanted, w);
	free(w);
}

static void wanted_drop_refused(struct debuginfod *d, uint64_t before_ns)
{
	struct wanted *w, *next;

	HASH_ITER(hh, d->wanted, w, next)
		if (w->state == WANTED_REFUSED && w->until_ns <= before_ns)
			wanted_drop(d, w);
}

static struct wanted *wanted_find(const struct debuginfod *d, const char *build_id)
{
	struct wanted *w;

	HASH_FIND_STR(d->wanted, build_id, w);
	return w;
}

/* 0, DEBUGINFOD_LATER without room, -ENOMEM. */
static int wanted_add(struct debuginfod *d, const char *build_id)
{
	size_t n = strlen(build_id) + 1;
	bool hash_oom = false;
	struct wanted *w;

	if (d->n_states[WANTED_WAITING] + d->n_states[WANTED_RUNNING] >= DEBUGINFOD_QUEUE_MAX) {
		d->ends[DEBUGINFOD_END_QUEUE_FULL]++;
		return DEBUGINFOD_LATER;
	}
	w = calloc(1, sizeof(*w) + n);
	if (!w)
		return -ENOMEM;
	memcpy(w->build_id, build_id, n);
	HASH_ADD_STR(d->wanted, build_id, w);
	if (hash_oom) {
		free(w);
		return -ENOMEM;
	}
	d->n_states[WANTED_WAITING]++;
	return 0;
}

/* ---------------------------------------------------------------- downloads, on the thread */

static void download_end(struct download *dl)
{
	struct debuginfod *d = dl->of;
	uint64_t now = nsec_monotonic();

	debugcache_abandon(take_ptr(dl->file));
	if (dl->end == DEBUGINFOD_END_NOT_FOUND) /* without room, the table below remains */
		(void)debugcache_set_absent(d->cache, dl->wanted->build_id);
	pthread_mutex_lock(&d->lock);
	d->ends[dl->end]++;
	if (dl->end == DEBUGINFOD_END_OK) {
		wanted_drop(d, dl->wanted);
	} else if (dl->end == DEBUGINFOD_END_FAILED && dl->unreachable) {
		d->resume_ns = now + d->retry_ns;
		wanted_drop(d, dl->wanted);
	} else {
		dl->wanted->until_ns =
			now +
			(dl->end == DEBUGINFOD_END_FAILED ? d->retry_ns : DEBUGINFOD_ABSENT_NS);
		wanted_set(d, dl->wanted, WANTED_REFUSED);
	}
	if (d->n_states[WANTED_REFUSED] > DEBUGINFOD_ABSENT_MAX)
		wanted_drop_refused(d, UINT64_MAX);
	atomic_fetch_add(&d->news, 1);
	pthread_mutex_unlock(&d->lock);
	dl->wanted = NULL;
	wakeup_send(d->wake);
}

static int on_body(void *ctx, const char *bytes, size_t n)
{
	struct download *dl = ctx;

	dl->reached = true;
	dl->stored = debugcache_write(dl->file, bytes, n);
	return dl->stored;
}

static void download_next(struct download *dl);

/* The file cannot be kept: another server's would not be either. */
static void download_not_stored(struct download *dl, int r)
{
	dl->end = r == DEBUGCACHE_TOO_LARGE ? DEBUGINFOD_END_TOO_LARGE : DEBUGINFOD_END_NOT_STORED;
	download_end(dl);
}

static void on_reply(void *ctx, const struct http_reply *reply)
{
	struct download *dl = ctx;

	dl->call = NULL;
	if (dl->stored) {
		download_not_stored(dl, dl->stored);
		return;
	}
	if (reply->status == 200) {
		int r = debugcache_commit(take_ptr(dl->file));

		if (r) {
			download_not_stored(dl, r);
			return;
		}
		dl->end = DEBUGINFOD_END_OK;
		download_end(dl);
		return;
	}
	debugcache_abandon(take_ptr(dl->file));
	if (reply->status != 404) {
		dl->end = DEBUGINFOD_END_FAILED;
		dl->unreachable |= reply->status == 0 && !dl->reached;
	}
	dl->url++;
	download_next(dl);
}

static int download_start(struct download *dl)
{
	struct debuginfod *d = dl->of;
	_cleanup_(freep) char *url = NULL;
	struct http_request request = {
		.on_body = on_body,
		.connect_ns = DEBUGINFOD_CONNECT_NS,
		.total_ns = d->total_ns,
	};

	if (asprintf(&url, "%s/buildid/%s/debuginfo", d->urls[dl->url], dl->wanted->build_id) < 0) {
		url = NULL;
		return -ENOMEM;
	}
	request.url = url;
	return http_start(d->http, &request, on_reply, dl, &dl->call);
}

static void download_next(struct download *dl)
{
	struct debuginfod *d = dl->of;
	int r;

	if (dl->url == d->n_urls) {
		download_end(dl);
		return;
	}
	dl->reached = false;
	r = debugcache_begin(d->cache, dl->wanted->build_id, &dl->file);
	if (!r)
		r = download_start(dl);
	if (r)
		download_not_stored(dl, r);
}

static struct wanted *take_waiting(struct debuginfod *d)
{
	struct wanted *w, *next, *found = NULL;

	pthread_mutex_lock(&d->lock);
	if (nsec_monotonic() >= d->resume_ns && d->n_states[WANTED_WAITING]) {
		HASH_ITER(hh, d->wanted, w, next)
			if (!found && w->state == WANTED_WAITING)
				found = w;
		if (found)
			wanted_set(d, found, WANTED_RUNNING);
	}
	pthread_mutex_unlock(&d->lock);
	return found;
}

static void on_wake(void *ctx, int fd, uint32_t events)
{
	struct debuginfod *d = ctx;
	bool stop;

	(void)events;
	wakeup_take(fd);
	pthread_mutex_lock(&d->lock);
	stop = d->stop;
	pthread_mutex_unlock(&d->lock);
	if (stop) {
		loop_stop(d->loop);
		return;
	}
	for (size_t i = 0; i < DEBUGINFOD_RUNNING_MAX; i++) {
		struct download *dl = &d->downloads[i];

		if (dl->wanted)
			continue;
		*dl = (struct download){
			.of = d,
			.wanted = take_waiting(d),
			.end = DEBUGINFOD_END_NOT_FOUND,
		};
		if (!dl->wanted)
			return;
		download_next(dl);
	}
}

static void *run(void *ctx)
{
	struct debuginfod *d = ctx;

	(void)loop_run(d->loop);
	http_free(take_ptr(d->http));
	for (size_t i = 0; i < DEBUGINFOD_RUNNING_MAX; i++)
		debugcache_abandon(take_ptr(d->downloads[i].file));
	return NULL;
}

/* ---------------------------------------------------------------- callers */

/* Under the lock. */
static int ask(struct debuginfod *d, const char *build_id)
{
	struct wanted *w = wanted_find(d, build_id);
	uint64_t now = nsec_monotonic();
	int r;

	if (w && w->state == WANTED_REFUSED && now < w->until_ns)
		return DEBUGINFOD_NOT_FOUND;
	if (w && w->state == WANTED_REFUSED) {
		wanted_drop(d, w);
		w = NULL;
	}
	if (now < d->resume_ns)
		return DEBUGINFOD_LATER;
	r = w ? 0 : wanted_add(d, build_id);
	if (!r) /* a known one may wait since no server was reached */
		wakeup_send(d->wake);
	return r ? r : DEBUGINFOD_LATER;
}

int debuginfod_get(struct debuginfod *d, const char *build_id, int *ret_fd)
{
	int r;

	if (!debugcache_id_ok(build_id))
		return DEBUGINFOD_NOT_FOUND;
	if (debugcache_get(d->cache, build_id, ret_fd) == 0)
		return 0;
	if (debugcache_is_absent(d->cache, build_id))
		return DEBUGINFOD_NOT_FOUND;
	pthread_mutex_lock(&d->lock);
	r = ask(d, build_id);
	pthread_mutex_unlock(&d->lock);
	return r;
}

uint64_t debuginfod_news(struct debuginfod *d)
{
	uint_fast64_t resume = atomic_load(&d->resume_ns);

	if (resume && nsec_monotonic() >= resume &&
	    atomic_compare_exchange_strong(&d->resume_ns, &resume, 0))
		atomic_fetch_add(&d->news, 1);
	return atomic_load(&d->news);
}

size_t debuginfod_pending(struct debuginfod *d)
{
	const bool reached = nsec_monotonic() >= d->resume_ns;
	size_t n;

	pthread_mutex_lock(&d->lock);
	n = d->n_states[WANTED_RUNNING] + (reached ? d->n_states[WANTED_WAITING] : 0);
	pthread_mutex_unlock(&d->lock);
	return n;
}

void debuginfod_counts(struct debuginfod *d, uint64_t *ret)
{
	pthread_mutex_lock(&d->lock);
	memcpy(ret, d->ends, sizeof(d->ends));
	pthread_mutex_unlock(&d->lock);
}

void debuginfod_collect(void *d, struct metric_sink *sink)
{
	static const struct metric_family_desc requests = {
		"podprof_debuginfod_requests", METRIC_COUNTER,
		"Debug files asked of debuginfod servers, by outcome.", NULL};
	uint64_t ends[DEBUGINFOD_END_MAX];

	debuginfod_counts(d, ends);
	metric_by_name(sink, &requests, "outcome", ends, end_names, DEBUGINFOD_END_MAX);
}

/* ---------------------------------------------------------------- life */

static int copy_urls(struct debuginfod *d, const struct debuginfod_opts *opts)
{
	d->urls = calloc(opts->n_urls ? opts->n_urls : 1, sizeof(*d->urls));
	if (!d->urls)
		return -ENOMEM;
	for (size_t i = 0; i < opts->n_urls; i++) {
		size_t n = strlen(opts->urls[i]);

		while (n && opts->urls[i][n - 1] == '/')
			n--;
		d->urls[i] = strndup(opts->urls[i], n);
		if (!d->urls[i])
			return -ENOMEM;
		d->n_urls++;
	}
	return 0;
}

static int open_cache(struct debuginfod *d, const struct debuginfod_opts *opts)
{
	_cleanup_(buf_deinit) struct buf servers;
	int r = 0;

	buf_init(&servers, SERVERS_BYTES_MAX);
	for (size_t i = 0; i < d->n_urls && !r; i++)
		r = buf_printf(&servers, "%s\n", d->urls[i]);
	if (r)
		return r < 0 ? r : -E2BIG;
	return debugcache_new(opts->dir, opts->max_bytes, servers.data ? servers.data : "",
			      DEBUGINFOD_ABSENT_NS, &d->cache);
}

static int start(struct debuginfod *d)
{
	struct loop_source *source;
	int r;

	d->wake = wakeup_open();
	if (d->wake < 0)
		return -errno;
	r = loop_new(&d->loop);
	if (!r)
		r = loop_add_fd(d->loop, d->wake, EPOLLIN, on_wake, d, &source);
	if (!r)
		r = http_new(d->loop, &d->http);
	if (!r)
		r = thread_start("debuginfod", run, d, &d->thread);
	d->has_thread = !r;
	return r;
}

int debuginfod_new(const struct debuginfod_opts *opts, struct debuginfod **ret)
{
	_cleanup_(debuginfod_freep) struct debuginfod *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	atomic_init(&d->refs, 1);
	pthread_mutex_init(&d->lock, NULL);
	d->wake = -1;
	d->retry_ns = opts->retry_ns ? opts->retry_ns : DEBUGINFOD_RETRY_NS;
	d->total_ns = opts->total_ns ? opts->total_ns : DEBUGINFOD_TOTAL_NS;
	r = copy_urls(d, opts);
	if (!r)
		r = open_cache(d, opts);
	if (!r)
		r = start(d);
	if (!r)
		*ret = take_ptr(d);
	return r;
}

struct debuginfod *debuginfod_ref(struct debuginfod *d)
{
	if (d)
		atomic_fetch_add(&d->refs, 1);
	return d;
}

/* False if the thread is blocked: everything stays as it is. */
static bool stop_thread(struct debuginfod *d)
{
	struct timespec until;

	if (!d->has_thread)
		return true;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_mutex_unlock(&d->lock);
	wakeup_send(d->wake);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += DEBUGINFOD_END_NS / NSEC_PER_SEC;
	if (pthread_clockjoin_np(d->thread, NULL, CLOCK_MONOTONIC, &until) == 0)
		return true;
	(void)pthread_detach(d->thread);
	return false;
}

void debuginfod_unref(struct debuginfod *d)
{
	struct wanted *w, *next;

	if (!d || atomic_fetch_sub(&d->refs, 1) != 1 || !stop_thread(d))
		return;
	http_free(d->http);
	loop_free(d->loop);
	close_fdp(&d->wake);
	HASH_ITER(hh, d->wanted, w, next)
		wanted_drop(d, w);
	for (size_t i = 0; d->urls && i < d->n_urls; i++)
		free(d->urls[i]);
	free(d->urls);
	debugcache_free(d->cache);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
