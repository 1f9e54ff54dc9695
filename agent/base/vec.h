/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_VEC_H
#define PODPROF_BASE_VEC_H

#include <stddef.h>

enum vec_outcome {
	VEC_OK = 0,
	VEC_FULL, /* the ceiling would be passed */
};

/* Only for vec_grow(). */
int vec_grow_more(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
	__attribute__((warn_unused_result));

/**
 * vec_grow() - make room in an array by doubling
 * @items:     address of the array pointer (NULL for none yet); the array's owner calls free()
 * @cap:       elements allocated, updated
 * @need:      elements that must fit
 * @item_size: bytes per element
 * @max:       ceiling for @need
 *
 * Return: 0; VEC_FULL; -ENOMEM. On an error nothing changes.
 */
static inline __attribute__((warn_unused_result)) int
vec_grow(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
{
	if (need <= *cap && need <= max)
		return 0;
	return vec_grow_more(items, cap, need, item_size, max);
}

/* vec_grow() by an eighth, for arrays of many megabytes, where an unused half costs too much. A
 * large block moves without a copy, and its new part is prefaulted. */
int vec_grow_tight(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
	__attribute__((warn_unused_result));

/*
 * Populates the pages of a fresh block of memory just before its use: one call instead of a fault
 * for each page (2 to 5 us each in a virtual machine). Does nothing for small blocks, and before
 * Linux 5.14.
 */
void prefault(void *block, size_t n_bytes);

#endif
