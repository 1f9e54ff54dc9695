/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_WATCHER_H
#define PODPROF_DISCOVERY_WATCHER_H

/* Reports changed directories, by inotify within a budget of watches. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct root;
struct watch;
struct watcher;

/**
 * struct watcher_opts
 * @proc:    for the user's limit of watches; used only by watcher_new()
 * @ready:   events have been read: call watcher_next(), now or later
 * @changed: a subdirectory @name of a watched directory was made, removed or renamed. @name is NULL
 *           after many changes at a time. Calls without a change occur. May add and remove watches.
 * @lost:    events were lost: scan everything
 */
struct watcher_opts {
	struct loop *loop;
	const struct root *proc;
	void (*ready)(void *ctx);
	void (*changed)(void *ctx, void *data, const char *name);
	void (*lost)(void *ctx);
	void *ctx;
};

enum watcher_outcome {
	WATCHER_OK = 0,
	WATCHER_FULL,  /* the budget is used up, or the user's limit reached */
	WATCHER_TWICE, /* the directory already has a watch */
};

/* *@ret: owned. -EMFILE if the user has too many inotify instances: continue without a watcher. */
int watcher_new(const struct watcher_opts *opts, struct watcher **ret);
/* Also frees the watches. */
void watcher_free(struct watcher *w);

/* Watches the directory open as @fd. *@ret: owned by the watcher. 0, WATCHER_FULL, WATCHER_TWICE,
 * -errno. */
int watcher_add(struct watcher *w, int fd, void *data, struct watch **ret);
void watcher_remove(struct watcher *w, struct watch *watch);

/* Reads the events that wait in the kernel, with a rate limit. True: call watcher_next(). */
bool watcher_catch_up(struct watcher *w);
/* Reports one event. False: all that were read are reported, and the work that they caused is done.
 */
bool watcher_next(struct watcher *w);
/* Adds to the cost of the events that were read last, in CPU time. */
void watcher_charge(struct watcher *w, uint64_t cpu_ns);

size_t watcher_n(const struct watcher *w);
uint64_t watcher_n_events(const struct watcher *w);

#endif
