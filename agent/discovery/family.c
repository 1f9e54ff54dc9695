// SPDX-License-Identifier: Apache-2.0
/*
 * From each process to its parent, by /proc/PID/stat. (/proc/PID/task/TID/children would say it the
 * other way round, but not every kernel has it, and it leaves some out while others end.) A process
 * whose parent has ended is the child of whoever took it in: of its first parent nobody knows any
 * more.
 */
#include "discovery/family.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "discovery/pid.h"

/* The kernel's own ceiling of process numbers (PID_MAX_LIMIT); one that is larger is left out.
 * Reached: left out. */
#define FAMILY_PIDS_MAX (1u << 22)

struct family {
	uint8_t *in; /* a bit for each number */
};

struct kinship {
	pid_t pid;
	pid_t parent;
};

/* All processes, as they are listed. */
struct census {
	const struct root *proc;
	struct kinship *items;
	size_t n;
	size_t cap;
};

int family_new(struct family **ret)
{
	struct family *f = calloc(1, sizeof(*f));

	if (f)
		f->in = calloc(FAMILY_PIDS_MAX / 8, 1);
	if (!f || !f->in) {
		family_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

void family_free(struct family *f)
{
	if (!f)
		return;
	free(f->in);
	free(f);
}

static bool is_in(const struct family *f, pid_t pid)
{
	return pid > 0 && (uint32_t)pid < FAMILY_PIDS_MAX && f->in[pid / 8] & 1 << pid % 8;
}

bool family_add(struct family *f, pid_t pid)
{
	if (pid <= 0 || (uint32_t)pid >= FAMILY_PIDS_MAX || is_in(f, pid))
		return false;
	f->in[pid / 8] |= (uint8_t)(1 << pid % 8);
	return true;
}

static int count_one(void *ctx, pid_t pid)
{
	struct census *c = ctx;
	pid_t parent;
	int r = pid_read_parent(c->proc, pid, &parent);

	if (r)
		return r < 0 ? r : 0; /* it has gone, or is none of ours */
	r = vec_grow(&c->items, &c->cap, c->n + 1, sizeof(*c->items), FAMILY_PIDS_MAX);
	if (r)
		return r < 0 ? r : 0;
	c->items[c->n++] = (struct kinship){pid, parent};
	return 0;
}

/* The children of those who are in. How many. */
static int generation(struct family *f, const struct census *c, void (*fn)(void *ctx, pid_t pid),
		      void *ctx)
{
	int n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!is_in(f, c->items[i].parent) || !family_add(f, c->items[i].pid))
			continue;
		fn(ctx, c->items[i].pid);
		n++;
	}
	return n;
}

int family_grow(struct family *f, const struct root *proc, void (*fn)(void *ctx, pid_t pid),
		void *ctx)
{
	struct census c = {.proc = proc};
	int r = pid_for_each(proc, count_one, &c), n = 0, found;

	for (found = r < 0 ? 0 : 1; found; n += found)
		found = generation(f, &c, fn, ctx);
	free(c.items);
	return r < 0 ? r : n;
}
