/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_REPORT_STACKSNAP_H
#define PODPROF_REPORT_STACKSNAP_H

/* Stacks of one process as a value, each distinct return address resolved once. */

#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"

/* Where a run-time pc is: space_cache_resolve() for this process. @ret owns a reference to its
 * image. 0 or -errno. */
typedef int (*stacksnap_resolve_fn)(void *ctx, uint64_t pc, struct frame *ret);

struct stacksnap_space {
	stacksnap_resolve_fn resolve;
	void *ctx;
};

/**
 * struct stacksnap - owns all it has; {0} is empty
 * @frames: one for each distinct pc, as resolved: the vaddr is that of the return address
 * @pcs: indexes into @frames, leaf first in each stack
 * @set: while stacks are added: the frames by pc
 */
struct stacksnap {
	struct frame *frames;
	size_t n_frames;
	size_t frames_cap;
	uint32_t *pcs;
	size_t n_pcs;
	size_t pcs_cap;
	struct stacksnap_set {
		struct stacksnap_slot {
			uint64_t pc;
			uint32_t number; /* plus one; 0 is free */
		} * slots;
		size_t n_slots; /* a power of two */
		size_t n;
	} set;
};

/* *@ret_first is where in pcs the stack begins. 0, -ENOMEM, or what the resolver returned. */
int stacksnap_add(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		  size_t n, size_t *ret_first);
/* All stacks are in it. */
void stacksnap_seal(struct stacksnap *s);
void stacksnap_deinit(struct stacksnap *s);

#endif
