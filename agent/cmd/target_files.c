// SPDX-License-Identifier: Apache-2.0
#include "cmd/target_files.h"

#include <errno.h>
#include <stdlib.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/vec.h"

/* The end of the look is noticed within this time. */
#define TARGET_FILES_POLL_NS (20 * NSEC_PER_MSEC)

struct target_files {
	struct loop *loop;
	struct loop_source *timer;
	struct address_space_cache *spaces;
	struct address_space_who *items; /* by pid once the look has begun */
	size_t n;
	size_t cap;
	uint64_t deadline_ns;
	int error;
};

/* Asks for the mapping list of a process; if the list is there, for all files. */
static void want_files(struct target_files *f, const struct address_space_who *who)
{
	const struct address_space_mapping *mappings;
	struct address_space *space;
	size_t n;
	int r = address_space_cache_get(f->spaces, who, &space);

	if (r) {
		f->error = r;
		return;
	}
	mappings = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++)
		(void)address_space_want(f->spaces, space, mappings[i].start);
}

static int who_order(const void *a, const void *b)
{
	const struct address_space_who *x = a, *y = b;

	return (x->pid.pid > y->pid.pid) - (x->pid.pid < y->pid.pid);
}

static void on_opened(void *ctx, uint64_t pid)
{
	const struct address_space_who key = {.pid = {.pid = pid}};
	struct target_files *f = ctx;
	const struct address_space_who *who = bsearch(&key, f->items, f->n, sizeof(key), who_order);

	if (who)
		want_files(f, who);
}

static void on_poll(void *ctx)
{
	struct target_files *f = ctx;

	if (f->error || !address_space_cache_opening(f->spaces) ||
	    nsec_monotonic() >= f->deadline_ns)
		loop_stop(f->loop);
}

int target_files_new(struct loop *loop, const struct root *proc, struct target_files **ret)
{
	struct target_files *f = calloc(1, sizeof(*f));
	const struct address_space_files files = {.loop = loop, .opened = on_opened, .ctx = f};
	int r;

	if (!f)
		return -ENOMEM;
	f->loop = loop;
	r = loop_add_timer(loop, on_poll, f, &f->timer);
	if (!r)
		r = address_space_cache_new(proc, &f->spaces);
	if (!r)
		r = address_space_cache_open_behind(f->spaces, &files);
	if (r)
		target_files_free(f);
	else
		*ret = f;
	return r;
}

void target_files_free(struct target_files *f)
{
	if (!f)
		return;
	address_space_cache_free(f->spaces);
	loop_remove(f->timer);
	free(f->items);
	free(f);
}

int target_files_add(struct target_files *f, const struct pid_id *pid, uint64_t owner)
{
	int r = vec_grow(&f->items, &f->cap, f->n + 1, sizeof(*f->items), SIZE_MAX);

	/* not ADDRESS_SPACE_EXEC_ANY, which looks at /proc/PID/exe on this thread */
	if (!r)
		f->items[f->n++] = (struct address_space_who){.pid = *pid, .owner = owner};
	return r;
}

int target_files_look(struct target_files *f, size_t *ret_n)
{
	int r;

	f->deadline_ns = nsec_monotonic() + TARGET_FILES_MAX_NS;
	if (f->n)
		qsort(f->items, f->n, sizeof(*f->items), who_order);
	for (size_t i = 0; i < f->n; i++)
		want_files(f, &f->items[i]);
	r = loop_arm(f->timer, 1, TARGET_FILES_POLL_NS);
	if (!r)
		r = loop_run(f->loop);
	(void)loop_disarm(f->timer);
	*ret_n = address_space_cache_opening(f->spaces);
	return f->error ? f->error : r;
}

void target_files_slow(const struct target_files *f, address_space_slow_fn fn, void *ctx)
{
	address_space_cache_slow(f->spaces, fn, ctx);
}
