// SPDX-License-Identifier: Apache-2.0
/*
 * Excerpts of the small process of 3.12 that test_python_memory describes, as the walker makes
 * them: each row leaves something out, or breaks it.
 */
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "runtimes/excerpt.h"
#include "runtimes/python_code.h"
#include "runtimes/python_excerpt.h"
#include "support/flatmemory.h"

#define CORPUS	 "test/fuzz/runtimes/corpus/python_memory"
#define HEAD	 2 /* bytes of the fuzzer's own */
#define BYTES	 8192
#define CODE	 4480
#define FRAME	 5248
#define OWN	 5440
#define FILENAME 5632
#define NAME	 5760
#define TABLE	 5888
#define CHECK	 0x12345678u

struct subject {
	uint8_t bytes[BYTES]; /* of the process */
	struct python_image image;
	_Alignas(8) uint8_t excerpt[STACK_DUMP_EXCERPT_BYTES];
	size_t n;
};

static int setup(void **state)
{
	static struct subject s;
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(BYTES);

	s = (struct subject){.image = {.machine = EM_X86_64,
				       .runtime = FLATMEMORY_BASE,
				       .n_loops = 1,
				       .loops = {{0x100, 0x200}}}};
	assert_int_equal(root_open(CORPUS, &root), 0);
	assert_int_equal(root_read(&root, "3.12", &b), 0);
	memcpy(s.bytes, b.data + HEAD, b.len - HEAD);
	assert_true(python_layout_of_version(0x030c, &s.image.layout));
	*state = &s;
	return 0;
}

static void add(struct subject *s, uint64_t at, uint32_t what, const void *bytes, size_t n)
{
	const struct stack_dump_part part = {.at = at, .n = (__u32)n, .what = what};

	memcpy(s->excerpt + s->n, &part, sizeof(part));
	memcpy(s->excerpt + s->n + sizeof(part), bytes, n);
	s->n += sizeof(part) + ((n + 7) & ~(size_t)7);
}

/* @n bytes of the process. */
static void add_memory(struct subject *s, uint64_t at, size_t n)
{
	add(s, at, PYTHON_PART_MEMORY, s->bytes + at - FLATMEMORY_BASE, n);
}

static void add_frame(struct subject *s, uint64_t at, uint64_t code, uint8_t owner)
{
	const uint64_t words[PYTHON_FRAME_WORDS] = {0, code, 0, (uint64_t)owner << 48, CHECK};

	assert_int_equal(s->image.layout.process.frame_entry % 8, 6);
	add(s, at, PYTHON_PART_FRAME, words, sizeof(words));
}

static void add_thread(struct subject *s, int64_t tstate_at)
{
	const uint64_t words[PYTHON_THREAD_WORDS] = {FRAME, 0, 0};

	add(s, (uint64_t)tstate_at, PYTHON_PART_THREAD, words, sizeof(words));
}

/* ---------------------------------------------------------------- memory */

struct code_row {
	const char *name;
	size_t code, file, qualname, table; /* bytes of each that are there */
	int want;
	bool has_lines;
};

static const struct code_row code_rows[] = {
	{"all", 144, 96, 96, 96, 0, true},
	{"the table's head alone", 144, 96, 96, 32, 0, false},
	{"no table", 144, 96, 96, 0, PYTHON_UNREADABLE, false},
	{"no file", 144, 0, 96, 96, PYTHON_UNREADABLE, false},
	{"no name", 144, 96, 0, 96, PYTHON_UNREADABLE, false},
	{"a name without its end", 144, 96, 41, 96, PYTHON_UNREADABLE, false},
	{"no code object", 0, 96, 96, 96, PYTHON_UNREADABLE, false},
	{"a code object without its last word", 136, 96, 96, 96, PYTHON_UNREADABLE, false},
};

static void test_code(void **state)
{
	struct subject *s = *state;
	struct python_code truth = {0};
	struct flatmemory fm;

	flatmemory_init(&fm, s->bytes, BYTES);
	assert_int_equal(python_code_read(&fm.memory, &s->image.layout, CODE, NULL, &truth), 0);
	for (size_t i = 0; i < array_size(code_rows); i++) {
		const struct code_row *row = &code_rows[i];
		struct python_code code = {0};
		struct excerpt e;

		row_begin(row->name);
		s->n = 0;
		add_thread(s, 792);
		add_frame(s, FRAME, CODE, 0);
		add_memory(s, CODE, row->code);
		add_memory(s, NAME, row->qualname);
		add_memory(s, FILENAME, row->file);
		add_memory(s, TABLE, row->table);
		excerpt_init(&e, s->excerpt, s->n, PYTHON_PART_MEMORY);
		assert_int_equal(e.n, 4);
		assert_int_equal(python_code_read(&e.memory, &s->image.layout, CODE, NULL, &code),
				 row->want);
		if (!row->want) {
			assert_string_equal(code.name, truth.name);
			assert_string_equal(code.file, truth.file);
			assert_int_equal(code.first_line, truth.first_line);
			assert_int_equal(python_code_line(&code, 0),
					 row->has_lines ? python_code_line(&truth, 0) : 0);
		}
		python_code_deinit(&code);
	}
	python_code_deinit(&truth);
}

/* A part that goes beyond the end, or a head without room, ends the list. */
static void test_malformed(void **state)
{
	struct subject *s = *state;
	struct excerpt e;

	s->n = 0;
	add_memory(s, CODE, 8);
	add_memory(s, NAME, 16);
	excerpt_init(&e, s->excerpt, s->n, PYTHON_PART_MEMORY);
	assert_int_equal(e.n, 2);
	excerpt_init(&e, s->excerpt, s->n - 8, PYTHON_PART_MEMORY);
	assert_int_equal(e.n, 1);
	excerpt_init(&e, s->excerpt, 24 + 8, PYTHON_PART_MEMORY);
	assert_int_equal(e.n, 1);
	excerpt_init(&e, s->excerpt, s->n, PYTHON_PART_FRAME);
	assert_int_equal(e.n, 0);
	excerpt_init(&e, s->excerpt, 0, PYTHON_PART_MEMORY);
	assert_int_equal(e.n, 0);
	((struct stack_dump_part *)(void *)s->excerpt)->n = UINT32_MAX;
	excerpt_init(&e, s->excerpt, s->n, PYTHON_PART_MEMORY);
	assert_int_equal(e.n, 0);
}

/* ---------------------------------------------------------------- the process */

static void test_target(void **state)
{
	struct subject *s = *state;
	static struct python_target target;
	uint64_t words[2], at = 0;

	s->n = 0;
	add_frame(s, FRAME, CODE, 0);
	assert_false(python_excerpt_target(&s->image, 0x7000, s->excerpt, s->n, &target));
	add_thread(s, -64);
	add_frame(s, OWN, 0, PYTHON_OWNER_LOOP);
	add_frame(s, FRAME + 128, CODE + 512, 1);
	assert_true(python_excerpt_target(&s->image, 0x7000, s->excerpt, s->n, &target));
	assert_int_equal(target.process.way.at, -64);
	assert_int_equal(target.process.loops[0][0], 0x7100);
	assert_int_equal(target.process.loops[0][1], 0x7200);
	assert_int_equal(target.process.loops[1][1], 0);
	assert_int_equal(target.bias, 0x7000);
	assert_true(python_excerpt_next(&target, s->excerpt, s->n, &at, words));
	assert_int_equal(words[0], CODE);
	assert_int_equal(words[1], (uint64_t)CHECK << 32);
	assert_true(python_excerpt_next(&target, s->excerpt, s->n, &at, words));
	assert_int_equal(words[0], CODE + 512);
	assert_false(python_excerpt_next(&target, s->excerpt, s->n, &at, words));
}

struct exe_row {
	const char *name;
	uint16_t version;
	uint16_t machine;
	struct python_way known; /* 0: no process is known */
	bool want;
	struct python_way ways[PYTHON_WAYS_MAX];
};

#define KEY(offset)          \
	{                    \
		.at = offset \
	}
#define ARRAY(k)                                          \
	{                                                 \
		.at = 128, .in_array = 1, .slot = 8 * (k) \
	}
#define VARIABLE          \
	{                 \
		.at = -64 \
	}
#define NOT_KNOWN       \
	{               \
		.at = 0 \
	}
#define ANOTHER_ARRAY                               \
	{                                           \
		.at = 136, .in_array = 1, .slot = 8 \
	}
#define ALL   KEY(792), KEY(808), ARRAY(0), ARRAY(1), KEY(824)
#define ARM64 KEY(280), KEY(296), KEY(312)

static const struct exe_row exe_rows[] = {
	/* clang-format off */
	{"the first keys", 0x030b, EM_X86_64, NOT_KNOWN, true, {ALL}},
	{"another key", 0x030b, EM_X86_64, KEY(904), true, {KEY(904), ALL}},
	{"a known key", 0x030b, EM_X86_64, KEY(808), true,
	 {KEY(808), KEY(792), ARRAY(0), ARRAY(1), KEY(824)}},
	{"a known key of musl", 0x030b, EM_X86_64, ARRAY(1), true,
	 {ARRAY(1), KEY(792), KEY(808), ARRAY(0), KEY(824)}},
	{"another array", 0x030b, EM_X86_64, ANOTHER_ARRAY, true, {ANOTHER_ARRAY, ALL}},
	{"a variable, not known", 0x030f, EM_X86_64, NOT_KNOWN, false, {NOT_KNOWN}},
	{"a known variable", 0x030f, EM_X86_64, VARIABLE, true, {VARIABLE}},
	{"the first keys of arm64", 0x030b, EM_AARCH64, NOT_KNOWN, true, {ARM64}},
	{"a known key of arm64", 0x030b, EM_AARCH64, KEY(-1560), true, {KEY(-1560), ARM64}},
	{"a variable of arm64, not known", 0x030f, EM_AARCH64, NOT_KNOWN, false, {NOT_KNOWN}},
	{"a known variable of arm64", 0x030f, EM_AARCH64, KEY(64), true, {KEY(64)}},
	{"another machine", 0x030b, EM_RISCV, NOT_KNOWN, false, {NOT_KNOWN}},
	/* clang-format on */
};

static void test_exe(void **state)
{
	struct subject *s = *state;
	static struct python_target known;

	for (size_t i = 0; i < array_size(exe_rows); i++) {
		const struct exe_row *row = &exe_rows[i];
		struct python_image image = s->image;
		struct python_exe exe;

		row_begin(row->name);
		image.machine = row->machine;
		image.layout.version = row->version;
		known.process.way = row->known;
		assert_int_equal(python_excerpt_exe(&image, row->known.at ? &known : NULL, &exe),
				 row->want);
		if (!row->want)
			continue;
		assert_memory_equal(exe.ways, row->ways, sizeof(row->ways));
		assert_int_equal(exe.n_known, row->known.at != 0);
		assert_int_equal(exe.thread_id, s->image.layout.thread_id);
		assert_int_equal(exe.string_data, s->image.layout.string_wide);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_code, setup),
		cmocka_unit_test_setup(test_malformed, setup),
		cmocka_unit_test_setup(test_target, setup),
		cmocka_unit_test_setup(test_exe, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
