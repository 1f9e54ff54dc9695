/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_STACKSNAP_H
#define PODPROF_GOPROFILE_STACKSNAP_H

/* Stacks of a process as a value, each distinct return address resolved once. */

#include <stddef.h>
#include <stdint.h>

#include "goheap/pcset.h"
#include "procmap/image.h"

/* Resolve a run-time pc: address_space_cache_resolve() for this process. @ret owns a reference
 * to its image. 0 or -errno. */
typedef int (*stacksnap_resolve_fn)(void *ctx, uint64_t pc, struct frame *ret);

struct stacksnap_space {
	stacksnap_resolve_fn resolve;
	void *ctx;
};

/**
 * struct stacksnap - owns its arrays; {0} is empty
 * @frames: one for each distinct pc, as resolved: the vaddr is that of the return address
 * @pcs:    indexes into @frames, leaf first in each stack
 * @set:    the frames by pc, while stacks are added
 */
struct stacksnap {
	struct frame *frames;
	size_t n_frames;
	size_t frames_cap;
	uint32_t *pcs;
	size_t n_pcs;
	size_t pcs_cap;
	struct pcset set;
};

/* *@ret_first is the index of the stack's begin in pcs. 0, -ENOMEM, or an error of the resolver. */
int stacksnap_add(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		  size_t n, size_t *ret_first);
/* The same for stacks of numbers of distinct PCs: resolve the PCs first, once. */
int stacksnap_resolve(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		      size_t n);
int stacksnap_add_numbers(struct stacksnap *s, const uint32_t *numbers, size_t n,
			  size_t *ret_first);
/* Call after the last stack. */
void stacksnap_seal(struct stacksnap *s);
void stacksnap_deinit(struct stacksnap *s);
/* Memory held. */
size_t stacksnap_bytes(const struct stacksnap *s);

#endif
