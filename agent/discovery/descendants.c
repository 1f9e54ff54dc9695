// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the parent of each process from /proc/PID/stat. /proc/PID/task/TID/children would give the
 * children directly, but not every kernel has this file, and the file omits some children while
 * others exit. A process whose parent has ended is the child of its adoptive parent; the first
 * parent is not recorded.
 */
#include "discovery/descendants.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "discovery/pid.h"

/* Pids: the kernel's own ceiling (PID_MAX_LIMIT). A larger pid is left out. Reached: left out. */
#define DESCENDANTS_PIDS_MAX (1u << 22)

struct descendants {
	uint8_t *in; /* a bit per pid */
};

struct kinship {
	pid_t pid;
	pid_t parent;
};

/* All processes with their parents. */
struct census {
	const struct root *proc;
	struct kinship *items;
	size_t n;
	size_t cap;
};

int descendants_new(struct descendants **ret)
{
	struct descendants *d = calloc(1, sizeof(*d));

	if (d)
		d->in = calloc(DESCENDANTS_PIDS_MAX / 8, 1);
	if (!d || !d->in) {
		descendants_free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

void descendants_free(struct descendants *d)
{
	if (!d)
		return;
	free(d->in);
	free(d);
}

static bool is_in(const struct descendants *d, pid_t pid)
{
	return pid > 0 && (uint32_t)pid < DESCENDANTS_PIDS_MAX && d->in[pid / 8] & 1 << pid % 8;
}

bool descendants_add(struct descendants *d, pid_t pid)
{
	if (pid <= 0 || (uint32_t)pid >= DESCENDANTS_PIDS_MAX || is_in(d, pid))
		return false;
	d->in[pid / 8] |= (uint8_t)(1 << pid % 8);
	return true;
}

static int count_one(void *ctx, pid_t pid)
{
	struct census *c = ctx;
	pid_t parent;
	int r = pid_read_parent(c->proc, pid, &parent);

	if (r)
		return r < 0 ? r : 0; /* the process has ended, or is unreadable */
	r = vec_grow(&c->items, &c->cap, c->n + 1, sizeof(*c->items), DESCENDANTS_PIDS_MAX);
	if (r)
		return r < 0 ? r : 0;
	c->items[c->n++] = (struct kinship){pid, parent};
	return 0;
}

/* Adds the children of the processes in the set. Returns their number. */
static int generation(struct descendants *d, const struct census *c,
		      void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	int n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!is_in(d, c->items[i].parent) || !descendants_add(d, c->items[i].pid))
			continue;
		fn(ctx, c->items[i].pid);
		n++;
	}
	return n;
}

int descendants_grow(struct descendants *d, const struct root *proc,
		     void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct census c = {.proc = proc};
	int r = pid_for_each(proc, count_one, &c), n = 0, found;

	for (found = r < 0 ? 0 : 1; found; n += found)
		found = generation(d, &c, fn, ctx);
	free(c.items);
	return r < 0 ? r : n;
}
