// SPDX-License-Identifier: Apache-2.0
/* Processes with V8 that contradict themselves. Each row changes words of a small process
 * (support/v8image.h). */
#include "support/test.h"

#include <string.h>

#include "runtimes/v8_function.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_process.h"
#include "runtimes/v8_string.h"
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

static uint64_t check_of(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t words[] = {a, b, c};
	uint64_t h = 0;

	for (int i = 0; i < 3; i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h >> 32 << 32;
}

static int read_with(struct subject *s, struct v8_function *ret)
{
	const uint64_t words[2] = {V8IMAGE_SHARED,
				   check_of(V8IMAGE_SCOPE + 1, V8IMAGE_SCRIPT + 1, 7)};

	return v8_function_read(&s->fm.memory, &s->target, words, ret);
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

static void functions(void **state)
{
	struct subject s;

	(void)state;
	for (size_t i = 0; i < array_size(function_rows); i++) {
		_cleanup_(v8_function_deinit) struct v8_function f = {0};
		const struct function_row *row = &function_rows[i];

		row_begin(row->what);
		subject_init(&s);
		for (int k = 0; k < 2 && row->addr[k]; k++)
			put(&s, row->addr[k], row->word[k]);
		assert_int_equal(read_with(&s, &f), row->outcome);
		assert_true(!row->outcome || !f.places);
		if (!row->name)
			continue;
		assert_string_equal(f.name, row->name);
		assert_string_equal(f.file, row->file);
		assert_int_equal(f.first_line, row->first_line);
		/* the second bytecode */
		assert_int_equal(v8_function_line(&f, 53 + 4), row->line);
		assert_int_equal(v8_function_line(&f, 0), 0);
	}
}

/* ---------------------------------------------------------------- places */

#define BYTES_OF(text) (const uint8_t *)(text), sizeof(text) - 1

static void places(void **state)
{
	static const struct {
		const char *name;
		const uint8_t *table;
		size_t n;
		size_t n_places;
		uint32_t at, line;
	} place_rows[] = {
		{"no table", BYTES_OF(""), 0, 53, 0},
		{"the first", BYTES_OF("\0\x04"), 1, 53, 1},
		{"before the first", BYTES_OF("\x08\x04"), 1, 56, 0},
		{"no statement", BYTES_OF("\x09\x04"), 1, 58, 1},
		{"the second line", BYTES_OF("\0\x04\x08\x2c"), 2, 57, 2},
		{"the same line", BYTES_OF("\0\x04\x08\x04"), 1, 57, 1},
		{"no position", BYTES_OF("\0\0"), 0, 53, 0},
		{"behind the last line", BYTES_OF("\0\x84\x40"), 0, 53, 0},
		{"behind the known lines", BYTES_OF("\0\x04\x08\x80\x40"), 2, 57, 0},
		{"a cut entry", BYTES_OF("\0\x04\x08"), 1, 57, 1},
		{"a cut number", BYTES_OF("\0\x04\x88\x80"), 1, 57, 1},
		{"an endless number", BYTES_OF("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		 0, 53, 0},
		{"far away", BYTES_OF("\xff\xff\xff\xff\xff\xff\x7f\x04"), 0, 53, 0},
	};
	static struct v8_place got[V8_PLACES_MAX];
	uint32_t ends[] = {9, 19};
	const struct v8_lines lines = {.first = 1, .ends = ends, .n = 2};

	(void)state;
	for (size_t i = 0; i < array_size(place_rows); i++) {
		size_t n;

		row_begin(place_rows[i].name);
		n = v8_places_parse(place_rows[i].table, place_rows[i].n, 53, &lines, got);
		assert_int_equal(n, place_rows[i].n_places);
		assert_int_equal(v8_places_find(got, n, place_rows[i].at), place_rows[i].line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes),
		cmocka_unit_test(functions),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
