// SPDX-License-Identifier: Apache-2.0
/* Processes with V8 that contradict themselves. Each row changes words of a small process
 * (support/v8image.h). */
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "procmap/memory_cache.h"
#include "runtimes/v8_baseline.h"
#include "runtimes/v8_function.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_process.h"
#include "runtimes/v8_string.h"
#include "runtimes/v8_ways.h"
#include "support/flatmemory.h"
#include "support/v8image.h"

#define INTEGER(value) ((uint64_t)(value) << 32)
#define MAP(number)    (V8IMAGE_MAPS + 16 * (number) + 1)
#define MAP_ARRAY      MAP(3)
#define MAP_CONS       MAP(6)
#define MAP_THIN       MAP(7)

struct subject {
	uint8_t bytes[V8IMAGE_BYTES];
	struct flatmemory fm;
	struct v8_target target;
};

static void subject_init(struct subject *s)
{
	*s = (struct subject){.target = {.image = v8image_of_11}};
	v8image_build(s->bytes);
	flatmemory_init(&s->fm, s->bytes, sizeof(s->bytes));
	s->target.image.builtins[0] = FLATMEMORY_BASE;
	s->target.image.builtins[1] = FLATMEMORY_BASE + 8;
}

static void put(struct subject *s, uint64_t addr, uint64_t word)
{
	memcpy(s->bytes + addr - FLATMEMORY_BASE, &word, sizeof(word));
}

/* Of leaf(), with the word of its id. */
static uint64_t check_with(uint64_t id)
{
	const uint64_t words[] = {V8IMAGE_SCOPE + 1, V8IMAGE_SCRIPT + 1, id, 7};
	uint64_t h = 0;

	for (size_t i = 0; i < array_size(words); i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h >> 32 << 32;
}

static uint64_t check_of_leaf(void)
{
	return check_with((uint64_t)V8IMAGE_ID << 32);
}

static int read_with(struct subject *s, struct memory *m, struct v8_function *ret)
{
	const uint64_t words[2] = {V8IMAGE_SHARED, check_of_leaf()};

	return v8_function_read(m, &s->target, words, ret);
}

/* Frames whose code is no function: named by the type alone, or not at all. */
static void other_types(void **state)
{
	const uint64_t regexp[2] = {27 << V8_TYPE_SHIFT, 0}, other[2] = {26 << V8_TYPE_SHIFT, 0};
	const uint64_t last[2] = {FRAME_CODE_LIMIT - 1, 0};
	struct v8_function f = {0};
	struct subject s;

	(void)state;
	subject_init(&s);
	assert_int_equal(v8_process_attach(&s.fm.memory, &s.target), V8_OK);
	assert_int_equal(s.target.process.other_types, 1ull << 27 | 1ull << 4);
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, regexp, &f), 0);
	assert_string_equal(v8_function_place(&f, 0).function.name, "(regular expression)");
	assert_string_equal(v8_function_place(&f, 0).function.file, "");
	v8_function_deinit(&f);
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, other, &f), V8_ODD);
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, last, &f), V8_ODD);
	assert_null(f.functions);
}

/* ---------------------------------------------------------------- processes */

struct row {
	const char *what;
	uint64_t addr;
	uint64_t word;
	int outcome;
};

static const struct row rows[] = {
	{"as it is", FLATMEMORY_BASE, V8IMAGE_BUILTINS, V8_OK},
	{"no builtins yet", FLATMEMORY_BASE, 0, V8_NOT_READY},
	{"builtins of no size", FLATMEMORY_BASE + 8, 0, V8_NOT_READY},
	{"builtins of 4 GB", FLATMEMORY_BASE + 8, UINT32_MAX, V8_ODD},
	{"builtins elsewhere", FLATMEMORY_BASE, 1 << 20, V8_ODD},
	{"builtins at the end", FLATMEMORY_BASE, UINT64_MAX - 100, V8_ODD},
};

static void processes(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].what);
		subject_init(&s);
		put(&s, rows[i].addr, rows[i].word);
		assert_int_equal(v8_process_attach(&s.fm.memory, &s.target), rows[i].outcome);
	}
	subject_init(&s);
	s.target.bias = UINT64_MAX - 8192;
	assert_int_equal(v8_process_attach(&s.fm.memory, &s.target), V8_UNREADABLE);
}

/* ---------------------------------------------------------------- functions */

struct function_row {
	const char *what;
	uint64_t addr[2];
	uint64_t word[2];
	int outcome;
	const char *name, *file; /* NULL: not looked at */
	uint32_t first_line, line;
};

#define NAMED .name = "leaf", .file = "/srv/a.js"
#define WHOLE NAMED, .first_line = 2, .line = 3

static const struct function_row function_rows[] = {
	{"as it is", .addr = {V8IMAGE_SHARED + 24}, WHOLE},
	{"lines of V8", .addr = {V8IMAGE_SCRIPT + 56}, .word = {V8IMAGE_ENDS + 1}, WHOLE},
	{"lines further down", .addr = {V8IMAGE_SCRIPT + 24}, .word = {INTEGER(10)}, NAMED,
	 .first_line = 12, .line = 13},
	{"freed", .addr = {V8IMAGE_SHARED}, .outcome = V8_ODD},
	{"an object of another type", .addr = {V8IMAGE_SHARED}, .word = {MAP_ARRAY},
	 .outcome = V8_ODD},
	{"another name", .addr = {V8IMAGE_SHARED + 16}, .word = {V8IMAGE_NAME + 1},
	 .outcome = V8_ODD},
	{"another number", .addr = {V8IMAGE_SHARED + 48}, .word = {INTEGER(8)}, .outcome = V8_ODD},
	{"another script at its address", .addr = {V8IMAGE_SCRIPT + 64},
	 .word = {INTEGER(V8IMAGE_ID + 1)}, .outcome = V8_ODD},
	{"a script elsewhere", .addr = {V8IMAGE_SHARED + 32}, .word = {(1 << 20) + 1},
	 .outcome = V8_UNREADABLE},
	{"a map elsewhere", .addr = {V8IMAGE_SCOPE}, .word = {(1 << 20) + 1},
	 .outcome = V8_UNREADABLE},
	{"many locals", .addr = {V8IMAGE_SCOPE + 24}, .word = {UINT64_MAX << 32},
	 .outcome = V8_ODD},
	{"locals behind the memory", .addr = {V8IMAGE_SCOPE + 24}, .word = {INTEGER(60000)},
	 .outcome = V8_UNREADABLE},
	{"an inferred name", .addr = {V8IMAGE_SCOPE + 8, V8IMAGE_SCOPE + 40},
	 .word = {INTEGER(1 << 14), INTEGER(8)}, NAMED, .first_line = 2},
	{"no name", .addr = {V8IMAGE_SCOPE + 32}, .name = "(anonymous)", .file = "/srv/a.js",
	 .first_line = 2, .line = 3},
	{"positions backwards", .addr = {V8IMAGE_SCOPE + 48}, .word = {INTEGER(50)}, NAMED},
	{"positions behind the source", .addr = {V8IMAGE_SCOPE + 48, V8IMAGE_SCOPE + 56},
	 .word = {INTEGER(1000), INTEGER(1001)}, NAMED},
	{"a name that is thin", .addr = {V8IMAGE_NAME, V8IMAGE_NAME + 16},
	 .word = {MAP_THIN, V8IMAGE_FILE + 1}, .name = "file", .file = "/srv/a.js", .first_line = 2,
	 .line = 3},
	{"a name that is its own part", .addr = {V8IMAGE_NAME, V8IMAGE_NAME + 16},
	 .word = {MAP_THIN, V8IMAGE_NAME + 1}, .name = "(anonymous)", .file = "/srv/a.js",
	 .first_line = 2, .line = 3},
	{"a name that is two of its parts", .addr = {V8IMAGE_NAME, V8IMAGE_NAME + 16},
	 .word = {MAP_CONS, V8IMAGE_NAME + 1}, .outcome = V8_OK},
	{"a long name", .addr = {V8IMAGE_NAME + 8}, .word = {INTEGER(UINT32_MAX)},
	 .outcome = V8_OK},
	{"no script", .addr = {V8IMAGE_SCRIPT}, .word = {MAP_ARRAY}, .name = "leaf", .file = ""},
	{"no file", .addr = {V8IMAGE_SCRIPT + 16}, .name = "leaf", .file = "", .first_line = 2,
	 .line = 3},
	{"no source", .addr = {V8IMAGE_SCRIPT + 8}, NAMED},
	{"lines of 4 GB", .addr = {V8IMAGE_SCRIPT + 56, V8IMAGE_ENDS + 8},
	 .word = {V8IMAGE_ENDS + 1, INTEGER(INT32_MAX)}, NAMED},
	{"lines backwards", .addr = {V8IMAGE_SCRIPT + 56, V8IMAGE_ENDS + 32},
	 .word = {V8IMAGE_ENDS + 1, INTEGER(20)}, NAMED},
	{"no bytecode", .addr = {V8IMAGE_SHARED + 8}, NAMED, .first_line = 2},
	{"bytecode of a compiler", .addr = {V8IMAGE_BYTECODE}, .word = {MAP_ARRAY}, NAMED,
	 .first_line = 2},
	{"no table", .addr = {V8IMAGE_BYTECODE + 32}, NAMED, .first_line = 2},
	{"an empty table", .addr = {V8IMAGE_TABLE + 8}, NAMED, .first_line = 2},
};

static void check_function(struct subject *s, struct memory *m, const struct function_row *row)
{
	_cleanup_(v8_function_deinit) struct v8_function f = {0};

	assert_int_equal(read_with(s, m, &f), row->outcome);
	assert_true(!row->outcome || (!f.places && !f.functions));
	if (!row->name)
		return;
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].function.name, row->name);
	assert_string_equal(f.functions[0].function.file, row->file);
	assert_int_equal(f.functions[0].function.start_line, row->first_line);
	/* the second bytecode */
	assert_int_equal(v8_function_place(&f, 53 + 4).line, row->line);
	assert_int_equal(v8_function_place(&f, 0).line, 0);
}

/* Also with a cache, which has the objects of the row before. */
static void functions(void **state)
{
	struct memory_cache cache;
	struct subject s;

	(void)state;
	memory_cache_init(&cache, &s.fm.memory);
	for (size_t i = 0; i < array_size(function_rows); i++) {
		const struct function_row *row = &function_rows[i];

		row_begin(row->what);
		subject_init(&s);
		for (int k = 0; k < 2 && row->addr[k]; k++)
			put(&s, row->addr[k], row->word[k]);
		check_function(&s, &s.fm.memory, row);
		check_function(&s, &cache.memory, row);
	}
}

/* Functions with an id of their own: the script's does not count. */
static void ids(void **state)
{
	static const struct {
		const char *what;
		uint64_t addr, word;
		int outcome;
	} id_rows[] = {
		{"as it is", V8IMAGE_SHARED + 56, 77, V8_OK},
		{"another id", V8IMAGE_SHARED + 56, 78, V8_ODD},
		{"something behind", V8IMAGE_SHARED + 56, 1ull << 32 | 77, V8_OK},
		{"another id of the script", V8IMAGE_SCRIPT + 64, INTEGER(V8IMAGE_ID + 1), V8_OK},
		{"another number", V8IMAGE_SHARED + 48, INTEGER(8), V8_ODD},
	};
	const uint64_t words[2] = {V8IMAGE_SHARED, check_with(77)};
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(id_rows); i++) {
		_cleanup_(v8_function_deinit) struct v8_function f = {0};

		row_begin(id_rows[i].what);
		subject_init(&s);
		s.target.image.constants[V8_SHARED_ID] = 56;
		put(&s, V8IMAGE_SHARED + 56, 77);
		put(&s, id_rows[i].addr, id_rows[i].word);
		assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &f),
				 id_rows[i].outcome);
		if (!id_rows[i].outcome)
			assert_string_equal(f.functions[0].function.name, "leaf");
	}
}

/* ---------------------------------------------------------------- compiled code */

struct code_row {
	const char *what;
	uint64_t pc;
	uint64_t addr, word; /* 0: no change */
	const char *inner;   /* NULL: nothing is inlined */
	uint32_t inner_line, line;
};

#define INLINED	    (V8IMAGE_CODE_AT + 20)
#define INNER	    .inner = "inner", .inner_line = 4, .line = 3
#define MADE_OF(i)  (V8IMAGE_MADE_OF + 16 + 8 * (i))
#define FLAGS(kind) .addr = V8IMAGE_CODE + 48, .word = (kind)

static const struct code_row code_rows[] = {
	{"the first instruction", .pc = V8IMAGE_CODE_AT, .line = 3},
	{"before the inlined function", .pc = V8IMAGE_CODE_AT + 14, .line = 3},
	{"an inlined function", .pc = V8IMAGE_CODE_AT + 16, INNER},
	{"the last instruction", .pc = V8IMAGE_CODE_AT + 62, INNER},
	{"inside an instruction", .pc = V8IMAGE_CODE_AT + 63},
	{"behind the code", .pc = V8IMAGE_CODE_AT + 64},
	{"far from the code", .pc = V8IMAGE_CODE_AT + (1 << 20)},
	{"at the beginning of memory", .pc = 8},
	{"the first compiler", .pc = INLINED, FLAGS(12), INNER},
	{"an unknown compiler", .pc = INLINED, FLAGS(14)},
	{"a stub", .pc = INLINED, FLAGS(2)},
	{"no header", .pc = INLINED, .addr = V8IMAGE_STREAM, .word = 0},
	{"a header of another type", .pc = INLINED, .addr = V8IMAGE_STREAM, .word = MAP_ARRAY},
	{"a header of other code", .pc = INLINED, .addr = V8IMAGE_CODE + 40,
	 .word = V8IMAGE_CODE_AT + 64},
	{"a code of another type", .pc = INLINED, .addr = V8IMAGE_CODE, .word = MAP_ARRAY},
	{"code of another function", .pc = INLINED, .addr = MADE_OF(6), .word = V8IMAGE_INNER + 1},
	{"code of no function", .pc = INLINED, .addr = MADE_OF(6), .word = V8IMAGE_SCOPE + 1},
	{"made of nothing", .pc = INLINED, .addr = V8IMAGE_CODE + 16, .word = INTEGER(1)},
	{"made of little", .pc = INLINED, .addr = V8IMAGE_MADE_OF + 8, .word = INTEGER(7)},
	{"no literals", .pc = INLINED, .addr = MADE_OF(2), .word = INTEGER(1)},
	{"too few literals", .pc = INLINED, .addr = V8IMAGE_LITERALS + 8, .word = INTEGER(0)},
	{"a literal that is weak", .pc = INLINED, .addr = V8IMAGE_LITERALS + 16,
	 .word = V8IMAGE_INNER + 3, INNER},
	{"a literal of another type", .pc = INLINED, .addr = V8IMAGE_LITERALS + 16,
	 .word = V8IMAGE_SCOPE + 1},
	{"a recursion", .pc = INLINED, .addr = V8IMAGE_INLINED + 24, .word = UINT32_MAX,
	 .inner = "leaf", .inner_line = 4, .line = 3},
	{"no inlined calls", .pc = INLINED, .addr = V8IMAGE_INLINED + 8, .word = INTEGER(0)},
	{"a call inlined in itself", .pc = INLINED, .addr = V8IMAGE_INLINED + 16,
	 .word = 1ull << 31 | 50},
	{"a call without a position", .pc = INLINED, .addr = V8IMAGE_INLINED + 16, .word = 0},
	{"a call outside of its function", .pc = INLINED, .addr = V8IMAGE_INLINED + 16,
	 .word = 42 << 1, .inner = "inner", .inner_line = 4},
	{"no positions", .pc = INLINED, .addr = V8IMAGE_CODE + 24, .word = INTEGER(1)},
	{"baseline, before the bytecode", .pc = V8IMAGE_BASELINE_AT + 3},
	{"baseline, the first bytecode", .pc = V8IMAGE_BASELINE_AT + 4, .line = 2},
	{"baseline, the second bytecode", .pc = V8IMAGE_BASELINE_AT + 12, .line = 3},
	{"baseline, behind the bytecode", .pc = V8IMAGE_BASELINE_AT + 20},
	{"baseline of other bytecode", .pc = V8IMAGE_BASELINE_AT + 4, .addr = V8IMAGE_BASELINE + 16,
	 .word = V8IMAGE_SCRIPT + 1},
	{"baseline without lengths", .pc = V8IMAGE_BASELINE_AT + 4, .addr = V8IMAGE_BASELINE + 24,
	 .word = INTEGER(1)},
};

/* A frame of compiled code of leaf(). */
static void compiled_frame(uint64_t pc, uint64_t ret[2])
{
	const uint64_t check = check_of_leaf();

	ret[0] = V8IMAGE_SHARED | V8_COMPILED | (check >> 46 & 3) << 1;
	ret[1] = check >> 48 << 48 | pc;
}

/* The functions are right, the last one is leaf(). */
static void check_code(const struct v8_function *f, const struct code_row *row)
{
	const struct runtime_place place = v8_function_place(f, 53 + 4);

	assert_string_equal(place.function.name, "leaf");
	assert_int_equal(place.function.start_line, 2);
	assert_int_equal(place.line, row->line);
	assert_int_equal(place.n_inlined, row->inner != NULL);
	if (!row->inner)
		return;
	assert_string_equal(place.inlined[0].function.name, row->inner);
	assert_int_equal(place.inlined[0].line, row->inner_line);
}

/* The same. */
static void compiled(void **state)
{
	struct memory_cache cache;
	struct subject s;

	(void)state;
	memory_cache_init(&cache, &s.fm.memory);
	for (size_t i = 0; i < array_size(code_rows); i++) {
		_cleanup_(v8_function_deinit) struct v8_function f = {0}, cached = {0};
		const struct code_row *row = &code_rows[i];
		uint64_t words[2];

		row_begin(row->what);
		subject_init(&s);
		/* leaf() goes on behind inner() */
		put(&s, V8IMAGE_SCOPE + 56, INTEGER(40));
		if (row->addr)
			put(&s, row->addr, row->word);
		compiled_frame(row->pc, words);
		assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &f), V8_OK);
		check_code(&f, row);
		assert_int_equal(v8_function_read(&cache.memory, &s.target, words, &cached), V8_OK);
		check_code(&cached, row);
	}
}

/* Calls of optimised code without source positions. */
static const struct deopt_row {
	const char *what;
	uint64_t pc;
	uint64_t addr, word; /* 0: no change */
	bool is_known;	     /* the call in inner() */
} deopt_rows[] = {
	{"a call", INLINED, 0, 0, true},
	{"an interrupted instruction", V8IMAGE_CODE_AT + 16, 0, 0, false},
	{"another call", V8IMAGE_CODE_AT + 39, 0, 0, true},
	{"a place that leaves at once", INLINED, V8IMAGE_PLACE(0) + 16, INTEGER(21), true},
	{"no calls", INLINED, V8IMAGE_PLACE(0) - 8, 0, false},
	{"more places than words", INLINED, V8IMAGE_PLACE(0) - 8, INTEGER(3), false},
	{"far more", INLINED, V8IMAGE_PLACE(0) - 16, INTEGER(INT32_MAX), false},
	{"places below zero", INLINED, V8IMAGE_PLACE(0) - 16, INTEGER(UINT32_MAX), false},
	{"a number that is an object", INLINED, V8IMAGE_PLACE(0) - 16, V8IMAGE_INNER + 1, false},
	{"no translation", INLINED, V8IMAGE_PLACE(1) + 8, INTEGER(UINT32_MAX), false},
	{"a translation inside of one", INLINED, V8IMAGE_PLACE(1) + 8, INTEGER(9), false},
	{"no translations", INLINED, MADE_OF(0), INTEGER(1), false},
	{"translations elsewhere", INLINED, MADE_OF(0), FLATMEMORY_BASE / 2 + 1, false},
	{"a literal of another type", INLINED, V8IMAGE_LITERALS + 16, V8IMAGE_SCOPE + 1, false},
	{"code of another function", INLINED, V8IMAGE_LITERALS + 24, V8IMAGE_INNER + 1, false},
};

/* The call in inner() is the second one: of the fast compiler. */
static void make_fast(struct subject *s, enum v8_deopt_form form)
{
	/* in front of one another: distance, place, distance of its other code, slots */
	static const uint8_t safepoints[] = {10, 0, 0, 0, 21, 3, 0, 0};
	const bool is_13 = form == V8_DEOPT_OF_13;
	const uint32_t head[] = {is_13 ? 9 : 2, is_13 ? 2 : 0x91, is_13 ? 0x91 : 0, 0};

	put(s, V8IMAGE_CODE + 48, 12);
	put(s, V8IMAGE_CODE + 56, 32);
	memcpy(s->bytes + V8IMAGE_CODE_AT + 32 - FLATMEMORY_BASE, head, sizeof(head));
	memcpy(s->bytes + V8IMAGE_CODE_AT + 48 - FLATMEMORY_BASE, safepoints, sizeof(safepoints));
}

/* The last translation as 13.4 writes it: frames also have their bytecode. */
static void make_13(struct subject *s)
{
	static const uint8_t translation[] = {14, 0, 4, 4, 1, 8, 2, 0, 0, 1, 8, 0, 0, 0};

	put(s, V8IMAGE_TRANSLATIONS + 8, INTEGER(20 + sizeof(translation)));
	memcpy(s->bytes + V8IMAGE_TRANSLATIONS + 16 + 20 - FLATMEMORY_BASE, translation,
	       sizeof(translation));
}

static void read_deopt(struct subject *s, uint64_t pc, bool is_known)
{
	_cleanup_(v8_function_deinit) struct v8_function f = {0};
	const struct code_row row = {
		.inner = is_known ? "inner" : NULL, .inner_line = 3, .line = is_known ? 3 : 0};
	uint64_t words[2];

	compiled_frame(pc, words);
	assert_int_equal(v8_function_read(&s->fm.memory, &s->target, words, &f), V8_OK);
	check_code(&f, &row);
}

static void deopt_init(struct subject *s, enum v8_deopt_form form)
{
	subject_init(s);
	s->target.image.constants[V8_DEOPT_FORM] = (int32_t)form;
	put(s, V8IMAGE_CODE + 24, INTEGER(1));
	put(s, V8IMAGE_INNER + 8, V8IMAGE_BYTECODE + 1);
}

static void deoptimisation(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(deopt_rows); i++) {
		const struct deopt_row *row = &deopt_rows[i];

		row_begin(row->what);
		deopt_init(&s, V8_DEOPT_OF_12);
		if (row->addr)
			put(&s, row->addr, row->word);
		read_deopt(&s, row->pc, row->is_known);
	}
	row_begin("lengths that are ints, with anything behind");
	deopt_init(&s, V8_DEOPT_OF_12);
	s.target.image.constants[V8_ARRAY_INT] = 1;
	put(&s, V8IMAGE_MADE_OF + 8, 77ull << 32 | 20);
	put(&s, V8IMAGE_LITERALS + 8, 77ull << 32 | 2);
	put(&s, V8IMAGE_INLINED + 8, 77ull << 32 | 16);
	put(&s, V8IMAGE_TRANSLATIONS + 8, 77ull << 32 | 25);
	put(&s, V8IMAGE_TABLE + 8, 4);
	read_deopt(&s, INLINED, true);
	row_begin("an unknown form");
	deopt_init(&s, V8_DEOPT_UNKNOWN);
	read_deopt(&s, INLINED, false);
}

/* A word of the head or of the safepoints is another one. */
static const struct {
	const char *what;
	enum v8_deopt_form form;
	size_t at;
	uint32_t word;
	bool is_known;
} safepoint_rows[] = {
	{"a call", V8_DEOPT_OF_12, 12, 0, true},
	{"no safepoints", V8_DEOPT_OF_12, 0, 0, false},
	{"more than there is memory", V8_DEOPT_OF_12, 0, UINT32_MAX, false},
	{"one safepoint", V8_DEOPT_OF_12, 0, 1, false},
	{"without places", V8_DEOPT_OF_12, 4, 0x90, false},
	{"distances of no bytes", V8_DEOPT_OF_12, 4, 0x81, false},
	{"distances of seven bytes", V8_DEOPT_OF_12, 4, 0xf1, false},
	{"no place", V8_DEOPT_OF_12, 20, 21, false},
	{"a place that leaves at once", V8_DEOPT_OF_12, 20, 21 | 1 << 8, false},
	{"the first call", V8_DEOPT_OF_12, 20, 21 | 2 << 8, true},
	{"a place behind the last", V8_DEOPT_OF_12, 20, 21 | 4 << 8, false},
	{"of 13: a call", V8_DEOPT_OF_13, 0, 0, true},
	{"of 13: no safepoints", V8_DEOPT_OF_13, 4, 0, false},
};

static void safepoints(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(safepoint_rows); i++) {
		row_begin(safepoint_rows[i].what);
		deopt_init(&s, safepoint_rows[i].form);
		make_fast(&s, safepoint_rows[i].form);
		if (safepoint_rows[i].form == V8_DEOPT_OF_13)
			make_13(&s);
		memcpy(s.bytes + V8IMAGE_CODE_AT + 32 - FLATMEMORY_BASE + safepoint_rows[i].at,
		       &safepoint_rows[i].word, sizeof(uint32_t));
		read_deopt(&s, INLINED, safepoint_rows[i].is_known);
	}
}

/* Optimised code is proved by its number, which no other code has. Other code is never replaced by
 * code with other functions. */
static void proofs(void **state)
{
	static const uint64_t places[] = {V8IMAGE_STREAM + 8, V8IMAGE_CODE + 16,
					  V8IMAGE_MADE_OF + 16 + 8 * 5};
	_cleanup_(v8_function_deinit) struct v8_function optimised = {0}, baseline_code = {0};
	struct subject s;
	uint64_t words[2];

	(void)state;
	subject_init(&s);
	put(&s, places[2], INTEGER(77));
	compiled_frame(INLINED, words);
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &optimised), V8_OK);
	assert_int_equal(optimised.proof.n, array_size(places));
	for (size_t i = 0; i < optimised.proof.n; i++) {
		uint64_t word;

		assert_int_equal(memory_read(&s.fm.memory, optimised.proof.words[i].at, &word, 8),
				 0);
		assert_int_equal(word, optimised.proof.words[i].word);
	}
	assert_int_equal(optimised.proof.words[0].at, places[1]);
	assert_int_equal(optimised.proof.words[1].at, places[2]);
	assert_int_equal(optimised.proof.words[1].word, INTEGER(77));
	assert_int_equal(optimised.proof.words[2].at, places[0]);
	compiled_frame(V8IMAGE_BASELINE_AT + 4, words);
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &baseline_code), V8_OK);
	assert_int_equal(baseline_code.proof.n, 0);
}

/* System calls take most of the time of reading names. */
static void calls(void **state)
{
	static const uint64_t want[][2] = {{42, 106}, {8, 16}}; /* without a cache, with one */
	struct memory_cache cache;
	struct subject s;
	uint64_t words[2];

	(void)state;
	subject_init(&s);
	memory_cache_init(&cache, &s.fm.memory);
	compiled_frame(INLINED, words);
	for (size_t i = 0; i < array_size(want); i++) {
		_cleanup_(v8_function_deinit) struct v8_function f = {0}, g = {0};
		struct memory *m = i ? &cache.memory : &s.fm.memory;

		s.fm.memory.n_calls = 0;
		assert_int_equal(read_with(&s, m, &f), V8_OK);
		assert_int_equal(s.fm.memory.n_calls, want[i][0]);
		s.fm.memory.n_calls = 0;
		assert_int_equal(v8_function_read(m, &s.target, words, &g), V8_OK);
		assert_int_equal(g.n_functions, 2);
		assert_int_equal(s.fm.memory.n_calls, want[i][1]);
	}
}

/* Frames of compiled code that are of another function, or impossible. */
static void strangers(void **state)
{
	static const uint64_t changes[][2] = {{2, 0}, {4, 0}, {0, 1ull << 48}, {0, 1ull << 63}};
	struct v8_function f = {0};
	struct subject s;
	uint64_t words[2];

	(void)state;
	for (size_t i = 0; i < array_size(changes); i++) {
		subject_init(&s);
		compiled_frame(INLINED, words);
		words[0] ^= changes[i][0];
		words[1] ^= changes[i][1];
		assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &f), V8_ODD);
		assert_null(f.functions);
	}
	subject_init(&s);
	compiled_frame(INLINED, words);
	s.target.image.has_code = false;
	assert_int_equal(v8_function_read(&s.fm.memory, &s.target, words, &f), V8_ODD);
	assert_null(f.functions);
}

/* ---------------------------------------------------------------- ways */

#define NOP	  "\x0f\x1f\x00" /* 3 bytes */
#define RET	  "\xc3"
#define CALL	  "\xe8\x00\x00\x00\x00"
#define JE	  "\x74" /* and a distance from the next instruction */
#define JMP	  "\xeb"
#define A64_NOP	  "\x1f\x20\x03\xd5"
#define A64_BL	  "\x00\x00\x00\x94"
#define A64_CBZ_2 "\x40\x00\x00\xb4" /* over the next one */
#define A64_INDEX "\x10\x4a\x22\x8b" /* add x16, x16, w2, uxtw #2 */
#define A64_BR	  "\x00\x02\x1f\xd6" /* x16 */
#define A64_POOL  "\x3f\x00\x00\x58" /* of one word */

static void ways(void **state)
{
	static const struct {
		const char *name, *code;
		size_t n;
		uint32_t mark, at;
		uint16_t machine;
		bool is_known, is_call, from_mark;
		size_t n_jumps;
		uint32_t jumps[2];
	} way_rows[] = {
#define CODE(text) (text), sizeof(text) - 1
		{"the mark", CODE(NOP NOP), 3, 3, EM_X86_64, .is_known = true, .from_mark = true},
		{"behind the mark", CODE(NOP NOP), 0, 3, EM_X86_64, .is_known = true,
		 .from_mark = true},
		{"before the mark", CODE(NOP NOP), 3, 0, EM_X86_64, .is_known = false},
		{"inside an instruction", CODE(NOP NOP), 0, 4, EM_X86_64, .is_known = false},
		{"behind the code", CODE(NOP NOP), 0, 6, EM_X86_64, .is_known = false},
		{"a caller", CODE(NOP CALL NOP), 0, 7, EM_X86_64, .is_known = true, .is_call = true,
		 .from_mark = true},
		{"at a call", CODE(NOP CALL NOP), 0, 3, EM_X86_64, .is_known = true,
		 .from_mark = true},
		{"an invalid instruction", CODE("\x06" NOP), 0, 1, EM_X86_64, .is_known = false},
		{"a jump to the instruction", CODE(JE "\3" NOP NOP), 2, 5, EM_X86_64,
		 .is_known = true, .from_mark = true, .n_jumps = 1, .jumps = {0}},
		{"a jump to the mark", CODE(JE "\3" NOP NOP), 5, 5, EM_X86_64, .is_known = true,
		 .from_mark = true},
		{"a jump behind the instruction", CODE(JE "\3" NOP NOP), 0, 2, EM_X86_64,
		 .is_known = true, .from_mark = true},
		{"a jump between", CODE(JE "\3" NOP NOP NOP), 2, 8, EM_X86_64, .is_known = true,
		 .from_mark = true, .n_jumps = 1},
		{"a jump back", CODE(NOP NOP JMP "\xfb"), 0, 3, EM_X86_64, .is_known = true,
		 .from_mark = true, .n_jumps = 1, .jumps = {6}},
		{"a return between", CODE(JE "\4" NOP RET NOP NOP), 2, 9, EM_X86_64,
		 .is_known = true, .n_jumps = 1},
		{"a jump to before the return", CODE(JE "\0" NOP RET NOP NOP), 2, 9, EM_X86_64,
		 .is_known = true, .n_jumps = 0},
		{"a jump by a table", CODE(NOP NOP "\x43\xff\x24\xc8"), 0, 3, EM_X86_64,
		 .is_known = true, .from_mark = true, .n_jumps = 1, .jumps = {6}},
		{"a jump to a register", CODE(NOP NOP "\xff\xe0"), 0, 3, EM_X86_64,
		 .is_known = true, .from_mark = true},
		{"a jump to a variable", CODE(NOP NOP "\x41\xff\x65\x08"), 0, 3, EM_X86_64,
		 .is_known = true, .from_mark = true},
		{"too many jumps",
		 CODE(JE "\x20" JE "\x1e" JE "\x1c" JE "\x1a" JE "\x18" JE "\x16" JE "\x14" JE
			 "\x12" JE "\x10" JE "\x0e" JE "\x0c" JE "\x0a" JE "\x08" JE "\x06" JE
			 "\x04" JE "\x02" JE "\x00" NOP),
		 0, 34, EM_X86_64, .is_known = false},
		{"arm64", CODE(A64_NOP A64_NOP), 0, 4, EM_AARCH64, .is_known = true,
		 .from_mark = true},
		{"arm64, a caller", CODE(A64_NOP A64_BL A64_NOP), 0, 7, EM_AARCH64,
		 .is_known = true, .is_call = true, .from_mark = true},
		{"arm64, a jump", CODE(A64_CBZ_2 A64_NOP A64_NOP), 4, 8, EM_AARCH64,
		 .is_known = true, .from_mark = true, .n_jumps = 1, .jumps = {0}},
		{"arm64, a jump by a table", CODE(A64_NOP A64_NOP A64_INDEX A64_BR), 0, 4,
		 EM_AARCH64, .is_known = true, .from_mark = true, .n_jumps = 1, .jumps = {12}},
		{"arm64, a jump to a register", CODE(A64_NOP A64_NOP A64_BR), 0, 4, EM_AARCH64,
		 .is_known = true, .from_mark = true},
		{"arm64, behind constants", CODE(A64_POOL A64_NOP A64_NOP), 0, 8, EM_AARCH64,
		 .is_known = false},
#undef CODE
	};

	(void)state;
	for (size_t i = 0; i < array_size(way_rows); i++) {
		struct v8_ways got;

		row_begin(way_rows[i].name);
		assert_int_equal(v8_ways_find(way_rows[i].machine,
					      (const uint8_t *)way_rows[i].code, way_rows[i].n,
					      way_rows[i].mark, way_rows[i].at, &got),
				 way_rows[i].is_known);
		if (!way_rows[i].is_known)
			continue;
		assert_int_equal(got.is_call, way_rows[i].is_call);
		assert_int_equal(got.from_mark, way_rows[i].from_mark);
		assert_int_equal(got.n_jumps, way_rows[i].n_jumps);
		for (size_t k = 0; k < got.n_jumps && k < 2; k++)
			assert_int_equal(got.jumps[k], way_rows[i].jumps[k]);
	}
}

/* ---------------------------------------------------------------- baseline */

#define BYTES_OF(text) (const uint8_t *)(text), sizeof(text) - 1

static void baseline(void **state)
{
	/* a bytecode of number 4 has 2 bytes, with a prefix 3 and 5 more */
	static const uint8_t sizes[] = {0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 5};
	static const struct {
		const char *name;
		const uint8_t *table;
		size_t n;
		const uint8_t *bytecode;
		size_t n_bytecode;
		uint64_t distance;
		uint32_t offset;
	} baseline_rows[] = {
		{"no table", BYTES_OF(""), BYTES_OF("\4\0"), 0, UINT32_MAX},
		{"before the first", BYTES_OF("\4\1"), BYTES_OF("\4\0"), 3, UINT32_MAX},
		{"the first", BYTES_OF("\4\1"), BYTES_OF("\4\0"), 4, 0},
		{"behind the last", BYTES_OF("\4\1"), BYTES_OF("\4\0"), 5, UINT32_MAX},
		{"the second", BYTES_OF("\4\1\1"), BYTES_OF("\4\0\4\0"), 5, 2},
		{"without code", BYTES_OF("\4\0\1"), BYTES_OF("\4\0\4\0"), 4, 2},
		{"behind a prefix", BYTES_OF("\0\1\1"), BYTES_OF("\0\4\0\0\4\0"), 1, 4},
		{"behind the other prefix", BYTES_OF("\0\1\1"), BYTES_OF("\1\4\0\0\0\0\4\0"), 1, 6},
		{"a prefix of breakpoints", BYTES_OF("\0\1\1"), BYTES_OF("\3\4\0\0\0\0\4\0"), 1, 6},
		{"behind a cut prefix", BYTES_OF("\0\1\1"), BYTES_OF("\1"), 1, UINT32_MAX},
		{"behind an unknown bytecode", BYTES_OF("\0\1\1"), BYTES_OF("\5\0\4\0"), 1,
		 UINT32_MAX},
		{"a long length", BYTES_OF("\0\x80\1\1"), BYTES_OF("\4\0\4\0"), 128, 2},
		{"a length without its end", BYTES_OF("\4\x81"), BYTES_OF("\4\0"), 4, UINT32_MAX},
		{"a length of 32 bits", BYTES_OF("\4\x81\x80\x80\x80\x0f"), BYTES_OF("\4\0"), 4, 0},
		{"a length above 32 bits", BYTES_OF("\4\x81\x80\x80\x80\x10"), BYTES_OF("\4\0"), 4,
		 UINT32_MAX},
		{"an endless length", BYTES_OF("\xff\xff\xff\xff\xff\xff\1"), BYTES_OF("\4\0"), 4,
		 UINT32_MAX},
	};

	(void)state;
	for (size_t i = 0; i < array_size(baseline_rows); i++) {
		row_begin(baseline_rows[i].name);
		assert_int_equal(v8_baseline_offset(baseline_rows[i].table, baseline_rows[i].n,
						    baseline_rows[i].bytecode,
						    baseline_rows[i].n_bytecode, sizes, 5,
						    baseline_rows[i].distance),
				 baseline_rows[i].offset);
	}
}

/* ---------------------------------------------------------------- places */

static void places(void **state)
{
	static const struct {
		const char *name;
		const uint8_t *table;
		size_t n;
		size_t n_places;
		uint32_t at, line;
		int32_t shift;
	} place_rows[] = {
		{"no table", BYTES_OF(""), 0, 53, .line = 0},
		{"the entry", BYTES_OF("\0\x04"), 1, 52, .line = 1},
		{"the first bytecode", BYTES_OF("\x02\x04"), 1, 53, .line = 1},
		{"before the first bytecode", BYTES_OF("\x02\x04"), 1, 52, .line = 0},
		{"before the first", BYTES_OF("\x08\x04"), 1, 55, .line = 0},
		{"no statement", BYTES_OF("\x09\x04"), 1, 56, .line = 1},
		{"the second line", BYTES_OF("\0\x04\x08\x2c"), 2, 56, .line = 2},
		{"the same line", BYTES_OF("\0\x04\x08\x04"), 1, 56, .line = 1},
		{"no position", BYTES_OF("\0\0"), 0, 53, .line = 0},
		{"behind the last line", BYTES_OF("\0\x84\x40"), 0, 53, .line = 0},
		{"behind the known lines", BYTES_OF("\0\x04\x08\x80\x40"), 2, 57, .line = 0},
		{"a cut entry", BYTES_OF("\0\x04\x08"), 1, 56, .line = 1},
		{"a cut number", BYTES_OF("\0\x04\x88\x80"), 1, 56, .line = 1},
		{"an endless number", BYTES_OF("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		 0, 53, .line = 0},
		{"far away", BYTES_OF("\xff\xff\xff\xff\xff\xff\x7f\x04"), 0, 53, .line = 0},
		{"14: no statement", BYTES_OF("\0\x04\x10\x2c"), 2, 56, .line = 2, .shift = 1},
		{"14: a statement", BYTES_OF("\x02\x04\x12\x2c"), 2, 56, .line = 2, .shift = 1},
		{"14: before the second", BYTES_OF("\0\x04\x12\x2c"), 2, 55, .line = 1, .shift = 1},
		{"14: no statement, no flag", BYTES_OF("\0\x04\x11\x2c"), 2, 56, .line = 2,
		 .shift = 1},
	};
	static struct v8_place got[V8_PLACES_MAX];
	uint32_t ends[] = {9, 19};
	struct v8_lines lines = {.first = 1, .ends = ends, .n = 2};

	(void)state;
	for (size_t i = 0; i < array_size(place_rows); i++) {
		size_t n;

		row_begin(place_rows[i].name);
		n = v8_places_parse(place_rows[i].table, place_rows[i].n, place_rows[i].shift, 53,
				    &lines, got);
		assert_int_equal(n, place_rows[i].n_places);
		assert_int_equal(v8_places_find(got, n, place_rows[i].at), place_rows[i].line);
	}
	lines.from = 5; /* of a function that begins there */
	assert_int_equal(v8_lines_find(&lines, 4), 0);
	assert_int_equal(v8_lines_find(&lines, 5), 1);
	assert_int_equal(v8_lines_find(&lines, 10), 2);
	assert_int_equal(v8_lines_find(&lines, 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_types),	  cmocka_unit_test(processes),
		cmocka_unit_test(functions),	  cmocka_unit_test(ids),
		cmocka_unit_test(compiled),	  cmocka_unit_test(calls),
		cmocka_unit_test(strangers),	  cmocka_unit_test(ways),
		cmocka_unit_test(baseline),	  cmocka_unit_test(places),
		cmocka_unit_test(deoptimisation), cmocka_unit_test(safepoints),
		cmocka_unit_test(proofs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
