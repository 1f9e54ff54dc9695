// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfcache.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "symbolize/symbolizer.h"

struct dwarfcache_string {
	UT_hash_handle hh;
	char text[];
};

struct dwarfcache_entry {
	UT_hash_handle hh;
	uint64_t vaddr;
	size_t n;
	struct symbol_line lines[];
};

static void generation_init(struct dwarfcache_generation *g, size_t max_bytes)
{
	*g = (struct dwarfcache_generation){0};
	arena_init(&g->memory, max_bytes);
}

static void generation_deinit(struct dwarfcache_generation *g)
{
	HASH_CLEAR(hh, g->entries);
	HASH_CLEAR(hh, g->strings);
	arena_deinit(&g->memory);
}

void dwarfcache_init(struct dwarfcache *cache, size_t max_bytes)
{
	generation_init(&cache->young, max_bytes / 2);
	generation_init(&cache->old, max_bytes / 2);
}

void dwarfcache_deinit(struct dwarfcache *cache)
{
	generation_deinit(&cache->young);
	generation_deinit(&cache->old);
}

static size_t generation_bytes(const struct dwarfcache_generation *g)
{
	return g->memory.bytes + HASH_OVERHEAD(hh, g->entries) + HASH_OVERHEAD(hh, g->strings);
}

size_t dwarfcache_bytes(const struct dwarfcache *cache)
{
	return generation_bytes(&cache->young) + generation_bytes(&cache->old);
}

/* 0, ARENA_FULL, -ENOMEM. */
static int intern(struct dwarfcache_generation *g, const char *text, const char **ret)
{
	size_t n = strlen(text);
	struct dwarfcache_string *s;
	bool hash_oom = false;
	int r;

	HASH_FIND(hh, g->strings, text, n, s);
	if (!s) {
		r = arena_alloc(&g->memory, sizeof(*s) + n + 1, &s);
		if (r)
			return r;
		memcpy(s->text, text, n + 1);
		HASH_ADD_KEYPTR(hh, g->strings, s->text, n, s);
		if (hash_oom)
			return -ENOMEM;
	}
	*ret = s->text;
	return 0;
}

/* The same. */
static int add(struct dwarfcache_generation *g, uint64_t vaddr, const struct symbol_line *lines,
	       size_t n)
{
	struct dwarfcache_entry *entry;
	bool hash_oom = false;
	int r = arena_alloc(&g->memory, sizeof(*entry) + n * sizeof(*lines), &entry);

	for (size_t i = 0; i < n && !r; i++) {
		struct symbol_line *line = &entry->lines[i];

		*line = lines[i];
		r = intern(g, lines[i].function, &line->function);
		if (!r)
			r = intern(g, lines[i].system_name, &line->system_name);
		if (!r)
			r = intern(g, lines[i].file, &line->file);
	}
	if (r)
		return r;
	entry->vaddr = vaddr;
	entry->n = n;
	HASH_ADD(hh, g->entries, vaddr, sizeof(entry->vaddr), entry);
	return hash_oom ? -ENOMEM : 0;
}

int dwarfcache_add(struct dwarfcache *cache, uint64_t vaddr, const struct symbol_line *lines,
		   size_t n)
{
	int r = add(&cache->young, vaddr, lines, n);

	if (r == ARENA_FULL) {
		size_t max_bytes = cache->young.memory.max;

		generation_deinit(&cache->old);
		cache->old = cache->young;
		generation_init(&cache->young, max_bytes);
		r = add(&cache->young, vaddr, lines, n);
	}
	return r < 0 ? r : 0;
}

static const struct dwarfcache_entry *find(const struct dwarfcache_generation *g, uint64_t vaddr)
{
	const struct dwarfcache_entry *entry;

	HASH_FIND(hh, g->entries, &vaddr, sizeof(vaddr), entry);
	return entry;
}

bool dwarfcache_get(struct dwarfcache *cache, uint64_t vaddr, const struct symbol_line **ret,
		    size_t *ret_n)
{
	const struct dwarfcache_entry *entry = find(&cache->young, vaddr);

	if (!entry) {
		entry = find(&cache->old, vaddr);
		/* not into a full generation: this would drop the entry */
		if (entry && add(&cache->young, vaddr, entry->lines, entry->n) == 0)
			entry = find(&cache->young, vaddr);
	}
	if (!entry)
		return false;
	*ret = entry->lines;
	*ret_n = entry->n;
	return true;
}
