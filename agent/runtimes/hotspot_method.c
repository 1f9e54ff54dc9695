// SPDX-License-Identifier: Apache-2.0
/*
 * A Method leads to its ConstMethod, which has the bytecodes, the line table behind them, and
 * indices in the constant pool. The entries of the pool for names are pointers to symbols: a length
 * and characters. The pool leads to the class, whose name is a symbol too.
 *
 * The memory of a class is freed when its loader is, and code is freed and replaced at any time.
 * The check of interpreted code therefore has the names of the method and of its class: another
 * class often takes the addresses of all others of its words.
 */
#include "runtimes/hotspot_method.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procmap/memory.h"
#include "runtimes/hotspot_line.h"
#include "runtimes/hotspot_name.h"
#include "runtimes/hotspot_scopes.h"

/* Bytes of a symbol that are read, with a NUL. Reached: cut. */
#define SYMBOL_BYTES	512
#define BLOB_NAME_BYTES 64
#define CHECK_FACTOR	0x9e3779b97f4a7c15ull
/* The ConstMethod has a line table: a flag in all releases. */
#define FLAG_LINES	1
/* The name of the return barrier, and the instruction there: mov m(%r15),%rsp. */
#define FROZEN_NAME	"(frozen frames)"
#define FROZEN_CODE	"\x49\x8b\xa7"
/* Bytes of a ConstMethod. Reached: the function has no lines. */
#define CONST_BYTES_MAX (16u << 20)

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

/* One place while it is read. */
struct text {
	char name[RUNTIMES_NAME_MAX];
	char file[RUNTIMES_FILE_MAX];
	uint32_t first_line; /* 0: not known */
	uint32_t line;
};

static int read_ranges(const struct reading *r, const struct memory_range *ranges, size_t n)
{
	return hotspot_outcome_of_memory(memory_read_ranges(r->m, ranges, n));
}

/* ---------------------------------------------------------------- the check */

/* A freed block keeps its words, and its Method can be another one's memory by then. */
static int read_compiled_key(const struct reading *r, uint64_t key[3])
{
	const uint64_t block = r->object - r->target->layout.bytes[HOTSPOT_BLOCK];
	uint8_t is_used = !r->target->layout.known[HOTSPOT_BLOCK_USED];
	uint32_t id = 0;
	const struct memory_range ranges[] = {
		{block + r->f[HOTSPOT_BLOCK_USED], &is_used, !is_used},
		{r->object + r->target->process.blob_name, &key[0], 8},
		{r->object + r->target->process.blob_method, &key[1], 8},
		{r->object + r->target->process.blob_compile_id, &id, 4},
	};
	int result = read_ranges(r, ranges, array_size(ranges));

	key[2] = id;
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
	int result;

	*ret = (struct origin){.n_key = r->is_compiled ? 3 : KEY_WORDS};
	if (!r->is_compiled)
		return read_method_key(r, ret->key);
	result = read_compiled_key(r, ret->key);
	return result ? result : hotspot_tables_read(r->m, r->target, r->object, &ret->tables);
}

/* ---------------------------------------------------------------- symbols */

/* The texts of @n symbols. */
static int read_symbols(const struct reading *r, const uint64_t *at, size_t n,
			char (*ret)[SYMBOL_BYTES])
{
	struct memory_range ranges[8];
	uint16_t lengths[8] = {0};
	int result;

	for (size_t i = 0; i < n; i++)
		ranges[i] = (struct memory_range){at[i] + r->f[HOTSPOT_SYMBOL_N], &lengths[i], 2};
	result = read_ranges(r, ranges, n);
	for (size_t i = 0; i < n; i++) {
		if (lengths[i] > SYMBOL_BYTES - 1)
			lengths[i] = SYMBOL_BYTES - 1;
		ranges[i] = (struct memory_range){at[i] + r->f[HOTSPOT_SYMBOL_BODY], ret[i],
						  lengths[i]};
		ret[i][lengths[i]] = 0;
	}
	return result ? result : read_ranges(r, ranges, n);
}

/* ---------------------------------------------------------------- methods */

struct method {
	uint64_t at; /* the ConstMethod */
	uint64_t constants;
	uint32_t words;
	uint32_t flags;
	uint16_t code_bytes;
	uint16_t name;
	uint16_t signature;
	uint16_t source; /* 0: none */
	uint64_t holder;
	uint32_t n_constants;
};

enum { NAME, SIGNATURE, CLASS, SOURCE, SYMBOLS };

static int read_method(const struct reading *r, uint64_t method, struct method *ret)
{
	const bool has_source = r->target->layout.known[HOTSPOT_POOL_SOURCE];
	struct memory_range ranges[] = {
		{method + r->f[HOTSPOT_METHOD_CONST], &ret->at, 8}, {0}, {0}, {0}, {0}, {0},
	};
	int result = read_ranges(r, ranges, 1);

	if (result)
		return result;
	ranges[0] =
		(struct memory_range){ret->at + r->f[HOTSPOT_CONST_CONSTANTS], &ret->constants, 8};
	ranges[1] = (struct memory_range){ret->at + r->f[HOTSPOT_CONST_BYTES_ALL], &ret->words, 4};
	ranges[2] = (struct memory_range){ret->at + r->f[HOTSPOT_CONST_FLAGS], &ret->flags, 2};
	ranges[3] = (struct memory_range){ret->at + r->f[HOTSPOT_CONST_CODE_BYTES],
					  &ret->code_bytes, 2};
	ranges[4] = (struct memory_range){ret->at + r->f[HOTSPOT_CONST_NAME], &ret->name, 2};
	ranges[5] =
		(struct memory_range){ret->at + r->f[HOTSPOT_CONST_SIGNATURE], &ret->signature, 2};
	result = read_ranges(r, ranges, 6);
	if (result)
		return result;
	ranges[0] =
		(struct memory_range){ret->constants + r->f[HOTSPOT_POOL_HOLDER], &ret->holder, 8};
	ranges[1] =
		(struct memory_range){ret->constants + r->f[HOTSPOT_POOL_N], &ret->n_constants, 4};
	ranges[2] =
		(struct memory_range){ret->constants + r->f[HOTSPOT_POOL_SOURCE], &ret->source, 2};
	result = read_ranges(r, ranges, has_source ? 3 : 2);
	if (!result && !has_source && r->target->layout.known[HOTSPOT_CLASS_SOURCE]) {
		ranges[0] = (struct memory_range){ret->holder + r->f[HOTSPOT_CLASS_SOURCE],
						  &ret->source, 2};
		result = read_ranges(r, ranges, 1);
	}
	if (!result && (ret->name >= ret->n_constants || ret->signature >= ret->n_constants))
		return HOTSPOT_ODD;
	/* the pools of the methods that HotSpot makes for MethodHandle.linkToStatic() and so on
	 * have three entries, and the index of another pool */
	if (ret->source >= ret->n_constants)
		ret->source = 0;
	return result;
}

/* Names and file. */
static int read_names(const struct reading *r, const struct method *method, struct text *ret)
{
	const uint64_t entries = method->constants + r->target->layout.bytes[HOTSPOT_POOL];
	char texts[SYMBOLS][SYMBOL_BYTES] = {{0}};
	uint64_t at[SYMBOLS] = {0};
	const struct memory_range ranges[] = {
		{entries + method->name * 8ull, &at[NAME], 8},
		{entries + method->signature * 8ull, &at[SIGNATURE], 8},
		{method->holder + r->f[HOTSPOT_CLASS_NAME], &at[CLASS], 8},
		{entries + method->source * 8ull, &at[SOURCE], 8},
	};
	const size_t n = method->source ? SYMBOLS : SOURCE;
	int result = read_ranges(r, ranges, n);

	for (size_t i = 0; i < n; i++)
		at[i] &= ~1ull; /* a mark of the pool */
	if (!result)
		result = read_symbols(r, at, n, texts);
	hotspot_name(texts[CLASS], texts[NAME], texts[SIGNATURE], texts[SOURCE], ret->name,
		     sizeof(ret->name));
	hotspot_file(texts[CLASS], texts[SOURCE], ret->file, sizeof(ret->file));
	return result;
}

/* The line table is behind the bytecodes, up to the end of the ConstMethod at most. */
static int read_lines(const struct reading *r, const struct method *method, uint32_t bci,
		      struct text *ret)
{
	const bool no_zero = r->target->version[0] >= HOTSPOT_VERSION_NO_ZERO;
	const uint64_t before = r->target->layout.bytes[HOTSPOT_CONST] + method->code_bytes;
	const uint64_t all = method->words * 8ull;
	_cleanup_(freep) uint8_t *lines = NULL;
	uint32_t line;
	size_t n;
	int result;

	if (!(method->flags & FLAG_LINES) || all <= before || all > CONST_BYTES_MAX)
		return 0;
	n = all - before < HOTSPOT_LINES_BYTES_MAX ? (size_t)(all - before)
						   : HOTSPOT_LINES_BYTES_MAX;
	lines = malloc(n);
	if (!lines)
		return -ENOMEM;
	result = hotspot_outcome_of_memory(memory_read(r->m, method->at + before, lines, n));
	if (result)
		return result;
	line = hotspot_line(lines, n, no_zero, bci, &ret->first_line);
	ret->line = bci == HOTSPOT_NO_BCI ? 0 : line;
	return 0;
}

static int read_scope(const struct reading *r, const struct hotspot_scope *scope, struct text *ret)
{
	struct method method = {0};
	int result = read_method(r, scope->method, &method);

	if (!result)
		result = read_names(r, &method, ret);
	return result ? result : read_lines(r, &method, scope->bci, ret);
}

/* ---------------------------------------------------------------- frames */

/* The name of a blob that is no method. At the return barrier, frames of a virtual thread are in
 * the heap of objects instead of on the stack. */
static int name_blob(const struct reading *r, char ret_text[BLOB_NAME_BYTES])
{
	uint8_t code[sizeof(FROZEN_CODE) - 1];
	int result;

	/* the address looked up is one before the return address */
	result = hotspot_outcome_of_memory(
		memory_read(r->m, r->object + r->place + 1, code, sizeof(code)));
	if (!result && memcmp(code, FROZEN_CODE, sizeof(code)) == 0)
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
static int keep(const struct text *texts, size_t n, struct hotspot_function *ret)
{
	size_t bytes = n * sizeof(struct runtime_place);
	char *at;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(texts[i].name) + 1 + strlen(texts[i].file) + 1;
	ret->places = calloc(1, bytes);
	if (!ret->places)
		return -ENOMEM;
	ret->n_places = n;
	ret->n_bytes = bytes;
	at = (char *)(ret->places + n);
	for (size_t i = 0; i < n; i++) {
		struct runtime_place *place = &ret->places[i];

		place->function.name = at;
		at += copy_text(at, texts[i].name);
		place->function.file = at;
		at += copy_text(at, texts[i].file);
		place->function.start_line = texts[i].first_line;
		place->line = texts[i].line;
	}
	return 0;
}

static int read_places(const struct reading *r, const struct origin *origin,
		       struct hotspot_function *ret)
{
	_cleanup_(freep) struct text *texts = NULL;
	char name[BLOB_NAME_BYTES] = "";
	struct hotspot_scopes scopes;
	int result = find_scopes(r, origin, &scopes, name);
	size_t n;

	if (result)
		return result;
	n = scopes.n ? scopes.n : 1;
	texts = calloc(n, sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	if (!scopes.n)
		memcpy(texts[0].name, name, sizeof(name));
	for (size_t i = 0; !result && i < scopes.n; i++)
		result = read_scope(r, &scopes.items[i], &texts[i]);
	return result ? result : keep(texts, n, ret);
}

int hotspot_function_read(struct memory *m, const struct hotspot_target *target,
			  const uint64_t words[2], struct hotspot_function *ret)
{
	const struct reading r = {
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
