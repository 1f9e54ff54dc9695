/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_PRIOQ_H
#define PODPROF_BASE_PRIOQ_H

/*
 * A priority queue of the caller's items, without memory of its own: a pairing heap (Fredman,
 * Sedgewick, Sleator and Tarjan, 1986). The first item is known at once. n calls of the functions
 * take O(n log n) together.
 */

#include <stdbool.h>
#include <stdint.h>

/* A member of the caller's struct. All zeros: in no queue. */
struct prioq_item {
	uint64_t key;
	struct prioq_item *child; /* the first of the items behind this one */
	struct prioq_item *next;  /* the next child of the same item */
	struct prioq_item *prev;  /* the one before; of a first child, the item above */
	bool is_in;
};

/* All zeros: empty. */
struct prioq {
	struct prioq_item *first; /* the item with the smallest key, or one of these */
};

/* Adds @item, or moves it to the place of its new key. */
void prioq_put(struct prioq *q, struct prioq_item *item, uint64_t key);
/* Does nothing if @item is not in the queue. */
void prioq_remove(struct prioq *q, struct prioq_item *item);

#endif
