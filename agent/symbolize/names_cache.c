// SPDX-License-Identifier: Apache-2.0
#include "symbolize/names_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "symbolize/lookup.h"

struct names_entry {
	const struct image *image; /* @names has a reference */
	struct file_names *names;
	size_t bytes;
	uint64_t used; /* tick of the last use */
	UT_hash_handle hh;
};

static struct names_entry *find(const struct names_cache *cache, const struct image *image)
{
	struct names_entry *entry;

	HASH_FIND_PTR(cache->entries, &image, entry);
	return entry;
}

static void remove_entry(struct names_cache *cache, struct names_entry *entry)
{
	HASH_DEL(cache->entries, entry);
	cache->bytes -= entry->bytes;
	free(entry);
}

static void drop(struct names_cache *cache, struct names_entry *entry)
{
	file_names_free(entry->names);
	remove_entry(cache, entry);
}

static void weigh(struct names_cache *cache, struct names_entry *entry)
{
	cache->bytes -= entry->bytes;
	entry->bytes = sizeof(*entry) + file_names_bytes(entry->names);
	cache->bytes += entry->bytes;
}

void names_cache_trim(struct names_cache *cache)
{
	struct names_entry *entry, *next, *least;

	while (cache->bytes > cache->max_bytes && HASH_COUNT(cache->entries) > 1) {
		least = cache->entries;
		HASH_ITER(hh, cache->entries, entry, next)
			if (entry->used < least->used)
				least = entry;
		drop(cache, least);
	}
}

int names_cache_put(struct names_cache *cache, const struct image *image, struct file_names *names)
{
	struct names_entry *entry = calloc(1, sizeof(*entry));
	bool hash_oom = !entry;

	if (entry) {
		*entry =
			(struct names_entry){.image = image, .names = names, .used = ++cache->tick};
		HASH_ADD_PTR(cache->entries, image, entry);
	}
	if (hash_oom) {
		file_names_free(names);
		free(entry);
		return -ENOMEM;
	}
	weigh(cache, entry);
	names_cache_trim(cache);
	return 0;
}

struct file_names *names_cache_take(struct names_cache *cache, const struct image *image)
{
	struct names_entry *entry = find(cache, image);
	struct file_names *names = NULL;

	if (entry) {
		names = entry->names;
		remove_entry(cache, entry);
	}
	return names;
}

const struct file_names *names_cache_peek(const struct names_cache *cache,
					  const struct image *image)
{
	const struct names_entry *entry = find(cache, image);

	return entry ? entry->names : NULL;
}

const struct file_names *names_cache_use(struct names_cache *cache, const struct image *image)
{
	struct names_entry *entry = find(cache, image);

	if (!entry)
		return NULL;
	entry->used = ++cache->tick;
	return entry->names;
}

void names_cache_weigh(struct names_cache *cache, const struct image *image)
{
	struct names_entry *entry = find(cache, image);

	if (entry)
		weigh(cache, entry);
}

void names_cache_deinit(struct names_cache *cache)
{
	struct names_entry *entry, *next;

	HASH_ITER(hh, cache->entries, entry, next)
		drop(cache, entry);
}

size_t names_cache_bytes(const struct names_cache *cache)
{
	return cache->bytes + HASH_OVERHEAD(hh, cache->entries);
}
