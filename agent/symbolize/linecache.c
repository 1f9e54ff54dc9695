// SPDX-License-Identifier: Apache-2.0
#include "symbolize/linecache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbolize/symbolizer.h"

struct linecache_string {
	uint32_t n;    /* bytes before the NUL */
	uint32_t hash; /* of the text */
	char text[];
};

/* A place of the table. @entry is NULL in a free one. */
struct linecache_slot {
	uint64_t vaddr;
	const struct linecache_answer *entry; /* with its lines behind it */
};

/* Slots of the smallest table. */
#define SLOTS_MIN 16

static void generation_init(struct linecache_generation *g, size_t max_bytes)
{
	*g = (struct linecache_generation){.max_bytes = max_bytes};
	arena_init(&g->memory, max_bytes);
}

static void generation_deinit(struct linecache_generation *g)
{
	free(g->slots);
	free(g->strings);
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

static size_t table_bytes(const struct linecache_generation *g)
{
	return g->n_slots * sizeof(*g->slots) +
	       g->n_string_slots * sizeof(struct linecache_string *);
}

static size_t generation_bytes(const struct linecache_generation *g)
{
	return g->memory.bytes + table_bytes(g);
}

size_t linecache_bytes(const struct linecache *cache)
{
	return generation_bytes(&cache->young) + generation_bytes(&cache->old);
}

/* A larger table with room for @n items of @size bytes, instead of one of @old bytes. 0,
 * ARENA_FULL, -ENOMEM. */
static int table_new(struct linecache_generation *g, size_t old, size_t n, size_t size,
		     void *ret_table)
{
	const size_t bytes = table_bytes(g) - old + n * size;
	void *table;

	if (g->memory.bytes + bytes > g->max_bytes)
		return ARENA_FULL;
	table = calloc(n, size);
	if (!table)
		return -ENOMEM;
	memcpy(ret_table, &table, sizeof(table));
	g->memory.max = g->max_bytes - bytes;
	return 0;
}

/* ---------------------------------------------------------------- strings */

/* The slot of the text, or the free slot in its place. A table has free slots. */
static struct linecache_string **string_slot(struct linecache_generation *g, const char *text,
					     size_t n, uint32_t hash)
{
	size_t i = hash & (g->n_string_slots - 1);

	while (g->strings[i] && (g->strings[i]->hash != hash || g->strings[i]->n != n ||
				 memcmp(g->strings[i]->text, text, n) != 0))
		i = (i + 1) & (g->n_string_slots - 1);
	return &g->strings[i];
}

/* Half of the slots stay free. 0, ARENA_FULL, -ENOMEM. */
static int make_string_slot(struct linecache_generation *g)
{
	const size_t n = g->n_string_slots ? g->n_string_slots * 2 : SLOTS_MIN;
	struct linecache_string **strings;
	int r;

	if (2 * g->n_strings < g->n_string_slots)
		return 0;
	r = table_new(g, g->n_string_slots * sizeof(*strings), n, sizeof(*strings), &strings);
	if (r)
		return r;
	for (size_t k = 0; k < g->n_string_slots; k++) {
		size_t i;

		if (!g->strings[k])
			continue;
		for (i = g->strings[k]->hash & (n - 1); strings[i];)
			i = (i + 1) & (n - 1);
		strings[i] = g->strings[k];
	}
	free(g->strings);
	g->strings = strings;
	g->n_string_slots = n;
	return 0;
}

/* The same. */
static int add_string(struct linecache_generation *g, const char *text, size_t n, uint32_t hash,
		      struct linecache_string **ret)
{
	struct linecache_string *s;
	int r = arena_bytes(&g->memory, sizeof(*s) + n + 1, &s);

	if (r)
		return r;
	*s = (struct linecache_string){.n = (uint32_t)n, .hash = hash};
	memcpy(s->text, text, n);
	s->text[n] = '\0';
	*string_slot(g, text, n, hash) = s;
	g->n_strings++;
	*ret = s;
	return 0;
}

/* The same. */
static int intern(struct linecache_generation *g, const char *text, size_t n, const char **ret)
{
	struct linecache_string **recent = &g->recent[hash_ends(text, n) % LINECACHE_RECENT];
	struct linecache_string *s = *recent;
	uint32_t hash;
	int r;

	if (s && s->n == n && memcmp(s->text, text, n) == 0) {
		*ret = s->text;
		return 0;
	}
	if (n >= UINT32_MAX)
		return ARENA_FULL;
	hash = (uint32_t)hash_bytes(text, n);
	s = g->strings ? *string_slot(g, text, n, hash) : NULL;
	r = s ? 0 : make_string_slot(g);
	if (!r && !s)
		r = add_string(g, text, n, hash, &s);
	if (r)
		return r;
	*recent = s;
	*ret = s->text;
	return 0;
}

/* ---------------------------------------------------------------- answers */

/* The slot of @vaddr, or the free slot in its place. A table has free slots. */
static struct linecache_slot *slot_of(struct linecache_slot *slots, size_t n_slots, uint64_t vaddr)
{
	size_t i = hash_words(vaddr, 0) & (n_slots - 1);

	while (slots[i].entry && slots[i].vaddr != vaddr)
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

/* Room for @more answers. Half of the slots stay free. 0, ARENA_FULL, -ENOMEM. */
static int make_slots(struct linecache_generation *g, size_t more)
{
	size_t n = g->n_slots ? g->n_slots : SLOTS_MIN;
	struct linecache_slot *slots;
	int r;

	while (2 * (g->n + more - 1) >= n)
		n *= 2;
	if (n == g->n_slots)
		return 0;
	r = table_new(g, g->n_slots * sizeof(*slots), n, sizeof(*slots), &slots);
	if (r)
		return r;
	for (size_t i = 0; i < g->n_slots; i++)
		if (g->slots[i].entry)
			*slot_of(slots, n, g->slots[i].vaddr) = g->slots[i];
	free(g->slots);
	g->slots = slots;
	g->n_slots = n;
	return 0;
}

static int intern_text(struct linecache_generation *g, const char *text, const char **ret)
{
	return intern(g, text, strlen(text), ret);
}

/* The same. */
static int intern_line(struct linecache_generation *g, struct symbol_line *line)
{
	const char *function = line->function;
	int r = intern_text(g, function, &line->function);

	if (!r && line->system_name == function)
		line->system_name = line->function;
	else if (!r)
		r = intern_text(g, line->system_name, &line->system_name);
	return r ? r : intern_text(g, line->file, &line->file);
}

/* The same. @has_strings: of this generation. */
static int add(struct linecache_generation *g, uint64_t vaddr,
	       const struct linecache_answer *answer, bool has_strings)
{
	struct linecache_answer *entry;
	struct linecache_slot *slot;
	struct symbol_line *lines;
	int r = make_slots(g, 1);

	if (!r)
		r = arena_bytes(&g->memory, sizeof(*entry) + answer->n * sizeof(*lines), &entry);
	if (r)
		return r;
	lines = (struct symbol_line *)(entry + 1);
	if (answer->n)
		memcpy(lines, answer->lines, answer->n * sizeof(*lines));
	for (size_t i = 0; i < answer->n && !r && !has_strings; i++)
		r = intern_line(g, &lines[i]);
	if (r)
		return r;
	*entry = *answer;
	entry->lines = lines;
	slot = slot_of(g->slots, g->n_slots, vaddr);
	g->n += !slot->entry;
	*slot = (struct linecache_slot){vaddr, entry};
	return 0;
}

static void next_generation(struct linecache *cache)
{
	size_t max_bytes = cache->young.max_bytes;

	generation_deinit(&cache->old);
	cache->old = cache->young;
	generation_init(&cache->young, max_bytes);
	cache->is_full = false;
}

int linecache_add(struct linecache *cache, uint64_t vaddr, const struct symbol_line *lines,
		  size_t n)
{
	const struct linecache_answer answer = {.lines = lines, .n = n};
	int r = add(&cache->young, vaddr, &answer, false);

	if (r == ARENA_FULL) {
		next_generation(cache);
		r = add(&cache->young, vaddr, &answer, false);
	}
	return r < 0 ? r : 0;
}

void linecache_age(struct linecache *cache)
{
	if (cache->is_full)
		next_generation(cache);
}

int linecache_expect(struct linecache *cache, size_t n)
{
	int r = make_slots(&cache->young, n);

	return r < 0 ? r : 0;
}

int linecache_string(struct linecache *cache, const char *text, size_t n, const char **ret)
{
	int r = intern(&cache->young, text, n, ret);

	cache->is_full |= r == ARENA_FULL;
	return r == ARENA_FULL ? LINECACHE_FULL : r;
}

static const struct linecache_answer *find(const struct linecache_generation *g, uint64_t vaddr)
{
	return g->n_slots ? slot_of(g->slots, g->n_slots, vaddr)->entry : NULL;
}

int linecache_keep(struct linecache *cache, uint64_t vaddr, const struct linecache_answer *answer,
		   bool has_strings, const struct linecache_answer **ret)
{
	int r = add(&cache->young, vaddr, answer, has_strings);

	if (!r)
		*ret = find(&cache->young, vaddr);
	cache->is_full |= r == ARENA_FULL;
	return r == ARENA_FULL ? LINECACHE_FULL : r;
}

/* A full generation takes nothing: the caller's next new answer evicts the old one. */
const struct linecache_answer *linecache_find(struct linecache *cache, uint64_t vaddr)
{
	const struct linecache_answer *answer = find(&cache->young, vaddr);

	if (answer)
		return answer;
	answer = find(&cache->old, vaddr);
	if (answer && add(&cache->young, vaddr, answer, false) == 0)
		answer = find(&cache->young, vaddr);
	return answer;
}
