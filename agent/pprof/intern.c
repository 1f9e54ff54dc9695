// SPDX-License-Identifier: Apache-2.0
#include "pprof/intern.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

struct intern_entry {
	UT_hash_handle hh;
	uint32_t number;
	_Alignas(8) char key[];
};

uint32_t intern_find(const struct intern *in, const void *key, size_t n)
{
	struct intern_entry *entry;

	HASH_FIND(hh, in->entries, key, n, entry);
	return entry ? entry->number : 0;
}

int intern_add(struct intern *in, struct arena *arena, const void *key, size_t n, uint32_t number,
	       const void **ret)
{
	bool hash_oom = false;
	struct intern_entry *entry;
	int r = arena_alloc(arena, sizeof(*entry) + n + 1, &entry);

	if (r)
		return r;
	memcpy(entry->key, key, n);
	entry->number = number;
	HASH_ADD_KEYPTR(hh, in->entries, entry->key, n, entry);
	if (hash_oom)
		return -ENOMEM; /* the bytes stay in the arena, unused */
	*ret = entry->key;
	return 0;
}

void intern_deinit(struct intern *in)
{
	HASH_CLEAR(hh, in->entries);
}
