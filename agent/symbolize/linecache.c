// SPDX-License-Identifier: Apache-2.0
#include "symbolize/linecache.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "symbolize/symbolizer.h"

struct linecache_string {
	UT_hash_handle hh;
	char text[];
};

struct linecache_entry {
	UT_hash_handle hh;
	uint64_t vaddr;
	uint64_t start;
	uint32_t n;
	bool has_start;
	struct symbol_line lines[];
};

static void generation_init(struct linecache_generation *g, size_t max_bytes)
{
	*g = (struct linecache_generation){0};
	arena_init(&g->memory, max_bytes);
}

static void generation_deinit(struct linecache_generation *g)
{
	HASH_CLEAR(hh, g->entries);
	HASH_CLEAR(hh, g->strings);
	arena_deinit(&g->memory);
}

void linecache_init(struct linecache *cache, size_t max_bytes)
{
	generation_init(&cache->young, max_bytes / 2);
	generation_init(&cache->old, max_bytes / 2);
	cache->is_full = false;
}

void linecache_deinit(struct linecache *cache)
{
	generation_deinit(&cache->young);
	generation_deinit(&cache->old);
}

static size_t generation_bytes(const struct linecache_generation *g)
{
	return g->memory.bytes + HASH_OVERHEAD(hh, g->entries) + HASH_OVERHEAD(hh, g->strings);
}

size_t linecache_bytes(const struct linecache *cache)
{
	return generation_bytes(&cache->young) + generation_bytes(&cache->old);
}

/* 0, ARENA_FULL, -ENOMEM. */
static int intern(struct linecache_generation *g, const char *text, const char **ret)
{
	const size_t n = strlen(text);
	struct linecache_string **recent = &g->recent[hash_ends(text, n) % LINECACHE_RECENT];
	struct linecache_string *s = *recent;
	bool hash_oom = false;
	int r;

	if (s && s->hh.keylen == n && memcmp(s->text, text, n) == 0) {
		*ret = s->text;
		return 0;
	}
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
	*recent = s;
	*ret = s->text;
	return 0;
}

/* The same. */
static int add(struct linecache_generation *g, uint64_t vaddr,
	       const struct linecache_answer *answer)
{
	struct linecache_entry *entry;
	bool hash_oom = false;
	int r = arena_alloc(&g->memory, sizeof(*entry) + answer->n * sizeof(*answer->lines),
			    &entry);

	for (size_t i = 0; i < answer->n && !r; i++) {
		const struct symbol_line *from = &answer->lines[i];
		struct symbol_line *to = &entry->lines[i];

		*to = *from;
		r = intern(g, from->function, &to->function);
		if (!r && from->system_name == from->function)
			to->system_name = to->function;
		else if (!r)
			r = intern(g, from->system_name, &to->system_name);
		if (!r)
			r = intern(g, from->file, &to->file);
	}
	if (r)
		return r;
	entry->vaddr = vaddr;
	entry->n = (uint32_t)answer->n;
	entry->start = answer->start;
	entry->has_start = answer->has_start;
	HASH_ADD(hh, g->entries, vaddr, sizeof(entry->vaddr), entry);
	return hash_oom ? -ENOMEM : 0;
}

static void next_generation(struct linecache *cache)
{
	size_t max_bytes = cache->young.memory.max;

	generation_deinit(&cache->old);
	cache->old = cache->young;
	generation_init(&cache->young, max_bytes);
	cache->is_full = false;
}

int linecache_add(struct linecache *cache, uint64_t vaddr, const struct symbol_line *lines,
		  size_t n)
{
	const struct linecache_answer answer = {.lines = lines, .n = n};
	int r = add(&cache->young, vaddr, &answer);

	if (r == ARENA_FULL) {
		next_generation(cache);
		r = add(&cache->young, vaddr, &answer);
	}
	return r < 0 ? r : 0;
}

void linecache_age(struct linecache *cache)
{
	if (cache->is_full)
		next_generation(cache);
}

int linecache_keep(struct linecache *cache, uint64_t vaddr, const struct linecache_answer *answer)
{
	int r = add(&cache->young, vaddr, answer);

	cache->is_full |= r == ARENA_FULL;
	return r == ARENA_FULL ? LINECACHE_FULL : r;
}

static bool find(const struct linecache_generation *g, uint64_t vaddr, struct linecache_answer *ret)
{
	const struct linecache_entry *entry;

	HASH_FIND(hh, g->entries, &vaddr, sizeof(vaddr), entry);
	if (!entry)
		return false;
	*ret = (struct linecache_answer){
		.lines = entry->lines,
		.n = entry->n,
		.start = entry->start,
		.has_start = entry->has_start,
	};
	return true;
}

/* A full generation takes nothing: the caller's next new answer evicts the old one. */
bool linecache_find(struct linecache *cache, uint64_t vaddr, struct linecache_answer *ret)
{
	if (find(&cache->young, vaddr, ret))
		return true;
	if (!find(&cache->old, vaddr, ret))
		return false;
	if (add(&cache->young, vaddr, ret) == 0)
		(void)find(&cache->young, vaddr, ret);
	return true;
}

bool linecache_get(struct linecache *cache, uint64_t vaddr, const struct symbol_line **ret,
		   size_t *ret_n)
{
	struct linecache_answer answer;

	if (!linecache_find(cache, vaddr, &answer))
		return false;
	*ret = answer.lines;
	*ret_n = answer.n;
	return true;
}
