// SPDX-License-Identifier: Apache-2.0
/* The blocks of arm64's threads, where struct pthread is below the thread pointer. */
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "runtimes/python_block.h"
#include "runtimes/python_image.h"
#include "support/flatmemory.h"

#define BYTES 32768u

/* Of Debian 12's glibc. */
#define PTHREAD (FLATMEMORY_BASE + 4096)
#define SIZE	0x740
#define LIST	192
#define POINTER (PTHREAD + SIZE)
#define VECTOR	(FLATMEMORY_BASE + 16384)
#define OTHER	(FLATMEMORY_BASE + 20480) /* the list of another thread */

struct subject {
	uint8_t bytes[BYTES];
	struct flatmemory fm;
	struct python_block block;
};

static void put(struct subject *s, uint64_t addr, uint64_t word)
{
	memcpy(s->bytes + addr - FLATMEMORY_BASE, &word, sizeof(word));
}

static void subject_init(struct subject *s, uint64_t size)
{
	*s = (struct subject){.block = {.keys = {0}}};
	flatmemory_init(&s->fm, s->bytes, BYTES);
	put(s, PTHREAD + LIST, OTHER);
	put(s, PTHREAD + LIST + 8, OTHER);
	put(s, OTHER, PTHREAD + LIST);
	put(s, OTHER + 8, PTHREAD + LIST);
	put(s, PTHREAD + size, VECTOR);
	put(s, VECTOR - 16, 12); /* modules */
	put(s, VECTOR, 1);
	put(s, VECTOR + 16, PTHREAD + size + 16);
}

static int read_block(struct subject *s, uint64_t self)
{
	return python_block_read(&s->fm.memory, EM_AARCH64, self, &s->block);
}

/* Words are at the same distance from the thread pointer whatever the size of struct pthread. */
static void sizes(void **state)
{
	static const uint64_t rows[] = {0x6f0, 0x700, SIZE, 0xbf0};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;

		subject_init(&s, rows[i]);
		put(&s, PTHREAD + 280, 1234);
		put(&s, PTHREAD + rows[i] + 24, 5678);
		assert_int_equal(read_block(&s, PTHREAD), 0);
		assert_int_equal(s.block.words[PYTHON_BLOCK_BELOW - (rows[i] - 280) / 8], 1234);
		assert_int_equal(s.block.words[PYTHON_BLOCK_BELOW], VECTOR);
		assert_int_equal(s.block.words[PYTHON_BLOCK_BELOW + 3], 5678);
		assert_true(s.block.keys.first >= PYTHON_BLOCK_BELOW - rows[i] / 8);
		assert_int_equal(s.block.keys.limit, PYTHON_BLOCK_BELOW);
		assert_int_equal(s.block.variables.first, PYTHON_BLOCK_BELOW + 2);
		assert_int_equal(s.block.variables.limit, PYTHON_BLOCK_WORDS);
		assert_false(s.block.is_musl);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *what;
		uint64_t addr, word;
		int outcome;
	} rows[] = {
		{"as it is", VECTOR, 7, 0},
		{"a list that does not lead back", OTHER + 8, PTHREAD, PYTHON_UNREADABLE},
		{"a list to nowhere", PTHREAD + LIST, UINT64_MAX - 3, PYTHON_UNREADABLE},
		{"no vector", POINTER, 0, PYTHON_UNREADABLE},
		{"a vector nowhere", POINTER, UINT64_MAX - 7, PYTHON_UNREADABLE},
		{"a vector at an odd address", POINTER, VECTOR + 1, PYTHON_UNREADABLE},
		{"a vector of no modules", VECTOR - 16, 0, PYTHON_UNREADABLE},
		{"a vector of too many", VECTOR - 16, 1 << 17, PYTHON_UNREADABLE},
		{"variables before the pointer", VECTOR + 16, POINTER - 16, PYTHON_UNREADABLE},
		{"variables at the pointer", VECTOR + 16, POINTER, PYTHON_UNREADABLE},
		{"variables far away", VECTOR + 16, POINTER + (1 << 20), PYTHON_UNREADABLE},
		{"another vector before", PTHREAD + 0x600, OTHER, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct subject s;
		int r;

		subject_init(&s, SIZE);
		put(&s, rows[i].addr, rows[i].word);
		r = read_block(&s, PTHREAD);
		if (r != rows[i].outcome)
			fail_msg("%s: %s, not %s", rows[i].what, python_outcome_name(r),
				 python_outcome_name(rows[i].outcome));
		assert_true(s.fm.memory.n_calls < 300);
	}
}

/* Not aligned, not mapped, and a machine that podprof does not know. */
static void strangers(void **state)
{
	struct subject s;

	(void)state;
	subject_init(&s, SIZE);
	assert_int_equal(read_block(&s, PTHREAD + 8), PYTHON_UNREADABLE);
	assert_int_equal(read_block(&s, FLATMEMORY_BASE + 4 * BYTES), PYTHON_UNREADABLE);
	assert_int_equal(read_block(&s, 0), PYTHON_UNREADABLE);
	assert_int_equal(python_block_read(&s.fm.memory, EM_RISCV, PTHREAD, &s.block),
			 PYTHON_UNREADABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(refused),
		cmocka_unit_test(strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
