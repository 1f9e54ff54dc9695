// SPDX-License-Identifier: Apache-2.0
#include "symbolize/linecache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbolize/symbolizer.h"

/* A place of the table. @entry is NULL in a free one. */
struct linecache_slot {
	uint64_t vaddr;
	const struct linecache_answer *entry; /* with its lines behind it */
};

/* Slots of the smallest table. */
#define SLOTS_MIN   16
/* Strings of a batch that are known by their address; a generation has 128 of the longest. */
#define TEXTS_KNOWN 1024

/* Strings added last, by a hash of their address: @to is the copy. */
struct linecache_texts {
	struct {
		const char *from, *to;
	} items[TEXTS_KNOWN];
};

static void generation_init(struct linecache_generation *g, size_t max_bytes)
{
	*g = (struct linecache_generation){0};
	arena_init(&g->memory, max_bytes);
}

static void generation_deinit(struct linecache_generation *g)
{
	free(g->slots);
	intern_texts_deinit(&g->strings);
	arena_deinit(&g->memory);
}

void linecache_init(struct linecache *cache, size_t max_bytes)
{
	generation_init(&cache->young, max_bytes / 2);
	generation_init(&cache->old, max_bytes / 2);
	cache->texts = NULL;
	cache->is_batch = false;
	cache->is_full = false;
}

void linecache_begin(struct linecache *cache)
{
	cache->is_batch = true;
}

void linecache_end(struct linecache *cache)
{
	free(cache->texts);
	cache->texts = NULL;
	cache->is_batch = false;
}

void linecache_deinit(struct linecache *cache)
{
	linecache_end(cache);
	generation_deinit(&cache->young);
	generation_deinit(&cache->old);
}

size_t linecache_bytes(const struct linecache *cache)
{
	return cache->young.memory.bytes + cache->old.memory.bytes;
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
	r = arena_charge(&g->memory, (n - g->n_slots) * sizeof(*slots));
	if (r)
		return r;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_slots; i++)
		if (g->slots[i].entry)
			*slot_of(slots, n, g->slots[i].vaddr) = g->slots[i];
	free(g->slots);
	g->slots = slots;
	g->n_slots = n;
	return 0;
}

/* The same. */
static int add_string(struct linecache_generation *g, const char *text, size_t n, const char **ret)
{
	const struct interned *string;
	int r = intern_text(&g->strings, &g->memory, text, n, &string);

	if (!r)
		*ret = string->key;
	return r;
}

static int add_text(struct linecache *cache, const char *text, const char **ret)
{
	const size_t i = hash_words((uintptr_t)text, 0) % TEXTS_KNOWN;
	struct linecache_texts *texts;
	int r;

	/* without memory each string is looked for */
	if (cache->is_batch && !cache->texts)
		cache->texts = calloc(1, sizeof(*cache->texts));
	texts = cache->texts;
	if (texts && texts->items[i].from == text) {
		*ret = texts->items[i].to;
		return 0;
	}
	r = add_string(&cache->young, text, strlen(text), ret);
	if (!r && texts) {
		texts->items[i].from = text;
		texts->items[i].to = *ret;
	}
	return r;
}

/* The same. */
static int add_line(struct linecache *cache, struct symbol_line *line)
{
	const char *function = line->function;
	int r = add_text(cache, function, &line->function);

	if (!r && line->system_name == function)
		line->system_name = line->function;
	else if (!r)
		r = add_text(cache, line->system_name, &line->system_name);
	return r ? r : add_text(cache, line->file, &line->file);
}

/* The same. @has_strings: of this generation. */
static int add(struct linecache *cache, uint64_t vaddr, const struct linecache_answer *answer,
	       bool has_strings)
{
	struct linecache_generation *g = &cache->young;
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
		r = add_line(cache, &lines[i]);
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
	size_t max_bytes = cache->young.memory.max;

	generation_deinit(&cache->old);
	if (cache->texts)
		memset(cache->texts, 0, sizeof(*cache->texts));
	cache->old = cache->young;
	generation_init(&cache->young, max_bytes);
	cache->is_full = false;
}

int linecache_add(struct linecache *cache, uint64_t vaddr, const struct symbol_line *lines,
		  size_t n)
{
	const struct linecache_answer answer = {.lines = lines, .n = n};
	int r = add(cache, vaddr, &answer, false);

	if (r == ARENA_FULL) {
		next_generation(cache);
		r = add(cache, vaddr, &answer, false);
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
	int r = add_string(&cache->young, text, n, ret);

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
	int r = add(cache, vaddr, answer, has_strings);

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
	if (answer && add(cache, vaddr, answer, false) == 0)
		answer = find(&cache->young, vaddr);
	return answer;
}
