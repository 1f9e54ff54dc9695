// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel takes some milliseconds to make a slab: it allocates and clears 1 MiB, and shows it to
 * the walkers (tablemaps.c). A thread waits instead of the loop.
 */
#include "unwindtable/slabmaker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/worker.h"

struct slabmaker {
	struct slabmaker_opts opts;
	struct worker *worker;
	struct work work; /* one slab at a time */
	uint32_t number;
	int result;
};

static void run(struct work *work)
{
	struct slabmaker *m = container_of(work, struct slabmaker, work);

	m->result = m->opts.slabs.make(m->opts.slabs.ctx, m->number);
}

static void done(struct work *work)
{
	struct slabmaker *m = container_of(work, struct slabmaker, work);

	if (m->worker)
		m->opts.made(m->opts.ctx, m->result);
}

static int make(void *ctx, uint32_t number)
{
	struct slabmaker *m = ctx;

	m->number = number;
	m->work = (struct work){.run = run, .done = done};
	return worker_submit(m->worker, &m->work) ? -EBUSY : PAGE_POOL_LATER;
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct slabmaker *m = ctx;

	return m->opts.slabs.map(m->opts.slabs.ctx, number, first, n);
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	struct slabmaker *m = ctx;

	m->opts.slabs.unmap(m->opts.slabs.ctx, mem, n);
}

int slabmaker_new(const struct slabmaker_opts *opts, struct slabmaker **ret)
{
	_cleanup_(freep) struct slabmaker *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
	r = worker_new(opts->loop, "slabs", 1, &m->worker);
	if (r)
		return r;
	*ret = take_ptr(m);
	return 0;
}

void slabmaker_free(struct slabmaker *m)
{
	if (!m)
		return;
	worker_free(take_ptr(m->worker));
	free(m);
}

struct page_pool_slabs slabmaker_slabs(struct slabmaker *m)
{
	return (struct page_pool_slabs){.ctx = m, .make = make, .map = map, .unmap = unmap};
}
