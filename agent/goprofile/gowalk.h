/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOWALK_H
#define PODPROF_GOPROFILE_GOWALK_H

/* The stack of a goroutine that stands still, walked as Go's own traces are: by the tables of how
 * far the stack pointer is from where it was, exactly. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprofile/stacksnap.h"

struct goroutine;
struct gowalk;

/* Frames of one stack; the rest, at the root, is missing. Reached: the root is missing. */
#define GOWALK_FRAMES_MAX 512

/* @space is copied; what it is of must outlive the walker. 0 or -ENOMEM. */
int gowalk_new(const struct stacksnap_space *space, struct gowalk **ret);
void gowalk_free(struct gowalk *w);

/**
 * gowalk() - return addresses of a goroutine, leaf first
 * @ret_n:     at least one, where it stands; 0 for a goroutine without a stack
 * @ret_whole: it ends at the goroutine's root
 *
 * Return: 0 or -errno.
 */
int gowalk(struct gowalk *w, const struct goroutine *g, uint64_t ret[GOWALK_FRAMES_MAX],
	   size_t *ret_n, bool *ret_whole);

/* Whether a goroutine that began at this function is one of the runtime's own, which its profiles
 * leave out: runtime.isSystemGoroutine(). */
int gowalk_is_system(struct gowalk *w, uint64_t start_pc, bool *ret);

#endif
