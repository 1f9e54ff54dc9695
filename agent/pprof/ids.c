// SPDX-License-Identifier: Apache-2.0
#include "pprof/ids.h"

#include <stdlib.h>

#include "base/arena.h"

int ids_init(struct ids *ids, struct arena *arena, size_t n)
{
	*ids = (struct ids){0};
	return arena_array(arena, n, sizeof(*ids->entries), &ids->entries);
}

void ids_add(struct ids *ids, uint64_t id)
{
	ids->entries[ids->n] = (struct ids_entry){id, (uint32_t)ids->n + 1};
	ids->n++;
}

static int by_id(const void *a, const void *b)
{
	const struct ids_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int ids_finish(struct ids *ids)
{
	ids->dense = true;
	for (size_t i = 0; i < ids->n; i++)
		ids->dense = ids->dense && ids->entries[i].id == i + 1;
	if (ids->dense)
		return 0;
	qsort(ids->entries, ids->n, sizeof(*ids->entries), by_id);
	for (size_t i = 1; i < ids->n; i++)
		if (ids->entries[i - 1].id == ids->entries[i].id)
			return IDS_TWICE;
	return 0;
}

uint32_t ids_find(const struct ids *ids, uint64_t id)
{
	struct ids_entry key = {.id = id};
	const struct ids_entry *entry;

	if (ids->dense)
		return id <= ids->n ? (uint32_t)id : 0;
	entry = bsearch(&key, ids->entries, ids->n, sizeof(key), by_id);
	return entry ? entry->number : 0;
}
