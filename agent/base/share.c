// SPDX-License-Identifier: Apache-2.0
#include "base/share.h"

#include <stdlib.h>

struct share_holder *share_holder_find(struct share_holder *holders, uint64_t id)
{
	struct share_holder *h;

	HASH_FIND(hh, holders, &id, sizeof(id), h);
	return h;
}

struct share_holder *share_holder_get(struct share_holder **holders, uint64_t id)
{
	struct share_holder *h = share_holder_find(*holders, id);
	bool hash_oom = false;

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->id = id;
	HASH_ADD(hh, *holders, id, sizeof(h->id), h);
	if (hash_oom) {
		free(h);
		return NULL;
	}
	return h;
}

void share_holder_put(struct share_holder **holders, struct share_holder *h)
{
	if (!h || h->held)
		return;
	HASH_DEL(*holders, h);
	free(h);
}
