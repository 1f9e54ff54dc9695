// SPDX-License-Identifier: Apache-2.0
/*
 * A Method leads to its ConstMethod, which has the bytecodes, the line table behind them, and
 * indices in the constant pool. The entries of the pool for names are pointers to symbols: a length
 * and characters. The pool leads to the class, whose name is a symbol too.
 *
 * System calls take most of the time. So each call reads one part of all methods.
 */
#include "runtimes/hotspot_places.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/hotspot_line.h"
#include "runtimes/hotspot_name.h"

/* Bytes of a symbol that are read, with a NUL. Reached: cut. */
#define SYMBOL_BYTES	512
/* The ConstMethod has a line table: a flag in all releases. */
#define FLAG_LINES	1
/* Bytes of a ConstMethod. Reached: the function has no lines. */
#define CONST_BYTES_MAX (16u << 20)

enum { NAME, SIGNATURE, CLASS, SOURCE, SYMBOLS };

/* A method while it is read. */
struct method {
	struct hotspot_scope scope;
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
	uint64_t symbols[SYMBOLS];
	uint16_t lengths[SYMBOLS];
	char texts[SYMBOLS][SYMBOL_BYTES];
	size_t n_lines; /* bytes of the line table */
};

struct reading {
	struct memory *m;
	const struct hotspot_target *target;
	const uint64_t *f; /* fields of the layout */
	struct method *methods;
	size_t n;
	uint8_t *lines; /* owned: the line tables */
	/* of the next call: six of a method at most */
	struct memory_range ranges[RUNTIMES_PLACES_MAX * 6];
	size_t n_ranges;
};

static void want(struct reading *r, uint64_t addr, void *to, size_t n)
{
	r->ranges[r->n_ranges++] = (struct memory_range){addr, to, n};
}

static int get_wanted(struct reading *r)
{
	const size_t n = r->n_ranges;

	r->n_ranges = 0;
	return hotspot_outcome_of_memory(memory_read_ranges(r->m, r->ranges, n));
}

static int read_consts(struct reading *r)
{
	int result;

	for (size_t i = 0; i < r->n; i++)
		want(r, r->methods[i].scope.method + r->f[HOTSPOT_METHOD_CONST], &r->methods[i].at,
		     8);
	result = get_wanted(r);
	if (result)
		return result;
	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];

		want(r, method->at + r->f[HOTSPOT_CONST_CONSTANTS], &method->constants, 8);
		want(r, method->at + r->f[HOTSPOT_CONST_BYTES_ALL], &method->words, 4);
		want(r, method->at + r->f[HOTSPOT_CONST_FLAGS], &method->flags, 2);
		want(r, method->at + r->f[HOTSPOT_CONST_CODE_BYTES], &method->code_bytes, 2);
		want(r, method->at + r->f[HOTSPOT_CONST_NAME], &method->name, 2);
		want(r, method->at + r->f[HOTSPOT_CONST_SIGNATURE], &method->signature, 2);
	}
	return get_wanted(r);
}

static int read_pools(struct reading *r)
{
	const bool *known = r->target->layout.known;
	const bool has_source = known[HOTSPOT_POOL_SOURCE];
	int result;

	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];

		want(r, method->constants + r->f[HOTSPOT_POOL_HOLDER], &method->holder, 8);
		want(r, method->constants + r->f[HOTSPOT_POOL_N], &method->n_constants, 4);
		if (has_source)
			want(r, method->constants + r->f[HOTSPOT_POOL_SOURCE], &method->source, 2);
	}
	result = get_wanted(r);
	if (result)
		return result;
	for (size_t i = 0; i < r->n && !has_source && known[HOTSPOT_CLASS_SOURCE]; i++)
		want(r, r->methods[i].holder + r->f[HOTSPOT_CLASS_SOURCE], &r->methods[i].source,
		     2);
	return get_wanted(r);
}

static int check_indices(struct reading *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];

		if (method->name >= method->n_constants || method->signature >= method->n_constants)
			return HOTSPOT_ODD;
		/* the pools of the methods that HotSpot makes for MethodHandle.linkToStatic() and
		 * so on have three entries, and the index of another pool */
		if (method->source >= method->n_constants)
			method->source = 0;
	}
	return 0;
}

static int find_symbols(struct reading *r)
{
	int result;

	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];
		const uint64_t entries = method->constants + r->target->layout.bytes[HOTSPOT_POOL];

		want(r, method->holder + r->f[HOTSPOT_CLASS_NAME], &method->symbols[CLASS], 8);
		want(r, entries + method->name * 8ull, &method->symbols[NAME], 8);
		want(r, entries + method->signature * 8ull, &method->symbols[SIGNATURE], 8);
		if (method->source)
			want(r, entries + method->source * 8ull, &method->symbols[SOURCE], 8);
	}
	result = get_wanted(r);
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < SYMBOLS; k++)
			r->methods[i].symbols[k] &= ~1ull; /* a mark of the pool */
	return result;
}

/* The last one is the source file's. */
static size_t n_symbols(const struct method *method)
{
	return method->source ? SYMBOLS : SOURCE;
}

static int read_texts(struct reading *r)
{
	int result;

	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];

		for (size_t k = 0; k < n_symbols(method); k++)
			want(r, method->symbols[k] + r->f[HOTSPOT_SYMBOL_N], &method->lengths[k],
			     2);
	}
	result = get_wanted(r);
	if (result)
		return result;
	for (size_t i = 0; i < r->n; i++) {
		struct method *method = &r->methods[i];

		for (size_t k = 0; k < n_symbols(method); k++)
			want(r, method->symbols[k] + r->f[HOTSPOT_SYMBOL_BODY], method->texts[k],
			     method->lengths[k] < SYMBOL_BYTES ? method->lengths[k]
							       : SYMBOL_BYTES - 1);
	}
	return get_wanted(r);
}

/* The line table is behind the bytecodes, up to the end of the ConstMethod at most. */
static uint64_t find_lines(const struct reading *r, const struct method *method, size_t *ret_n)
{
	const uint64_t before = r->target->layout.bytes[HOTSPOT_CONST] + method->code_bytes;
	const uint64_t all = method->words * 8ull;

	*ret_n = 0;
	if (method->flags & FLAG_LINES && all > before && all <= CONST_BYTES_MAX)
		*ret_n = all - before < HOTSPOT_LINES_BYTES_MAX ? (size_t)(all - before)
								: HOTSPOT_LINES_BYTES_MAX;
	return method->at + before;
}

static int read_lines(struct reading *r)
{
	uint64_t at[RUNTIMES_PLACES_MAX] = {0};
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		at[i] = find_lines(r, &r->methods[i], &r->methods[i].n_lines);
		n += r->methods[i].n_lines;
	}
	r->lines = malloc(n + 1);
	if (!r->lines)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < r->n; i++) {
		want(r, at[i], r->lines + n, r->methods[i].n_lines);
		n += r->methods[i].n_lines;
	}
	return get_wanted(r);
}

/* @lines: the method's line table. */
static void make_place(const struct reading *r, const struct method *method, const uint8_t *lines,
		       struct hotspot_place *ret)
{
	const bool no_zero = r->target->version[0] >= HOTSPOT_VERSION_NO_ZERO;
	const char *source = method->texts[SOURCE], *class = method->texts[CLASS];

	hotspot_name(class, method->texts[NAME], method->texts[SIGNATURE], source, ret->name,
		     sizeof(ret->name));
	hotspot_file(class, source, ret->file, sizeof(ret->file));
	if (!method->n_lines)
		return;
	ret->line =
		hotspot_line(lines, method->n_lines, no_zero, method->scope.bci, &ret->first_line);
	if (method->scope.bci == HOTSPOT_NO_BCI)
		ret->line = 0;
}

static int make_places(const struct reading *r, struct hotspot_place **ret)
{
	const uint8_t *lines = r->lines;

	*ret = calloc(r->n, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		make_place(r, &r->methods[i], lines, &(*ret)[i]);
		lines += r->methods[i].n_lines;
	}
	return 0;
}

int hotspot_places_read(struct memory *m, const struct hotspot_target *target,
			const struct hotspot_scopes *scopes, struct hotspot_place **ret)
{
	static int (*const parts[])(struct reading *) = {read_consts,  read_pools, check_indices,
							 find_symbols, read_texts, read_lines};
	_cleanup_(freep) struct method *methods = calloc(scopes->n, sizeof(*methods));
	struct reading r = {
		.m = m, .target = target, .f = target->layout.fields, .methods = methods};
	int result = 0;

	*ret = NULL;
	if (!methods)
		return -ENOMEM;
	for (r.n = 0; r.n < scopes->n; r.n++)
		methods[r.n].scope = scopes->items[r.n];
	for (size_t i = 0; !result && i < array_size(parts); i++)
		result = parts[i](&r);
	if (!result)
		result = make_places(&r, ret);
	free(r.lines);
	return result;
}
