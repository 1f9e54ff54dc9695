/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_WATCHER_H
#define PODPROF_DISCOVERY_WATCHER_H

/* Which directories have changed: inotify with a budget. */

#include <stddef.h>
#include <stdint.h>

struct loop;
struct root;
struct watch;
struct watcher;

/**
 * struct watcher_opts
 * @proc:    to learn the user's limit of watches; used only while the watcher is made
 * @changed: a subdirectory of a watched directory was made, removed or renamed: the one of this
 * name, or where many have changed at a time @name is NULL. Perhaps without need. May add and
 *           remove watches.
 * @lost:    changes were not reported: look at everything
 */
struct watcher_opts {
	struct loop *loop;
	const struct root *proc;
	void (*changed)(void *ctx, void *data, const char *name);
	void (*lost)(void *ctx);
	void *ctx;
};

enum watcher_outcome {
	WATCHER_OK = 0,
	WATCHER_FULL,  /* the budget is used up, or the user's limit reached */
	WATCHER_TWICE, /* the directory is watched already */
};

/* -EMFILE where the user has too many inotify instances: do without. */
int watcher_new(const struct watcher_opts *opts, struct watcher **ret);
/* Frees the watches too. */
void watcher_free(struct watcher *w);

/* Watch the directory that is open as @fd. 0, WATCHER_FULL, WATCHER_TWICE, -errno. */
int watcher_add(struct watcher *w, int fd, void *data, struct watch **ret);
void watcher_remove(struct watcher *w, struct watch *watch);

/* Report what has happened up to now, unless that was done a moment ago. */
void watcher_catch_up(struct watcher *w);

size_t watcher_n(const struct watcher *w);
uint64_t watcher_n_events(const struct watcher *w);

#endif
