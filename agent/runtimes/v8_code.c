// SPDX-License-Identifier: Apache-2.0
/*
 * V8 allocates code like other objects, in pages of their own: a header, then the instructions. The
 * header refers to a Code object with the kind, the size and the tables; in releases before 11 the
 * header is this object. No list leads from an address to the code: podprof searches backwards for
 * a header, and believes one that refers to itself and reaches beyond the address.
 *
 * Optimised code refers to the compiled function, to the functions that are inlined, and to a table
 * of inlined calls: the position of the call in the caller, and the caller, which is an earlier
 * inlined call or the compiled function. The table of source positions has a position and an
 * inlined call for ranges of instructions. Node asks V8 to record positions of all instructions.
 * Programs that do not, such as Deno, have few positions in optimised code, and none of inlined
 * calls. There, the data for deoptimisation has the functions of calls (v8_deopt.h), and those of
 * an interrupted instruction are not known.
 */
#include "runtimes/v8_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/v8_deopt.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_ways.h"

/* A read of the search. */
#define CHUNK_BYTES   4096u
/* Instructions begin at a multiple. */
#define CODE_ALIGN    32ull
/* Words of a search that may be a header. Reached: the same as V8_CODE_BYTES_MAX. */
#define HEADERS_MAX   256
/* Bytes of a Code object that are read. */
#define CODE_BYTES    64
/* Bytes of the table of source positions. Reached: the code behind has the last position. */
#define POSITIONS_MAX (256u << 10)
/* Bytes of an inlined call in its table. */
#define INLINED_BYTES 16

/* ---------------------------------------------------------------- the code at an address */

/* The Code object of the header @object; 0 if there is none. */
static int code_of(const struct v8_heap *heap, uint64_t object, uint64_t *ret)
{
	int r;

	*ret = object;
	if (!heap->constants[V8_TYPE_STREAM])
		return v8_type_check(heap, object, V8_TYPE_CODE);
	r = v8_type_check(heap, object, V8_TYPE_STREAM);
	if (!r)
		r = v8_word_read(heap, object, 8, ret);
	return r ? r : v8_type_check(heap, *ret, V8_TYPE_CODE);
}

static uint64_t word_at(const uint8_t *bytes, int32_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

static uint32_t kind_of(const int32_t *c, uint32_t flags)
{
	const uint32_t kind = flags & (uint32_t)c[V8_KIND_MASK];
	const uint32_t baseline = (uint32_t)c[V8_KIND_BASELINE];

	/* the other two compilers are next */
	if (kind < baseline || kind > baseline + 2)
		return V8_CODE_OTHER;
	return V8_CODE_BASELINE + kind - baseline;
}

/* V8_ODD for another object. */
static int read_code(const struct v8_heap *heap, uint64_t object, struct v8_code *ret)
{
	const int32_t *c = heap->constants;
	uint64_t code, start = object - 1 + (uint64_t)c[V8_CODE_HEADER];
	uint8_t bytes[CODE_BYTES];
	uint32_t flags;
	int r = code_of(heap, object, &code);

	if (!r)
		r = v8_bytes_read(heap, code, 0, bytes, sizeof(bytes));
	if (r)
		return r;
	if (c[V8_TYPE_STREAM] && word_at(bytes, c[V8_CODE_START]) != start)
		return V8_ODD;
	memcpy(&flags, bytes + c[V8_CODE_FLAGS], sizeof(flags));
	memcpy(&ret->n_bytes, bytes + c[V8_CODE_SIZE], sizeof(ret->n_bytes));
	ret->object = code;
	ret->start = start;
	ret->kind = kind_of(c, flags);
	ret->data = word_at(bytes, c[V8_CODE_DATA]);
	ret->positions = word_at(bytes, c[V8_CODE_POSITIONS]);
	return 0;
}

struct search {
	const struct v8_heap *heap;
	uint64_t pc;
	unsigned int n_headers; /* that were looked at */
};

/* The last header in the @n bytes at @at. V8_ODD if there is none. */
static int search_chunk(struct search *s, uint64_t at, const uint8_t *bytes, size_t n,
			struct v8_code *ret)
{
	const uint64_t header = (uint64_t)s->heap->constants[V8_CODE_HEADER];
	const uint64_t skipped = (at + header) % CODE_ALIGN;
	uint64_t off = n - n % CODE_ALIGN + 2 * CODE_ALIGN - skipped;

	while (off >= CODE_ALIGN) {
		uint64_t map;
		int r;

		off -= CODE_ALIGN;
		if (off + sizeof(map) > n)
			continue;
		map = word_at(bytes, (int32_t)off);
		if (!v8_is_object(map) || map < CHUNK_BYTES || map >= FRAME_FIRST_LIMIT)
			continue;
		if (++s->n_headers > HEADERS_MAX)
			return V8_ODD;
		r = read_code(s->heap, at + off + 1, ret);
		if (r != V8_ODD && r != V8_UNREADABLE)
			return r;
	}
	return V8_ODD;
}

int v8_code_find(const struct v8_heap *heap, uint64_t pc, struct v8_code *ret)
{
	struct search s = {.heap = heap, .pc = pc};
	const uint64_t header = (uint64_t)heap->constants[V8_CODE_HEADER];
	uint64_t at = pc - pc % CHUNK_BYTES, end = pc - header + sizeof(uint64_t);
	uint8_t bytes[CHUNK_BYTES];

	if (pc < header + CHUNK_BYTES)
		return V8_ODD;
	if (end <= at)
		at -= CHUNK_BYTES;
	while (at && pc - at < V8_CODE_BYTES_MAX) {
		const size_t n = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
		int r = v8_outcome_of_memory(memory_read(heap->memory, at, bytes, n));

		if (r)
			return r == V8_UNREADABLE ? V8_ODD : r;
		r = search_chunk(&s, at, bytes, n, ret);
		if (!r)
			return pc - ret->start < ret->n_bytes ? 0 : V8_ODD;
		if (r != V8_ODD || s.n_headers > HEADERS_MAX)
			return r;
		at -= CHUNK_BYTES;
	}
	return V8_ODD;
}

/* ---------------------------------------------------------------- what code was made of */

/* The function that @word refers to, perhaps through a wrapper, perhaps weakly. */
static int read_function(const struct v8_heap *heap, uint64_t word, uint64_t *ret)
{
	int r;

	word &= ~2ull;
	r = v8_is_object(word) ? v8_type_check(heap, word, V8_TYPE_SHARED) : V8_ODD;
	if (r == V8_ODD && heap->constants[V8_TYPE_WRAPPER] && v8_is_object(word)) {
		r = v8_type_check(heap, word, V8_TYPE_WRAPPER);
		if (!r)
			r = v8_word_read(heap, word, 8, &word);
		if (!r)
			r = v8_type_check(heap, word, V8_TYPE_SHARED);
	}
	if (!r)
		*ret = word;
	return r;
}

struct made_of {
	const struct v8_heap *heap;
	uint64_t shared;
	uint64_t literals; /* an array: functions, and more */
	uint64_t inlined;  /* an array of bytes */
	uint32_t n_inlined;
};

static int read_made_of(const struct v8_heap *heap, const struct v8_code *code, uint64_t shared,
			struct made_of *ret)
{
	const int32_t *c = heap->constants;
	uint64_t word, function;
	uint32_t n = 0;
	int r = v8_item_read(heap, code->data, (uint32_t)c[V8_DEOPT_SHARED], &word);

	*ret = (struct made_of){.heap = heap, .shared = shared};
	if (!r)
		r = read_function(heap, word, &function);
	if (!r && function != shared)
		return V8_ODD;
	if (!r)
		r = v8_item_read(heap, code->data, (uint32_t)c[V8_DEOPT_LITERALS], &ret->literals);
	if (!r)
		r = v8_item_read(heap, code->data, (uint32_t)c[V8_DEOPT_INLINED], &ret->inlined);
	if (!r)
		r = v8_array_read(heap, ret->inlined, &n);
	ret->n_inlined = n / INLINED_BYTES;
	return r;
}

/* The inlined call @i: its position, and the function. */
static int read_inlined(const struct made_of *m, uint32_t i, uint64_t *ret_position,
			uint64_t *ret_function)
{
	uint8_t bytes[INLINED_BYTES];
	uint64_t word;
	int32_t number;
	int r;

	if (i >= m->n_inlined)
		return V8_ODD;
	r = v8_bytes_read(m->heap, m->inlined,
			  (uint64_t)m->heap->constants[V8_ARRAY_DATA] + INLINED_BYTES * (uint64_t)i,
			  bytes, sizeof(bytes));
	if (r)
		return r;
	memcpy(ret_position, bytes, sizeof(*ret_position));
	memcpy(&number, bytes + 8, sizeof(number));
	*ret_function = m->shared; /* a recursion */
	if (number < 0)
		return 0;
	r = v8_item_read(m->heap, m->literals, (uint32_t)number, &word);
	return r ? r : read_function(m->heap, word, ret_function);
}

static void add_scope(struct v8_scopes *scopes, uint64_t shared, uint64_t position)
{
	/* the compiled function has the last place */
	if (scopes->n < RUNTIMES_PLACES_MAX - 1)
		scopes->items[scopes->n++] =
			(struct v8_scope){shared, v8_position_character(position), 0};
}

/* The functions at the source position @position, innermost first. V8_ODD without one, or if an
 * inlined call has none: then its caller is not known. */
static int follow(const struct made_of *m, uint64_t position, struct v8_scopes *ret)
{
	uint32_t limit = m->n_inlined;

	ret->n = 0;
	while (v8_position_inlined(position)) {
		const uint32_t i = v8_position_inlined(position) - 1;
		uint64_t call, function;
		int r;

		/* a caller is inlined before its callees */
		if (i >= limit)
			return V8_ODD;
		limit = i;
		r = read_inlined(m, i, &call, &function);
		if (r)
			return r;
		add_scope(ret, function, position);
		position = call;
	}
	ret->items[ret->n++] = (struct v8_scope){m->shared, v8_position_character(position), 0};
	return position ? 0 : V8_ODD;
}

/* The functions of the call that returns to @to, innermost first. */
static int follow_call(const struct made_of *m, const struct v8_code *code, uint32_t to,
		       struct v8_scopes *ret)
{
	/* places count from the word of the array */
	const uint32_t base = (uint32_t)m->heap->constants[V8_BYTECODE_DATA] - 1;
	struct v8_deopt_frames frames = {.n = 0};
	int r = v8_deopt_find(m->heap, code, to, &frames);

	ret->n = 0;
	for (size_t i = frames.n; !r && i-- > 0;) {
		const uint32_t bytecode = frames.items[i].bytecode;
		struct v8_scope *scope = &ret->items[ret->n++];
		uint64_t word;

		*scope = (struct v8_scope){.character = V8_NO_POSITION};
		if (bytecode != V8_DEOPT_NO_BYTECODE)
			scope->place = base + bytecode;
		r = v8_item_read(m->heap, m->literals, frames.items[i].literal, &word);
		if (!r)
			r = read_function(m->heap, word, &scope->shared);
	}
	return !r && ret->items[ret->n - 1].shared != m->shared ? V8_ODD : r;
}

/* ---------------------------------------------------------------- the position of an instruction
 */

struct positions {
	const struct made_of *made_of;
	uint8_t *table; /* owned */
	size_t n;
	int32_t shift;
};

static void positions_deinit(struct positions *p)
{
	free(p->table);
}

static uint64_t position_at(const struct positions *p, uint32_t off, uint32_t *ret_from)
{
	return v8_position_find(p->table, p->n, p->shift, off, ret_from);
}

/* The inlined call, counted from 1, that @a and @b are in, the innermost; 0: in none. */
static int common_of(const struct made_of *m, uint32_t a, uint32_t b, uint32_t *ret)
{
	/* a caller has a lower number than its callees */
	while (a != b) {
		uint32_t *higher = a > b ? &a : &b, caller;
		uint64_t call, function;
		int r = read_inlined(m, *higher - 1, &call, &function);

		if (r)
			return r;
		caller = v8_position_inlined(call);
		if (caller >= *higher)
			return V8_ODD;
		*higher = caller;
	}
	*ret = a;
	return 0;
}

/* What all ways to an instruction have in common; @position is that of the mark. */
static int agree(const struct positions *p, const struct v8_ways *ways, uint64_t position,
		 uint64_t *ret)
{
	uint32_t inlined = v8_position_inlined(position);
	const uint32_t before = inlined;
	bool is_any = ways->from_mark;

	for (size_t i = 0; i < ways->n_jumps; i++, is_any = true) {
		uint32_t from, other;
		int r;

		other = v8_position_inlined(position_at(p, ways->jumps[i], &from));
		r = is_any ? common_of(p->made_of, inlined, other, &inlined) : 0;
		if (r)
			return r;
		if (!is_any)
			inlined = other;
	}
	/* the character is the mark's */
	*ret = ways->from_mark && inlined == before ? position
						    : v8_position_of(V8_NO_POSITION, inlined);
	if (!is_any)
		*ret = 0;
	return 0;
}

/* The bytes of the code, owned; NULL if there are too many. */
static int read_bytes(const struct v8_heap *heap, const struct v8_code *code, uint8_t **ret)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	int r;

	if (!code->n_bytes || code->n_bytes > V8_WAYS_BYTES_MAX)
		return 0;
	bytes = malloc(code->n_bytes);
	if (!bytes)
		return -ENOMEM;
	r = v8_outcome_of_memory(memory_read(heap->memory, code->start, bytes, code->n_bytes));
	if (!r)
		*ret = take_ptr(bytes);
	return r;
}

/* The source position of the instruction at @off, 0 if it is not known. */
static int find_position(const struct made_of *m, const struct v8_code *code, uint32_t off,
			 uint64_t *ret)
{
	_cleanup_(positions_deinit) struct positions p = {m, NULL, 0, 0};
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t position;
	struct v8_ways ways;
	uint32_t from;
	int r = v8_table_read(m->heap, code->positions, POSITIONS_MAX, &p.table, &p.n);

	*ret = 0;
	if (r || !p.table)
		return r;
	p.shift = m->heap->constants[V8_TABLE_SHIFT];
	position = position_at(&p, off, &from);
	if (!m->n_inlined) {
		*ret = position;
		return 0;
	}
	r = read_bytes(m->heap, code, &bytes);
	if (r || !bytes || !v8_ways_find(m->heap->machine, bytes, code->n_bytes, from, off, &ways))
		return r;
	if (!ways.is_call)
		return agree(&p, &ways, position, ret);
	*ret = position;
	return 0;
}

int v8_scopes_read(const struct v8_heap *heap, const struct v8_code *code, uint64_t shared,
		   uint64_t pc, struct v8_scopes *ret)
{
	uint64_t position = 0;
	struct made_of m;
	int r = read_made_of(heap, code, shared, &m);

	if (r)
		return r;
	r = find_position(&m, code, (uint32_t)(pc - code->start), &position);
	if (!r)
		r = follow(&m, position, ret);
	/* a caller's address is inside of the call, one byte before the return */
	if (r == V8_ODD)
		r = follow_call(&m, code, (uint32_t)(pc - code->start) + 1, ret);
	if (r && r != V8_ODD)
		return r;
	if (r)
		*ret = (struct v8_scopes){.items = {{shared, V8_NO_POSITION, 0}}, .n = 1};
	return 0;
}
