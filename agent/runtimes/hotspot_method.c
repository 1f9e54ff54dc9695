// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a class is freed when its loader is, and code is freed and replaced at any time.
 * The check of interpreted code therefore has the names of the method and of its class: another
 * class often takes the addresses of all others of its words.
 */
#include "runtimes/hotspot_method.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmap/memory.h"
#include "runtimes/hotspot_places.h"
#include "runtimes/hotspot_scopes.h"

#define BLOB_NAME_BYTES 64
#define CHECK_FACTOR	0x9e3779b97f4a7c15ull
/* The name of the return barrier. */
#define FROZEN_NAME	"(frozen frames)"

void hotspot_function_deinit(struct hotspot_function *f)
{
	free(f->places);
	*f = (struct hotspot_function){0};
}

/* The words of a check. */
#define KEY_WORDS (3 + 2 * HOTSPOT_SYMBOL_WORDS)

static uint64_t mix(uint64_t h, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		h = (h ^ words[i]) * CHECK_FACTOR;
		h ^= h >> 29;
	}
	return h;
}

/* Of a method, the last words are the class's name, with a value of their own. */
static uint32_t check_of(const uint64_t *words, size_t n)
{
	const size_t n_class = n == KEY_WORDS ? HOTSPOT_SYMBOL_WORDS : 0;
	uint64_t h = mix(0, words, n - n_class);
	const uint64_t value = mix(0, words + n - n_class, n_class);

	if (n_class)
		h = mix(h, &value, 1);
	return (uint32_t)(h >> 32);
}

struct reading {
	struct memory *m;
	const struct hotspot_target *target;
	const uint64_t *f; /* fields of the layout */
	uint64_t object;
	uint32_t place;
	bool is_compiled;
};

/* What the reading begins with. Equal before and after if all that was read belongs together. */
struct origin {
	uint64_t key[KEY_WORDS]; /* the words of the check ... */
	size_t n_key;
	struct hotspot_tables tables; /* of compiled code */
};

static int read_ranges(const struct reading *r, const struct memory_range *ranges, size_t n)
{
	return hotspot_outcome_of_memory(memory_read_ranges(r->m, ranges, n));
}

/* ---------------------------------------------------------------- the check */

/* With the tables. A freed block keeps its words, and its Method can be another one's memory by
 * then. */
static int read_compiled(const struct reading *r, struct origin *ret)
{
	const uint64_t block = r->object - r->target->layout.bytes[HOTSPOT_BLOCK];
	uint8_t is_used = !r->target->layout.known[HOTSPOT_BLOCK_USED];
	uint32_t id = 0;
	const struct memory_range ranges[] = {
		{block + r->f[HOTSPOT_BLOCK_USED], &is_used, !is_used},
		{r->object + r->target->process.blob_name, &ret->key[0], 8},
		{r->object + r->target->process.blob_method, &ret->key[1], 8},
		{r->object + r->target->process.blob_compile_id, &id, 4},
	};
	int result = hotspot_tables_read(r->m, r->target, r->object, ranges, array_size(ranges),
					 &ret->tables);

	ret->key[2] = id;
	return !result && !is_used ? HOTSPOT_ODD : result;
}

/* The symbols in the check. */
static int read_key_symbols(const struct reading *r, const uint64_t at[2],
			    uint64_t (*ret)[HOTSPOT_SYMBOL_WORDS])
{
	const struct hotspot_process *p = &r->target->process;
	struct memory_range ranges[] = {{at[0], &ret[0][0], 8}, {at[1], &ret[1][0], 8}};
	int result = read_ranges(r, ranges, 2);

	for (int i = 0; i < 2; i++) {
		const size_t end = p->symbol_text + (ret[i][0] >> p->symbol_n * 8 & 0xffff);
		const size_t n = end < sizeof(ret[i]) ? (end + 7) / 8 * 8 : sizeof(ret[i]);

		ranges[i] = (struct memory_range){at[i] + 8, &ret[i][1], n > 8 ? n - 8 : 0};
		ret[i][0] &= p->symbol_kept;
	}
	return result ? result : read_ranges(r, ranges, 2);
}

/* The words of a method's check behind the first three. */
static int read_key_names(const struct reading *r, uint64_t key[KEY_WORDS])
{
	const struct hotspot_process *p = &r->target->process;
	const uint64_t index = key[2] >> p->name_index * 8 & 0xffff;
	uint64_t symbols[2][HOTSPOT_SYMBOL_WORDS] = {{0}}, at[2], holder;
	const struct memory_range ranges[] = {
		{key[1] + p->pool_entries + index * 8, &at[0], 8},
		{key[1] + p->pool_holder, &holder, 8},
	};
	int result = read_ranges(r, ranges, 2);

	if (!result)
		result = hotspot_outcome_of_memory(
			memory_read(r->m, (holder & ~1ull) + p->class_name, &at[1], 8));
	if (result)
		return result;
	at[0] &= ~1ull; /* a mark of the pool */
	at[1] &= ~1ull;
	result = read_key_symbols(r, at, symbols);
	memcpy(key + 3, symbols, sizeof(symbols));
	return result;
}

static int read_method_key(const struct reading *r, uint64_t key[KEY_WORDS])
{
	const struct hotspot_process *p = &r->target->process;
	struct memory_range ranges[] = {{r->object + p->method_const, &key[0], 8}, {0}};
	int result = read_ranges(r, ranges, 1);

	if (result)
		return result;
	ranges[0] = (struct memory_range){key[0] + p->const_constants, &key[1], 8};
	ranges[1] = (struct memory_range){key[0] + p->const_names, &key[2], 8};
	result = read_ranges(r, ranges, 2);
	return result ? result : read_key_names(r, key);
}

static int read_origin(const struct reading *r, struct origin *ret)
{
	*ret = (struct origin){.n_key = r->is_compiled ? 3 : KEY_WORDS};
	return r->is_compiled ? read_compiled(r, ret) : read_method_key(r, ret->key);
}

/* ---------------------------------------------------------------- frames */

static bool is_barrier(const struct reading *r, uint64_t code)
{
	return r->target->layout.machine == EM_AARCH64
		       ? (code & HOTSPOT_BARRIER_ARM64_MASK) == HOTSPOT_BARRIER_ARM64
		       : (code & HOTSPOT_BARRIER_X86_MASK) == HOTSPOT_BARRIER_X86;
}

/* The name of a blob that is no method. At the return barrier, frames of a virtual thread are in
 * the heap of objects instead of on the stack. */
static int name_blob(const struct reading *r, char ret_text[BLOB_NAME_BYTES])
{
	uint64_t code = 0;
	int result;

	/* the address looked up is one before the return address */
	result = hotspot_outcome_of_memory(
		memory_read(r->m, r->object + r->place + 1, &code, sizeof(code)));
	if (!result && is_barrier(r, code))
		memcpy(ret_text, FROZEN_NAME, sizeof(FROZEN_NAME));
	return result;
}

/* The methods of a frame; none of a blob that is no method, whose name is in *@ret_text. */
static int find_scopes(const struct reading *r, const struct origin *origin,
		       struct hotspot_scopes *ret, char ret_text[BLOB_NAME_BYTES])
{
	int result;

	ret->n = 0;
	if (!r->is_compiled) {
		ret->items[ret->n++] = (struct hotspot_scope){r->object, r->place};
		return 0;
	}
	result = hotspot_outcome_of_memory(
		memory_read(r->m, origin->key[0], ret_text, BLOB_NAME_BYTES));
	ret_text[BLOB_NAME_BYTES - 1] = 0;
	if (result)
		return result;
	if (strcmp(ret_text, "nmethod") != 0 && strcmp(ret_text, "native nmethod") != 0)
		return name_blob(r, ret_text);
	return hotspot_scopes_read(r->m, r->target, &origin->tables, origin->key[1],
				   r->object + r->place, ret);
}

static size_t copy_text(char *to, const char *from)
{
	const size_t n = strlen(from) + 1;

	memcpy(to, from, n);
	return n;
}

/* All in one piece of memory. */
static int keep(const struct hotspot_place *places, size_t n, struct hotspot_function *ret)
{
	size_t bytes = n * sizeof(struct runtime_place);
	char *at;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(places[i].name) + 1 + strlen(places[i].file) + 1;
	ret->places = calloc(1, bytes);
	if (!ret->places)
		return -ENOMEM;
	ret->n_places = n;
	ret->n_bytes = bytes;
	at = (char *)(ret->places + n);
	for (size_t i = 0; i < n; i++) {
		struct runtime_place *place = &ret->places[i];

		place->function.name = at;
		at += copy_text(at, places[i].name);
		place->function.file = at;
		at += copy_text(at, places[i].file);
		place->function.start_line = places[i].first_line;
		place->line = places[i].line;
	}
	return 0;
}

static int read_places(const struct reading *r, const struct origin *origin,
		       struct hotspot_function *ret)
{
	_cleanup_(freep) struct hotspot_place *places = NULL;
	struct hotspot_place blob = {.line = 0};
	struct hotspot_scopes scopes;
	int result = find_scopes(r, origin, &scopes, blob.name);

	if (!result && !scopes.n)
		return keep(&blob, 1, ret);
	if (!result)
		result = hotspot_places_read(r->m, r->target, &scopes, &places);
	return result ? result : keep(places, scopes.n, ret);
}

/* The memory may be a cache from the time after the sample on: the method and its class, or the
 * code with all that it refers to, live if they do at the end. */
int hotspot_function_read(struct memory *m, const struct hotspot_target *target,
			  const uint64_t words[2], struct hotspot_function *ret)
{
	struct reading r = {
		.m = m,
		.target = target,
		.f = target->layout.fields,
		.object = words[0],
		.place = (uint32_t)words[1],
		.is_compiled = words[0] >= target->process.low && words[0] < target->process.limit,
	};
	struct origin origin, again;
	int result = read_origin(&r, &origin);

	if (!result && check_of(origin.key, origin.n_key) != words[1] >> 32)
		return HOTSPOT_ODD;
	if (!result)
		result = read_places(&r, &origin, ret);
	r.m = memory_beneath(m);
	if (!result)
		result = read_origin(&r, &again);
	if (!result && memcmp(&again, &origin, sizeof(again)) != 0)
		result = HOTSPOT_ODD;
	if (result)
		hotspot_function_deinit(ret);
	return result;
}

struct runtime_place hotspot_function_place(const struct hotspot_function *f)
{
	struct runtime_place place = f->places[f->n_places - 1];

	place.inlined = f->places;
	place.n_inlined = f->n_places - 1;
	return place;
}
