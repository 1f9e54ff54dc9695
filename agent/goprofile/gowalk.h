/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOWALK_H
#define PODPROF_GOPROFILE_GOWALK_H

/* Walks the stack of a goroutine that does not run, as Go's own traces do: with exact tables of
 * the stack pointer's distance from the value at function entry. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprofile/stacksnap.h"

struct goroutine;
struct gowalk;

/* Frames of a stack. Reached: the root is missing. */
#define GOWALK_FRAMES_MAX 512

/* @space is copied; its ctx must outlive the walker. 0 or -ENOMEM. */
int gowalk_new(const struct stacksnap_space *space, struct gowalk **ret);
void gowalk_free(struct gowalk *w);

/**
 * gowalk() - return addresses of a goroutine, leaf first
 * @ret_n:     at least one, the present position; 0 for a goroutine without a stack
 * @ret_whole: the walk reached the goroutine's root
 *
 * Return: 0 or -errno.
 */
int gowalk(struct gowalk *w, const struct goroutine *g, uint64_t ret[GOWALK_FRAMES_MAX],
	   size_t *ret_n, bool *ret_whole);

/* Whether a goroutine with this first function belongs to the runtime. Go's profiles omit such
 * goroutines: runtime.isSystemGoroutine(). */
int gowalk_is_system(struct gowalk *w, uint64_t start_pc, bool *ret);

#endif
