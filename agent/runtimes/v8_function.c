// SPDX-License-Identifier: Apache-2.0
/*
 * The collector moves objects. Then the words at the address of a frame are others, and the check
 * fails. A new function at the address of a freed one has another id, or in releases without ids
 * of functions the same number at most in another script, whose id the check has too. There,
 * functions without a script, the virtual machine's own, are told apart by the addresses alone.
 *
 * A frame of compiled code has fewer bits of the check, and the address in the code. The code
 * refers to the function: if not, it was freed, and only the function itself is known.
 *
 * A frame whose code is no function has a name by its type alone.
 */
#include "runtimes/v8_function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/v8_baseline.h"
#include "runtimes/v8_code.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_shared.h"

void v8_function_deinit(struct v8_function *f)
{
	free(f->functions);
	free(f->places);
	*f = (struct v8_function){0};
}

/* The place of a frame of compiled code is no bytecode. */
static void forget_places(struct v8_function *f)
{
	free(f->places);
	f->places = NULL;
	f->n_places = 0;
}

struct reading {
	struct v8_heap heap;
	const struct v8_image *image;
	uint64_t bias;
	uint64_t object; /* the SharedFunctionInfo */
	uint64_t pc;	 /* in compiled code; 0: another frame */
	uint32_t check;
	unsigned int n_bits; /* of @check */
};

/* One function while it is read. */
struct text {
	struct v8_source source;
	uint32_t first_line; /* 0: not known */
	uint32_t line;
};

static int read_shared(const struct reading *r, struct v8_shared *ret)
{
	int result = v8_shared_read(&r->heap, r->object, ret);

	if (!result && v8_shared_check(ret) >> (32 - r->n_bits) != r->check)
		return V8_ODD;
	return result;
}

/* ---------------------------------------------------------------- lines */

/* The lines of a function, and of @character in it. Without lines, the source may be elsewhere. */
static int read_lines(const struct reading *r, struct text *text, uint32_t character,
		      struct v8_lines *ret)
{
	const struct v8_source *source = &text->source;
	int result;

	if (!source->script || !source->end)
		return 0;
	result = v8_lines_read(&r->heap, source->script, source->start, source->end, ret);
	if (result)
		return result == V8_ODD ? 0 : result;
	text->first_line = v8_lines_find(ret, source->start);
	if (character >= source->start && character <= source->end)
		text->line = v8_lines_find(ret, character);
	return 0;
}

/* The line of the bytecode at @place. */
static int read_line(const struct reading *r, const struct v8_shared *shared, uint32_t place,
		     const struct v8_lines *lines, uint32_t *ret)
{
	_cleanup_(freep) struct v8_place *places = NULL;
	size_t n = 0;
	int result = v8_places_read(&r->heap, shared->data, lines, &places, &n);

	if (!result && n)
		*ret = v8_places_find(places, n, place);
	return result;
}

static int read_scope(const struct reading *r, const struct v8_scope *scope, struct text *ret)
{
	_cleanup_(v8_lines_deinit) struct v8_lines lines = {0};
	struct v8_shared shared;
	int result = v8_shared_read(&r->heap, scope->shared, &shared);

	if (!result)
		result = v8_source_read(&r->heap, &shared, &ret->source);
	if (!result)
		result = read_lines(r, ret, scope->character, &lines);
	if (!result && scope->place && ret->first_line)
		result = read_line(r, &shared, scope->place, &lines, &ret->line);
	return result;
}

/* ---------------------------------------------------------------- functions */

static size_t copy_text(char *to, const char *from)
{
	const size_t n = strlen(from) + 1;

	memcpy(to, from, n);
	return n;
}

/* All in one piece of memory. */
static int keep(const struct text *texts, size_t n, struct v8_function *ret)
{
	size_t bytes = n * sizeof(struct runtime_place);
	char *at;

	for (size_t i = 0; i < n; i++)
		bytes += strlen(texts[i].source.name) + 1 + strlen(texts[i].source.file) + 1;
	ret->functions = calloc(1, bytes);
	if (!ret->functions)
		return -ENOMEM;
	ret->n_functions = n;
	ret->n_bytes = bytes;
	at = (char *)(ret->functions + n);
	for (size_t i = 0; i < n; i++) {
		struct runtime_place *place = &ret->functions[i];

		place->function.name = at;
		at += copy_text(at, texts[i].source.name);
		place->function.file = at;
		at += copy_text(at, texts[i].source.file);
		place->function.start_line = texts[i].first_line;
		place->line = texts[i].line;
	}
	return 0;
}

/* The line of the address in baseline code. */
static int find_baseline_line(const struct reading *r, const struct v8_code *code,
			      const struct v8_function *f, uint32_t *ret)
{
	const struct v8_sizes sizes = {r->image->sizes + r->bias, r->image->n_sizes};
	uint32_t bytecode;
	int result;

	if (!r->image->sizes || !f->n_places)
		return 0;
	result = v8_baseline_find(&r->heap, &sizes, code, r->pc, &bytecode);
	if (!result)
		*ret = v8_places_find(f->places, f->n_places,
				      (uint32_t)r->heap.constants[V8_BYTECODE_DATA] - 1 + bytecode);
	return result == V8_ODD ? 0 : result;
}

/* A function with lines by bytecode: interpreted, of baseline code @code, or a builtin. */
static int read_one(const struct reading *r, const struct v8_shared *shared,
		    const struct v8_code *code, struct v8_function *ret)
{
	_cleanup_(v8_lines_deinit) struct v8_lines lines = {0};
	_cleanup_(freep) struct text *text = calloc(1, sizeof(*text));
	int result;

	if (!text)
		return -ENOMEM;
	result = v8_source_read(&r->heap, shared, &text->source);
	if (!result)
		result = read_lines(r, text, V8_NO_POSITION, &lines);
	if (!result && text->first_line)
		result = v8_places_read(&r->heap, shared->data, &lines, &ret->places,
					&ret->n_places);
	if (!result && code)
		result = find_baseline_line(r, code, ret, &text->line);
	return result ? result : keep(text, 1, ret);
}

/* An isolate numbers its compilations: no other code has the number. */
static int read_proof(const struct reading *r, const struct v8_code *code,
		      struct runtime_proof *ret)
{
	const int32_t *c = r->heap.constants;
	/* the word before the function's */
	const uint64_t number = code->data - 1 + (uint64_t)c[V8_ARRAY_DATA] +
				8 * ((uint64_t)c[V8_DEOPT_SHARED] - 1);
	uint64_t word;
	int result = v8_outcome_of_memory(memory_read(r->heap.memory, number, &word, 8));

	if (result)
		return result;
	*ret = (struct runtime_proof){.n = 2};
	ret->words[0].at = code->object - 1 + (uint64_t)c[V8_CODE_DATA];
	ret->words[0].word = code->data;
	ret->words[1].at = number;
	ret->words[1].word = word;
	if (!c[V8_TYPE_STREAM])
		return 0;
	ret->words[2].at = code->start - (uint64_t)c[V8_CODE_HEADER] + 8;
	ret->words[2].word = code->object;
	ret->n = 3;
	return 0;
}

/* A function of optimised code, and those inlined there. */
static int read_all(const struct reading *r, const struct v8_code *code, struct v8_function *ret)
{
	_cleanup_(freep) struct text *texts = NULL;
	struct v8_scopes scopes;
	int result = v8_scopes_read(&r->heap, code, r->object, r->pc, &scopes);

	if (result)
		return result;
	texts = calloc(scopes.n, sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; !result && i < scopes.n; i++)
		result = read_scope(r, &scopes.items[i], &texts[i]);
	if (!result)
		result = read_proof(r, code, &ret->proof);
	return result ? result : keep(texts, scopes.n, ret);
}

/* Whether the function refers to the code: a copy of the interpreter's entry, made for other
 * profilers
 * (--interpreted-frames-native-stack), or baseline code of old releases. 0; V8_ODD if not; an
 * outcome of memory, -errno. */
static int check_code(const struct reading *r, const struct v8_shared *shared,
		      const struct v8_code *code)
{
	uint64_t words[2];
	int result = v8_bytes_read(&r->heap, shared->data, 8, words, sizeof(words));

	return result || words[0] == code->object || words[1] == code->object ? result : V8_ODD;
}

/* V8_ODD if the code is not the function's. */
static int read_compiled(const struct reading *r, const struct v8_shared *shared,
			 const struct v8_code *code, struct v8_function *ret)
{
	struct v8_code baseline = *code;
	int result;

	if (v8_code_is_optimised(code))
		return read_all(r, code, ret);
	result = v8_bytecode_find(&r->heap, shared->data, &baseline.data);
	if (!result && (code->kind != V8_CODE_BASELINE || baseline.data != code->data))
		result = check_code(r, shared, code);
	return result ? result
		      : read_one(r, shared, code->kind == V8_CODE_BASELINE ? &baseline : NULL, ret);
}

static int read_frame(const struct reading *r, struct v8_function *ret)
{
	struct v8_code code = {0}, again = {0};
	struct v8_shared shared;
	int result = read_shared(r, &shared);

	if (result || !r->pc)
		return result ? result : read_one(r, &shared, NULL, ret);
	result = v8_code_find(&r->heap, r->pc, &code);
	if (!result)
		result = read_compiled(r, &shared, &code, ret);
	memory_forget(r->heap.memory);
	if (!result)
		result = v8_code_find(&r->heap, r->pc, &again);
	if (!result && memcmp(&code, &again, sizeof(code)) != 0)
		result = V8_ODD;
	if (result != V8_ODD)
		return result;
	v8_function_deinit(ret);
	return read_one(r, &shared, NULL, ret);
}

/* A frame whose code is no function. V8_ODD for one that the walker does not make. */
static int read_other(const struct v8_image *image, uint64_t word, struct v8_function *ret)
{
	const char *name = v8_other_name(image, word >> V8_TYPE_SHIFT);
	struct text text = {0};

	if (!name)
		return V8_ODD;
	copy_text(text.source.name, name);
	return keep(&text, 1, ret);
}

int v8_function_read(struct memory *m, const struct v8_target *target, const uint64_t words[2],
		     struct v8_function *ret)
{
	struct reading r = {
		.heap = {m, target->image.constants, target->image.machine},
		.image = &target->image,
		.bias = target->bias,
		.object = (words[0] & ~V8_FLAGS) + 1,
		.check = (uint32_t)(words[1] >> 32),
		.n_bits = 32,
	};
	struct v8_shared again;
	int result;

	if (words[0] < FRAME_CODE_LIMIT)
		return read_other(&target->image, words[0], ret);
	memory_forget(m); /* the collector may have moved objects since the last function */
	if (words[0] & V8_COMPILED) {
		const __u64 frame[2] = {words[0], words[1]};

		r.pc = words[1] & (V8_PC_LIMIT - 1);
		r.check = v8_compiled_check(frame);
		r.n_bits = V8_COMPILED_BITS;
	}
	result = r.pc && !target->image.has_code ? V8_ODD : read_frame(&r, ret);
	memory_forget(m);
	if (!result)
		result = read_shared(&r, &again);
	if (result)
		v8_function_deinit(ret);
	else if (r.pc)
		forget_places(ret);
	return result;
}

struct runtime_place v8_function_place(const struct v8_function *f, uint32_t at)
{
	struct runtime_place place = f->functions[f->n_functions - 1];

	if (f->n_places)
		place.line = at ? v8_places_find(f->places, f->n_places, at) : 0;
	place.inlined = f->functions;
	place.n_inlined = f->n_functions - 1;
	return place;
}
