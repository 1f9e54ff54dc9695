// SPDX-License-Identifier: Apache-2.0
/*
 * A SharedFunctionInfo has a script, and the function's name or, once the function is compiled, the
 * scope with the name, the name inferred from the source, and the positions of the function in the
 * script. The scope begins with flags and numbers; the names of the locals that closures use, and
 * a word about each, come next; then what the flags announce.
 */
#include "runtimes/v8_shared.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/v8_string.h"

#define CHECK_FACTOR 0x9e3779b97f4a7c15ull

/* ---------------------------------------------------------------- the words */

static uint32_t check_of(const uint64_t *words, size_t n)
{
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ words[i]) * CHECK_FACTOR;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 32);
}

int v8_shared_read(const struct v8_heap *heap, uint64_t object, struct v8_shared *ret)
{
	const int32_t *c = heap->constants;
	uint8_t bytes[V8_SHARED_FIRST + V8_SHARED_BYTES];
	uint32_t number, id;
	int r = v8_type_check(heap, object, V8_TYPE_SHARED);

	if (!r)
		r = v8_bytes_read(heap, object, V8_SHARED_FIRST, bytes + V8_SHARED_FIRST,
				  V8_SHARED_BYTES);
	if (r)
		return r;
	memcpy(&ret->name, bytes + c[V8_SHARED_NAME], 8);
	memcpy(&ret->script, bytes + c[V8_SHARED_SCRIPT], 8);
	memcpy(&ret->data, bytes + c[V8_SHARED_DATA], 8);
	memcpy(&number, bytes + c[V8_SHARED_LENGTH] + V8_NUMBER_BEHIND, 4);
	ret->number = number;
	ret->id = 0;
	if (c[V8_SHARED_ID]) {
		memcpy(&id, bytes + c[V8_SHARED_ID], 4);
		ret->id = id;
		return 0;
	}
	return v8_is_object(ret->script)
		       ? v8_word_read(heap, ret->script,
				      (uint64_t)c[V8_SCRIPT_LINES] + V8_ID_BEHIND, &ret->id)
		       : 0;
}

uint32_t v8_shared_check(const struct v8_shared *shared)
{
	const uint64_t key[] = {shared->name, shared->script, shared->id, shared->number};

	return check_of(key, array_size(key));
}

/* ---------------------------------------------------------------- the scope */

/* Bits of a scope's flags, the same in V8 10 to 14. */
#define SCOPE_CLASS_INDEX   (1u << 10)
#define SCOPE_FUNCTION_NAME (3u << 12)
#define SCOPE_INFERRED	    (1u << 14)
/* Locals of a scope up to which their names are in it; else one word leads to a table. */
#define SCOPE_INLINE_LOCALS 75
/* Locals of a scope. Reached: the function has no name. */
#define SCOPE_LOCALS_MAX    65536
/* Number of the first word behind the numbers if these include the positions. */
#define SCOPE_FIRST_LONG    5
/* Words that are read behind the locals. */
#define SCOPE_WORDS	    8

struct scope {
	uint64_t name, inferred; /* 0: none */
	uint32_t start, end;	 /* positions; 0, 0 if they are not known */
};

/* The words of a scope begin behind its map. */
static uint64_t scope_at(uint64_t number)
{
	return 8 + number * 8;
}

static bool take_positions(const uint64_t words[2], struct scope *ret)
{
	if (!v8_is_integer(words[0]) || !v8_is_integer(words[1]) || v8_integer(words[0]) < 0 ||
	    v8_integer(words[1]) < v8_integer(words[0]))
		return false;
	ret->start = (uint32_t)v8_integer(words[0]);
	ret->end = (uint32_t)v8_integer(words[1]);
	return true;
}

/* The words behind the locals. False if they are not in their places. */
static bool take_scope(uint32_t flags, const uint64_t *words, bool has_positions, struct scope *ret)
{
	size_t i = flags & SCOPE_CLASS_INDEX ? 1 : 0;

	*ret = (struct scope){0};
	if (flags & SCOPE_FUNCTION_NAME) {
		ret->name = words[i];
		i += 2;
	}
	if (flags & SCOPE_INFERRED)
		ret->inferred = words[i++];
	return !has_positions || take_positions(words + i, ret);
}

static int read_scope(const struct v8_heap *heap, uint64_t object, struct scope *ret)
{
	const uint64_t first = (uint64_t)heap->constants[V8_SCOPE_FIRST];
	uint64_t words[SCOPE_WORDS + 1] = {0}, flags, n, positions[2], at;
	size_t n_bytes;
	int r = v8_word_read(heap, object, scope_at(0), &flags);

	if (!r)
		r = v8_word_read(heap, object, scope_at((uint64_t)heap->constants[V8_SCOPE_LOCALS]),
				 &n);
	if (r)
		return r;
	if (!v8_is_integer(n) || v8_integer(n) < 0 || v8_integer(n) > SCOPE_LOCALS_MAX)
		return V8_ODD;
	n = (uint64_t)v8_integer(n);
	/* a small integer, or an int with nothing behind */
	flags |= flags >> 32;
	at = first + n + (n < SCOPE_INLINE_LOCALS ? n : 1);
	r = v8_outcome_of_memory(memory_read_some(heap->memory, object - 1 + scope_at(at), words,
						  sizeof(words), &n_bytes));
	if (r)
		return r;
	if (first >= SCOPE_FIRST_LONG) {
		(void)take_scope((uint32_t)flags, words, false, ret);
		r = v8_bytes_read(heap, object, scope_at(first - 2), positions, sizeof(positions));
		if (!r)
			(void)take_positions(positions, ret);
		return r;
	}
	/* a module has one more number before the locals */
	if (!take_scope((uint32_t)flags, words, true, ret) &&
	    !take_scope((uint32_t)flags, words + 1, true, ret))
		(void)take_scope((uint32_t)flags, words, false, ret);
	return 0;
}

/* ---------------------------------------------------------------- names */

/* A string, or "" for another object. */
static int read_text(const struct v8_heap *heap, uint64_t word, char *ret, size_t n)
{
	int r = v8_is_object(word) ? v8_string_read(heap, word, ret, n) : V8_ODD;

	if (r)
		*ret = 0;
	return r == V8_ODD ? 0 : r;
}

static int read_name(const struct v8_heap *heap, const struct v8_shared *shared,
		     struct scope *scope, struct v8_source *ret)
{
	uint16_t type = 0;
	int r = v8_is_object(shared->name) ? v8_type_read(heap, shared->name, &type) : 0;

	scope->name = shared->name;
	if (!r && type == heap->constants[V8_TYPE_SCOPE])
		r = read_scope(heap, shared->name, scope);
	if (!r)
		r = read_text(heap, scope->name, ret->name, sizeof(ret->name));
	if (!r && !*ret->name)
		r = read_text(heap, scope->inferred, ret->name, sizeof(ret->name));
	if (!*ret->name)
		strcpy(ret->name, "(anonymous)");
	return r;
}

/* A URL of a file as its path. */
static void strip_scheme(char *file)
{
	static const char scheme[] = "file://";

	if (strncmp(file, scheme, sizeof(scheme) - 1) == 0)
		memmove(file, file + sizeof(scheme) - 1, strlen(file) - (sizeof(scheme) - 1) + 1);
}

/* A builtin has no script. */
static int read_script(const struct v8_heap *heap, const struct v8_shared *shared,
		       struct v8_source *ret)
{
	uint64_t name;
	int r = v8_is_object(shared->script) ? v8_type_check(heap, shared->script, V8_TYPE_SCRIPT)
					     : V8_ODD;

	if (r)
		return r == V8_ODD ? 0 : r;
	ret->script = shared->script;
	r = v8_word_read(heap, shared->script, (uint64_t)heap->constants[V8_SCRIPT_NAME], &name);
	if (!r)
		r = read_text(heap, name, ret->file, sizeof(ret->file));
	strip_scheme(ret->file);
	return r;
}

int v8_source_read(const struct v8_heap *heap, const struct v8_shared *shared,
		   struct v8_source *ret)
{
	struct scope scope = {0};
	int r;

	*ret = (struct v8_source){.script = 0};
	r = read_name(heap, shared, &scope, ret);
	ret->start = scope.start;
	ret->end = scope.end;
	return r ? r : read_script(heap, shared, ret);
}
