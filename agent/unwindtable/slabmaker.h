/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_SLABMAKER_H
#define PODPROF_UNWINDTABLE_SLABMAKER_H

/* Slabs of page space, made on a thread of their own. */

#include "unwindtable/page_pool.h"

struct loop;
struct slabmaker;

/**
 * struct slabmaker_opts
 * @slabs: makes slabs; its make() is called on the thread, the others by the user of
 *         slabmaker_slabs()
 * @made:  on the loop: result for the requested slab, 0 or -errno
 */
struct slabmaker_opts {
	struct loop *loop;
	struct page_pool_slabs slabs;
	void (*made)(void *ctx, int result);
	void *ctx;
};

/* 0 or -errno. */
int slabmaker_new(const struct slabmaker_opts *opts, struct slabmaker **ret);
/* Waits for the slab in progress and reports nothing. The user of slabmaker_slabs() must be freed
 * first. */
void slabmaker_free(struct slabmaker *maker);

/* The same slabs, but each is there later. */
struct page_pool_slabs slabmaker_slabs(struct slabmaker *maker);

#endif
