// SPDX-License-Identifier: Apache-2.0
#include "base/prioq.h"

#include <stddef.h>

/* Two heaps as one; NULL is an empty heap. */
static struct prioq_item *meld(struct prioq_item *a, struct prioq_item *b)
{
	struct prioq_item *first, *behind;

	if (!a || !b)
		return a ? a : b;
	first = b->key < a->key ? b : a;
	behind = first == a ? b : a;
	behind->prev = first;
	behind->next = first->child;
	if (behind->next)
		behind->next->prev = behind;
	first->child = behind;
	return first;
}

/* The heap of these siblings: in pairs from the left, then all from the right. The two passes bound
 * the mean cost. */
static struct prioq_item *meld_all(struct prioq_item *siblings)
{
	struct prioq_item *pairs = NULL, *all = NULL;

	while (siblings) {
		struct prioq_item *a = siblings, *b = a->next, *pair;

		siblings = b ? b->next : NULL;
		pair = meld(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct prioq_item *pair = pairs;

		pairs = pair->next;
		all = meld(all, pair);
	}
	return all;
}

void prioq_remove(struct prioq *q, struct prioq_item *item)
{
	struct prioq_item *below;

	if (!item->is_in)
		return;
	below = meld_all(item->child);
	if (item == q->first) {
		q->first = below;
	} else {
		if (item->prev->child == item)
			item->prev->child = item->next;
		else
			item->prev->next = item->next;
		if (item->next)
			item->next->prev = item->prev;
		q->first = meld(q->first, below);
	}
	*item = (struct prioq_item){0};
}

void prioq_put(struct prioq *q, struct prioq_item *item, uint64_t key)
{
	prioq_remove(q, item);
	*item = (struct prioq_item){.key = key, .is_in = true};
	q->first = meld(q->first, item);
}
