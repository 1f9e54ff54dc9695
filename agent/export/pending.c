// SPDX-License-Identifier: Apache-2.0
#include "export/pending.h"

#include <stdlib.h>

#include "export/outbox.h"

void pending_init(struct pending_list *list)
{
	*list = (struct pending_list){.last = &list->first};
}

void pending_push(struct pending_list *list, struct pending *pending)
{
	pending->next = NULL;
	*list->last = pending;
	list->last = &pending->next;
	list->n++;
	list->bytes += pending->p->bytes;
}

struct pending *pending_pop(struct pending_list *list)
{
	struct pending *pending = list->first;

	if (!pending)
		return NULL;
	list->first = pending->next;
	if (!list->first)
		list->last = &list->first;
	list->n--;
	list->bytes -= pending->p->bytes;
	return pending;
}

void pending_free(struct pending *pending)
{
	queued_profile_unref(pending->p);
	free(pending);
}

void pending_orphan(struct pending_list *list)
{
	for (struct pending *at = list->first; at; at = at->next)
		queued_profile_orphan(at->p);
}
