// SPDX-License-Identifier: Apache-2.0
/*
 * The owners of address spaces, and the orders of the owners: the thread serves one after another,
 * and the largest gives way at a ceiling.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/prioq.h"
#include "procmap/space.h"

int space_get_owner(struct address_space_cache *c, uint64_t id, struct space_owner **ret)
{
	struct space_owner *owner;
	bool hash_oom = false;

	HASH_FIND(hh, c->owners, &id, sizeof(id), owner);
	if (owner) {
		*ret = owner;
		return 0;
	}
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return -ENOMEM;
	owner->id = id;
	TAILQ_INIT(&owner->spaces);
	TAILQ_INIT(&owner->queue);
	TAILQ_INIT(&owner->lists);
	HASH_ADD(hh, c->owners, id, sizeof(id), owner);
	if (hash_oom) {
		free(owner);
		return -ENOMEM;
	}
	*ret = owner;
	return 0;
}

void space_put_owner(struct address_space_cache *c, struct space_owner *owner)
{
	if (owner->n_spaces || owner->n_lists || owner->n_batches)
		return;
	HASH_DEL(c->owners, owner); /* without spaces it is in no order */
	free(owner);
}

static void set_place(struct address_space_cache *c, struct space_owner *owner,
		      enum space_order order, bool is_in, uint64_t key)
{
	struct prioq_item *place = &owner->places[order];

	if (!is_in)
		prioq_remove(&c->orders[order], place);
	else if (!place->is_in || place->key != key)
		prioq_put(&c->orders[order], place, key);
}

void space_order_owner(struct address_space_cache *c, struct space_owner *owner)
{
	set_place(c, owner, ORDER_BATCHES, !TAILQ_EMPTY(&owner->queue), owner->used_ns);
	set_place(c, owner, ORDER_LISTS, !TAILQ_EMPTY(&owner->lists), owner->used_ns);
	set_place(c, owner, ORDER_SPACES, owner->n_spaces, UINT64_MAX - owner->n_spaces);
	set_place(c, owner, ORDER_MAPPINGS, owner->n_mappings, UINT64_MAX - owner->n_mappings);
}

struct space_owner *space_first_owner(const struct address_space_cache *c, enum space_order order)
{
	struct prioq_item *first = c->orders[order].first;

	return first ? container_of(first - order, struct space_owner, places) : NULL;
}

void space_enqueue(struct address_space_cache *c, struct address_space *s)
{
	if (s->queued)
		return;
	TAILQ_INSERT_TAIL(&s->owner->queue, s, in_queue);
	s->queued = true;
	space_order_owner(c, s->owner);
}

void space_unqueue(struct address_space_cache *c, struct address_space *s)
{
	if (!s->queued)
		return;
	TAILQ_REMOVE(&s->owner->queue, s, in_queue);
	s->queued = false;
	space_order_owner(c, s->owner);
}

void space_enqueue_list(struct address_space_cache *c, struct address_space *s)
{
	TAILQ_INSERT_TAIL(&s->owner->lists, s, in_lists);
	s->list_queued = true;
	space_order_owner(c, s->owner);
}

void space_unqueue_list(struct address_space_cache *c, struct address_space *s)
{
	if (!s->list_queued)
		return;
	TAILQ_REMOVE(&s->owner->lists, s, in_lists);
	s->list_queued = false;
	space_order_owner(c, s->owner);
}
