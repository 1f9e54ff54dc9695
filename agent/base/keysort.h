/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_KEYSORT_H
#define PODPROF_BASE_KEYSORT_H

/*
 * Sorting by a 64-bit number, without comparisons (a radix sort): for addresses, of which many are
 * sorted at once.
 */

#include <stddef.h>

/* Bytes of an item. The first 8 are its key. */
#define KEYSORT_BYTES 16

/* Sorts @n items by their keys, in ascending order; items with the same key keep their order. @room
 * has space for @n items. Returns @items or @room: the one with the sorted items. */
void *keysort(void *items, void *room, size_t n);

#endif
