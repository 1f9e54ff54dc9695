// SPDX-License-Identifier: Apache-2.0
/*
 * inotify(7) on directories. A report has only the directory and the name, and the receiver reads
 * the state itself. So merged, late or duplicate events do no harm.
 *
 * Watches are a budget of the user (fs.inotify.max_user_watches). root shares this budget with the
 * kubelet and every other daemon, so podprof takes only a part. Instances are a budget too
 * (max_user_instances, 128 by default), and nodes do run out of them.
 *
 * Watches are set through /proc/self/fd, because inotify takes paths and podprof has descriptors.
 */
#include "discovery/watcher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"

/* Watches: a quarter of the user's limit, and never more than this; each costs the kernel about 1
 * KiB. Beyond: WATCHER_FULL. Reached: `podprof_cgroup_refused_total{reason="watch"}`; the slow walk
 * finds it. */
#define WATCHER_WATCHES_MAX	8192
/* If the limit is unreadable: a quarter of the limit of kernels before 5.11. */
#define WATCHER_WATCHES_DEFAULT 2048
/* Pause after a batch of events, so that a loop of mkdir and rmdir costs a single listing per
 * pause. */
#define WATCHER_GAP_NS		(100 * NSEC_PER_MSEC)
/* Pause for watcher_catch_up(), whose caller cannot wait. */
#define WATCHER_CATCH_UP_NS	(10 * NSEC_PER_MSEC)
/* The pause is at least 50 times the batch's CPU time: a directory may have any number of
 * subdirectories. */
#define WATCHER_SHARE		50
/* Size of a batch. Later events wait in the kernel, up to fs.inotify.max_queued_events. */
#define WATCHER_BATCH_BYTES	65536

/* Names reported per directory and batch; after more, the whole directory is reported. */
#define WATCHER_NAMES 16

#define WATCHER_MASK (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)

struct watch {
	int wd;
	uint32_t batch; /* of the last event */
	unsigned int n; /* names reported in this batch */
	void *data;
	UT_hash_handle hh;
};

struct watcher {
	struct watcher_opts opts;
	int fd;
	struct watch *watches;
	size_t max;
	uint32_t batch;
	uint64_t n_events;
	uint64_t read_ns; /* end of the last batch, or the last watcher_catch_up() */
	uint64_t rest_ns; /* cost of the batch so far, times WATCHER_SHARE */
	bool lost;	  /* the batch says so */
	size_t at, n;	  /* the next event in @bytes, and their end */
	struct loop_source *source;
	struct loop_source *gap;
	_Alignas(struct inotify_event) char bytes[WATCHER_BATCH_BYTES];
};

int watcher_add(struct watcher *w, int fd, void *data, struct watch **ret)
{
	_cleanup_(freep) struct watch *watch = calloc(1, sizeof(*watch));
	struct watch *other;
	bool hash_oom = false;
	char path[64];

	if (!watch)
		return -ENOMEM;
	if (HASH_COUNT(w->watches) >= w->max)
		return WATCHER_FULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
	watch->wd = inotify_add_watch(w->fd, path, WATCHER_MASK);
	if (watch->wd < 0)
		return errno == ENOSPC ? WATCHER_FULL : -errno;
	/* the kernel identifies watches by inode, and returns the same number for the same inode */
	HASH_FIND(hh, w->watches, &watch->wd, sizeof(watch->wd), other);
	if (other)
		return WATCHER_TWICE;
	watch->data = data;
	HASH_ADD(hh, w->watches, wd, sizeof(watch->wd), watch);
	if (hash_oom) {
		(void)inotify_rm_watch(w->fd, watch->wd);
		return -ENOMEM;
	}
	*ret = take_ptr(watch);
	return 0;
}

void watcher_remove(struct watcher *w, struct watch *watch)
{
	HASH_DELETE(hh, w->watches, watch);
	/* fails if the kernel has already dropped the watch with its directory */
	(void)inotify_rm_watch(w->fd, watch->wd);
	free(watch);
}

static void on_event(struct watcher *w, const struct inotify_event *event)
{
	struct watch *watch;

	w->n_events++;
	w->lost |= (event->mask & IN_Q_OVERFLOW) != 0;
	if (!(event->mask & IN_ISDIR) || event->mask & IN_IGNORED)
		return;
	HASH_FIND(hh, w->watches, &event->wd, sizeof(event->wd), watch);
	if (!watch)
		return;
	if (watch->batch != w->batch)
		watch->n = 0;
	watch->batch = w->batch;
	/* a scan of the whole directory covers the rest of the batch: the events are older than the
	 * scan */
	if (watch->n <= WATCHER_NAMES)
		w->opts.changed(w->opts.ctx, watch->data,
				watch->n++ < WATCHER_NAMES ? event->name : NULL);
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void end_batch(struct watcher *w)
{
	w->at = w->n = 0;
	w->read_ns = nsec_monotonic();
	if (w->lost)
		w->opts.lost(w->opts.ctx);
	/* without the pause, events are read at once */
	if (loop_change_fd(w->source, 0) || loop_arm(w->gap, max_ns(WATCHER_GAP_NS, w->rest_ns), 0))
		(void)loop_change_fd(w->source, EPOLLIN);
}

/* False if there are no events. */
static bool read_batch(struct watcher *w)
{
	ssize_t n;

	if (w->at < w->n)
		return true;
	n = read(w->fd, w->bytes, sizeof(w->bytes));
	w->at = 0;
	w->n = n > 0 ? (size_t)n : 0;
	w->rest_ns = 0;
	w->lost = false;
	w->batch += n > 0;
	return n > 0;
}

bool watcher_next(struct watcher *w)
{
	const struct inotify_event *event = (const void *)(w->bytes + w->at);

	if (w->at < w->n) {
		w->at += sizeof(*event) + event->len;
		on_event(w, event);
		return true;
	}
	if (w->n)
		end_batch(w);
	return false;
}

void watcher_charge(struct watcher *w, uint64_t cpu_ns)
{
	w->rest_ns += cpu_ns * WATCHER_SHARE;
}

static void on_readable(void *ctx, int fd, uint32_t events)
{
	struct watcher *w = ctx;

	if (read_batch(w) && !loop_change_fd(w->source, 0))
		w->opts.ready(w->opts.ctx);
}

bool watcher_catch_up(struct watcher *w)
{
	if (nsec_monotonic() - w->read_ns < max_ns(WATCHER_CATCH_UP_NS, w->rest_ns))
		return false;
	w->read_ns = nsec_monotonic();
	return read_batch(w);
}

static void on_gap_over(void *ctx)
{
	struct watcher *w = ctx;

	(void)loop_change_fd(w->source, EPOLLIN);
}

static size_t watches_allowed(const struct root *proc)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(64);
	struct strview t, line;
	uint64_t n;

	if (root_read(proc, "sys/fs/inotify/max_user_watches", &b) || !b.data)
		return WATCHER_WATCHES_DEFAULT;
	t = strview_of_bytes(b.data, b.len);
	if (!strview_line(&t, &line) || !strview_only_u64(line, 10, &n))
		return WATCHER_WATCHES_DEFAULT;
	return n / 4 < WATCHER_WATCHES_MAX ? n / 4 : WATCHER_WATCHES_MAX;
}

DEFINE_CLEANUP(struct watcher *, watcher_freep, watcher_free);

int watcher_new(const struct watcher_opts *opts, struct watcher **ret)
{
	_cleanup_(watcher_freep) struct watcher *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->opts = *opts;
	w->max = watches_allowed(opts->proc);
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	r = loop_add_timer(opts->loop, on_gap_over, w, &w->gap);
	if (r < 0)
		return r;
	r = loop_add_fd(opts->loop, w->fd, EPOLLIN, on_readable, w, &w->source);
	if (r < 0)
		return r;
	*ret = take_ptr(w);
	return 0;
}

void watcher_free(struct watcher *w)
{
	struct watch *watch, *next;

	if (!w)
		return;
	loop_remove(w->source);
	loop_remove(w->gap);
	HASH_ITER(hh, w->watches, watch, next) {
		HASH_DELETE(hh, w->watches, watch);
		free(watch);
	}
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

size_t watcher_n(const struct watcher *w)
{
	return w ? HASH_COUNT(w->watches) : 0;
}

uint64_t watcher_n_events(const struct watcher *w)
{
	return w ? w->n_events : 0;
}
