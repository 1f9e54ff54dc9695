// SPDX-License-Identifier: Apache-2.0
/*
 * A heap of 30,000 records has 600,000 PCs, but only a few thousand are distinct. Each distinct pc
 * is resolved once, and stacks are stored as numbers.
 */
#include "goprofile/stacksnap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Distinct PCs of a process. The reader's ceiling on bytes comes first; this ceiling keeps the
 * numbers in 32 bits. Reached: `podprof_go_heap_reads_total{outcome="processes_failed"}`. */
#define STACKSNAP_FRAMES_MAX (1u << 24)
/* PCs of all stacks of a process, for the same reason. Reached:
 * `podprof_go_heap_reads_total{outcome="processes_failed"}`. */
#define STACKSNAP_PCS_MAX    (1u << 31)

static int frame_add(struct stacksnap *s, const struct stacksnap_space *space, uint64_t pc)
{
	int r = vec_grow(&s->frames, &s->frames_cap, s->n_frames + 1, sizeof(*s->frames),
			 STACKSNAP_FRAMES_MAX);

	if (r)
		return r < 0 ? r : -ENOMEM;
	r = space->resolve(space->ctx, pc, &s->frames[s->n_frames]);
	if (!r)
		s->n_frames++;
	return r;
}

static int frame_of(struct stacksnap *s, const struct stacksnap_space *space, uint64_t pc,
		    uint32_t *ret)
{
	int r = pcset_number(&s->set, pc, ret);

	if (!r && *ret == s->n_frames) /* a new one */
		r = frame_add(s, space, pc);
	return r;
}

static int grow(struct stacksnap *s, size_t n)
{
	int r = vec_grow(&s->pcs, &s->pcs_cap, s->n_pcs + n, sizeof(*s->pcs), STACKSNAP_PCS_MAX);

	return r > 0 ? -ENOMEM : r;
}

int stacksnap_add(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		  size_t n, size_t *ret_first)
{
	size_t first = s->n_pcs;
	int r = grow(s, n);

	for (size_t i = 0; !r && i < n; i++)
		r = frame_of(s, space, pcs[i], &s->pcs[first + i]);
	if (r)
		return r;
	s->n_pcs += n;
	*ret_first = first;
	return 0;
}

int stacksnap_resolve(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		      size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = frame_add(s, space, pcs[i]);
	return r;
}

int stacksnap_add_numbers(struct stacksnap *s, const uint32_t *numbers, size_t n, size_t *ret_first)
{
	int r = grow(s, n);

	if (r)
		return r;
	memcpy(s->pcs + s->n_pcs, numbers, n * sizeof(*s->pcs));
	*ret_first = s->n_pcs;
	s->n_pcs += n;
	return 0;
}

void stacksnap_seal(struct stacksnap *s)
{
	pcset_deinit(&s->set);
}

void stacksnap_deinit(struct stacksnap *s)
{
	stacksnap_seal(s);
	for (size_t i = 0; i < s->n_frames; i++)
		image_unref(s->frames[i].image);
	free(s->frames);
	free(s->pcs);
	*s = (struct stacksnap){0};
}

size_t stacksnap_bytes(const struct stacksnap *s)
{
	return s->frames_cap * sizeof(*s->frames) + s->pcs_cap * sizeof(*s->pcs) +
	       pcset_bytes(&s->set);
}
