// SPDX-License-Identifier: Apache-2.0
/*
 * The data is an array of words: among others the translations, and three words for each place
 * where code may be left: the bytecode, the index of the translation, and a distance in the code.
 * First come places that leave at once, then calls. The distance of a call is the one that it
 * returns to; in code of the fast compiler it is that of the code that leaves, and the call's is in
 * its safepoint, a description of the frame for the garbage collector.
 */
#include "runtimes/v8_deopt.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "procmap/memory.h"
#include "runtimes/v8_code.h"
#include "runtimes/v8_places.h"

/* ---------------------------------------------------------------- operations */

#define OPERANDS     6
/* Of the longest number, of 32 bits. */
#define NUMBER_BYTES 5

/* Operations begin with frames: of functions, with and without a result, of builtins that go on
 * with a call, without and with a handler of exceptions, and others. The function of a builtin's
 * frame is the builtin, or from the fast compiler its caller. */
#define FUNCTIONS  2
#define CALLERS	   4
#define FRAMES	   11
/* Of a translation: without and with words for its function's feedback. */
#define BEGIN	   (FRAMES + 3)
#define BEGIN_LAST (BEGIN + 1)

/* Operands by operation: arguments' elements, length and rest; the beginnings; truth values and an
 * object. */
#define FIRST_VALUES 1, 0, 0, 3, 3, 1, 1, 1
/* Floating-point numbers, vectors and a repeated object; integers; a value that is not needed, a
 * literal, words, a feedback, and operations of an earlier translation. */
#define LAST_VALUES  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1

static const uint8_t counts_of_12[] = {5, 3, 3, 3, 2, 1, 3, 4, 3, 3, 2, FIRST_VALUES, LAST_VALUES};
/* A frame of a function also has its bytecode. A string of two parts is new, without operands. */
static const uint8_t counts_of_13[] = {6, 4,	      3, 3, 2, 1, 3, 4, 3, 3, 3, FIRST_VALUES,
				       0, LAST_VALUES};

/* By V8_DEOPT_FORM; the last operation of each stands for operations of an earlier translation. */
static const struct form {
	const uint8_t *counts;
	uint8_t n;
} forms[] = {
	[V8_DEOPT_UNKNOWN] = {NULL, 0},
	[V8_DEOPT_OF_12] = {counts_of_12, array_size(counts_of_12)},
	[V8_DEOPT_OF_13] = {counts_of_13, array_size(counts_of_13)},
};

/**
 * struct reader - the operations of one translation
 * @here:     at the next one
 * @earlier:  at the next one of the earlier translation; without bytes if there is none
 * @n_since:  operations since the last one of the earlier translation
 * @n_repeat: operations of the earlier translation that are next
 */
struct reader {
	const struct form *form;
	struct cursor here;
	struct cursor earlier;
	size_t n_since;
	uint32_t n_repeat;
};

struct operation {
	uint8_t code;
	uint32_t operands[OPERANDS];
};

static bool next_number(struct cursor *c, uint32_t *ret)
{
	const size_t before = cursor_pos(c);
	uint64_t number;

	if (!cursor_uleb(c, &number) || number > UINT32_MAX ||
	    cursor_pos(c) - before > NUMBER_BYTES)
		return false;
	*ret = (uint32_t)number;
	return true;
}

/* Of an operand with a sign, which is its lowest bit. */
static int32_t signed_of(uint32_t operand)
{
	return operand & 1 ? -(int32_t)(operand >> 1) : (int32_t)(operand >> 1);
}

static bool is_begin(const struct operation *op)
{
	return op->code == BEGIN || op->code == BEGIN_LAST;
}

/* The operation at @c, which stands for itself. */
static bool read_operation(const struct form *form, struct cursor *c, struct operation *ret)
{
	*ret = (struct operation){.code = UINT8_MAX};
	if (!cursor_u8(c, &ret->code) || ret->code >= form->n - 1)
		return false;
	for (size_t i = 0; i < form->counts[ret->code]; i++)
		if (!next_number(c, &ret->operands[i]))
			return false;
	return true;
}

/* Behind the operation @code. The number of repeated operations is in it, or follows. */
static bool begin_repeat(struct reader *r, uint8_t code)
{
	struct operation skipped;

	r->n_repeat = (uint32_t)code - r->form->n;
	if (code == r->form->n - 1 && !next_number(&r->here, &r->n_repeat))
		return false;
	for (; r->n_since; r->n_since--)
		if (!read_operation(r->form, &r->earlier, &skipped))
			return false;
	return r->n_repeat > 0;
}

static bool next_operation(struct reader *r, struct operation *ret)
{
	struct cursor behind = r->here;
	uint8_t code;

	if (!r->n_repeat && cursor_u8(&behind, &code) && code >= r->form->n - 1) {
		r->here = behind;
		if (!begin_repeat(r, code))
			return false;
	}
	if (!r->n_repeat) {
		r->n_since++;
		return read_operation(r->form, &r->here, ret);
	}
	r->n_repeat--;
	return read_operation(r->form, &r->earlier, ret);
}

/* The distance to the earlier translation is 0 if there is none. The earlier one has none. */
static bool begin(struct reader *r, struct cursor all, uint32_t index, struct operation *ret)
{
	struct cursor first = all;
	struct operation op;

	r->here = all;
	r->n_since = 1;
	if (!cursor_seek(&r->here, index) || !read_operation(r->form, &r->here, ret) ||
	    !is_begin(ret) || ret->operands[0] > index)
		return false;
	if (!ret->operands[0])
		return true;
	if (!cursor_seek(&first, index - ret->operands[0]))
		return false;
	r->earlier = first;
	return read_operation(r->form, &first, &op) && is_begin(&op) && !op.operands[0];
}

/* False without room. */
static bool add_frame(const struct operation *op, struct v8_deopt_frames *ret)
{
	const int32_t bytecode = signed_of(op->operands[0]);

	if (ret->n == array_size(ret->items))
		return false;
	ret->items[ret->n++] = (struct v8_deopt_frame){
		.literal = (uint32_t)signed_of(op->operands[1]),
		.bytecode = bytecode < 0 ? V8_DEOPT_NO_BYTECODE : (uint32_t)bytecode,
	};
	return true;
}

int v8_deopt_parse(int32_t form, const uint8_t *bytes, size_t n, uint32_t index,
		   struct v8_deopt_frames *ret)
{
	struct reader r = {.form = &forms[form]};
	int32_t n_frames, n_callers;
	struct operation op;
	struct cursor all;

	ret->n = 0;
	cursor_init(&all, bytes, n);
	if (form == V8_DEOPT_UNKNOWN || !begin(&r, all, index, &op))
		return V8_ODD;
	n_frames = signed_of(op.operands[1]);
	n_callers = signed_of(op.operands[2]);
	while (n_frames > 0) {
		if (!next_operation(&r, &op) || is_begin(&op))
			return V8_ODD;
		n_frames -= op.code < FRAMES;
		n_callers -= op.code < CALLERS;
		if (op.code < FUNCTIONS && !add_frame(&op, ret))
			return V8_ODD;
	}
	return !n_callers && ret->n ? 0 : V8_ODD;
}

/* ---------------------------------------------------------------- in a process */

/* Words of the data: the translations, behind the word for the inlined calls and one more the two
 * numbers of places, and three words for each place. */
#define TRANSLATIONS  0
#define AT_ONCE	      2
#define CALLS	      3
#define PLACES	      4
#define WORDS_A_PLACE 3
#define PLACES_A_READ 128

/* The head of the safepoints, and their forms: bit 0 says that they have places. */
#define SAFEPOINTS_BYTES     16
#define SIZE_OF(form, shift) ((form) >> (shift)&7)

/* The data of one code: @n_at_once places that leave at once, then @n_calls calls. */
struct places {
	const struct v8_heap *heap;
	const struct v8_code *code;
	uint32_t first; /* word */
	uint32_t n_at_once;
	uint32_t n_calls;
};

static int read_count(const struct v8_heap *heap, uint64_t data, uint32_t i, uint32_t *ret)
{
	uint64_t word;
	int r = v8_item_read(heap, data, i, &word);

	if (!r && (!v8_is_integer(word) || v8_integer(word) < 0))
		return V8_ODD;
	*ret = r ? 0 : (uint32_t)v8_integer(word);
	return r;
}

static int read_places(const struct v8_heap *heap, const struct v8_code *code, struct places *ret)
{
	const uint32_t at = (uint32_t)heap->constants[V8_DEOPT_INLINED];
	uint32_t n_words = 0;
	uint64_t n = 0;
	int r;

	*ret = (struct places){.heap = heap, .code = code, .first = at + PLACES};
	r = read_count(heap, code->data, at + AT_ONCE, &ret->n_at_once);
	if (!r)
		r = read_count(heap, code->data, at + CALLS, &ret->n_calls);
	if (!r)
		r = v8_array_read(heap, code->data, &n_words);
	n = (uint64_t)ret->n_at_once + ret->n_calls;
	return !r && ret->first + WORDS_A_PLACE * n > n_words ? V8_ODD : r;
}

/* The number of the call that returns to @to. */
static int find_call(const struct places *p, uint32_t to, uint32_t *ret)
{
	uint64_t words[PLACES_A_READ * WORDS_A_PLACE];
	const uint32_t most = p->n_calls < V8_DEOPT_CALLS_MAX ? p->n_calls : V8_DEOPT_CALLS_MAX;
	uint32_t some;

	for (uint32_t done = 0; done < most; done += some) {
		const uint64_t word = p->first + WORDS_A_PLACE * ((uint64_t)p->n_at_once + done);
		int r;

		some = most - done < PLACES_A_READ ? most - done : PLACES_A_READ;
		r = v8_bytes_read(p->heap, p->code->data,
				  (uint64_t)p->heap->constants[V8_ARRAY_DATA] + 8 * word, words,
				  8ull * WORDS_A_PLACE * some);
		if (r)
			return r;
		for (uint32_t i = 0; i < some; i++) {
			if (words[WORDS_A_PLACE * i + 2] != (uint64_t)to << 32)
				continue;
			*ret = p->n_at_once + done + i;
			return 0;
		}
	}
	return V8_ODD;
}

static uint32_t number_at(const uint8_t *at, uint32_t n)
{
	uint32_t number = 0;

	memcpy(&number, at, n);
	return number;
}

/* The same in @n safepoints: the distance that the call returns to, the number of the place counted
 * from 1, the distance of its other code, and which values the collector must know. */
static int search_safepoints(const struct places *p, uint64_t at, uint32_t n, uint32_t form,
			     uint32_t to, uint32_t *ret)
{
	const uint32_t distance = SIZE_OF(form, 4), number = SIZE_OF(form, 7);
	const uint32_t size = 2 * distance + number + 1 + SIZE_OF(form, 1);
	_cleanup_(freep) uint8_t *safepoints = NULL;
	int r;

	if (!(form & 1) || distance > sizeof(to) || number > sizeof(*ret))
		return V8_ODD;
	n = n < V8_DEOPT_CALLS_MAX ? n : V8_DEOPT_CALLS_MAX;
	safepoints = malloc((size_t)n * size + 1);
	if (!safepoints)
		return -ENOMEM;
	r = v8_outcome_of_memory(memory_read(p->heap->memory, at, safepoints, (size_t)n * size));
	for (uint32_t i = 0; !r && i < n; i++) {
		const uint8_t *safepoint = safepoints + (size_t)i * size;

		if (number_at(safepoint, distance) != to)
			continue;
		*ret = number_at(safepoint + distance, number) - 1;
		return 0;
	}
	return r ? r : V8_ODD;
}

/* The safepoints are behind the instructions; their number is the first word of the head, or from
 * 13.4 on the second, and their form the next one. */
static int find_safepoint(const struct places *p, uint32_t to, uint32_t *ret)
{
	const uint64_t at = p->code->start + p->code->n_bytes;
	const size_t first = p->heap->constants[V8_DEOPT_FORM] == V8_DEOPT_OF_13;
	uint32_t head[SAFEPOINTS_BYTES / 4];
	int r = v8_outcome_of_memory(memory_read(p->heap->memory, at, head, sizeof(head)));

	return r ? r
		 : search_safepoints(p, at + sizeof(head), head[first], head[first + 1], to, ret);
}

/* The index of the translation of the call that returns to @to. */
static int find_translation(const struct places *p, uint32_t to, uint32_t *ret)
{
	uint32_t place = 0;
	int r = p->code->kind == V8_CODE_FAST ? find_safepoint(p, to, &place)
					      : find_call(p, to, &place);

	if (r)
		return r;
	if (place < p->n_at_once || place - p->n_at_once >= p->n_calls)
		return V8_ODD;
	return read_count(p->heap, p->code->data, p->first + WORDS_A_PLACE * place + 1, ret);
}

int v8_deopt_find(const struct v8_heap *heap, const struct v8_code *code, uint32_t to,
		  struct v8_deopt_frames *ret)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct places places;
	uint64_t translations;
	uint32_t index = 0;
	size_t n = 0;
	int r;

	if (heap->constants[V8_DEOPT_FORM] == V8_DEOPT_UNKNOWN)
		return V8_ODD;
	r = read_places(heap, code, &places);
	if (!r)
		r = find_translation(&places, to, &index);
	if (!r)
		r = v8_item_read(heap, code->data, TRANSLATIONS, &translations);
	if (!r)
		r = v8_table_read(heap, translations, V8_DEOPT_BYTES_MAX, &bytes, &n);
	/* the function itself is there */
	if (r == V8_UNREADABLE)
		return V8_ODD;
	return r ? r : v8_deopt_parse(heap->constants[V8_DEOPT_FORM], bytes, n, index, ret);
}
