// SPDX-License-Identifier: Apache-2.0
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

/* Slots of the smallest table. */
#define SLOTS_MIN 16

static uint32_t hash_of(const void *key, size_t n)
{
	return (uint32_t)hash_bytes(key, n);
}

/* The slot of the key, or the free slot in its place. */
static struct interned **slot_of(const struct intern *in, const void *key, size_t n, uint32_t hash)
{
	size_t i = hash & (in->n_slots - 1);

	while (in->slots[i] && (in->slots[i]->hash != hash || in->slots[i]->n != n ||
				memcmp(in->slots[i]->key, key, n) != 0))
		i = (i + 1) & (in->n_slots - 1);
	return &in->slots[i];
}

static struct interned *find(const struct intern *in, const void *key, size_t n, uint32_t hash)
{
	return in->slots ? *slot_of(in, key, n, hash) : NULL;
}

/* Put an entry that is not in the table into it. */
static void put(struct intern *in, struct interned *entry)
{
	size_t i = entry->hash & (in->n_slots - 1);

	while (in->slots[i])
		i = (i + 1) & (in->n_slots - 1);
	in->slots[i] = entry;
}

/* Room for one more. 0, ARENA_FULL, -ENOMEM. */
static int grow(struct intern *in, struct arena *arena)
{
	struct intern larger = {.n = in->n};
	int r;

	if (2 * (in->n + 1) <= in->n_slots)
		return 0;
	larger.n_slots = in->n_slots ? 2 * in->n_slots : SLOTS_MIN;
	r = arena_charge(arena, (larger.n_slots - in->n_slots) * sizeof(*larger.slots));
	if (r)
		return r;
	larger.slots = calloc(larger.n_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_slots; i++)
		if (in->slots[i])
			put(&larger, in->slots[i]);
	free(in->slots);
	*in = larger;
	return 0;
}

/* A new entry. 0, ARENA_FULL, -ENOMEM. */
static int enter(struct intern *in, struct arena *arena, const void *key, size_t n, uint32_t hash,
		 uint32_t number, struct interned **ret)
{
	struct interned *entry;
	int r;

	if (n >= UINT32_MAX)
		return ARENA_FULL;
	r = grow(in, arena);
	if (!r)
		r = arena_bytes(arena, sizeof(*entry) + n + 1, &entry);
	if (r)
		return r;
	*entry = (struct interned){.n = (uint32_t)n, .number = number, .hash = hash};
	memcpy(entry->key, key, n);
	entry->key[n] = '\0';
	put(in, entry);
	in->n++;
	*ret = entry;
	return 0;
}

uint32_t intern_find(const struct intern *in, const void *key, size_t n)
{
	const struct interned *entry = find(in, key, n, hash_of(key, n));

	return entry ? entry->number : 0;
}

int intern_add(struct intern *in, struct arena *arena, const void *key, size_t n, uint32_t number,
	       const void **ret)
{
	struct interned *entry;
	int r = enter(in, arena, key, n, hash_of(key, n), number, &entry);

	if (!r)
		*ret = entry->key;
	return r;
}

int intern_text_slowly(struct intern_texts *texts, struct arena *arena, const char *text, size_t n,
		       const struct interned **ret)
{
	const uint32_t hash = hash_of(text, n);
	struct interned *entry = find(&texts->table, text, n, hash);
	int r = 0;

	if (!entry)
		r = enter(&texts->table, arena, text, n, hash, (uint32_t)texts->table.n, &entry);
	if (r)
		return r;
	texts->recent[hash_ends(text, n) % INTERN_RECENT] = entry;
	*ret = entry;
	return 0;
}

void intern_deinit(struct intern *in)
{
	free(in->slots);
	*in = (struct intern){0};
}

void intern_texts_deinit(struct intern_texts *texts)
{
	intern_deinit(&texts->table);
	memset(texts->recent, 0, sizeof(texts->recent));
}
