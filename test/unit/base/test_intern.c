// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/arena.h"
#include "base/intern.h"

#define KEYS 20000u

/* A key of 4 to 40 bytes, the first of them those of @i. */
static size_t make_key(uint32_t i, char *ret)
{
	memset(ret, (int)i, 40);
	memcpy(ret, &i, sizeof(i));
	return 4 + i % 37;
}

static void test_numbers(void **state)
{
	_cleanup_(arena_deinit) struct arena arena;
	_cleanup_(intern_deinit) struct intern in = {0};
	static const void *copies[KEYS];
	char key[40];

	(void)state;
	arena_init(&arena, 16u << 20);
	for (uint32_t i = 0; i < KEYS; i++) {
		size_t n = make_key(i, key);

		assert_int_equal(intern_find(&in, key, n), 0);
		assert_int_equal(intern_add(&in, &arena, key, n, i + 1, &copies[i]), 0);
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		size_t n = make_key(i, key);

		assert_int_equal(intern_find(&in, key, n), i + 1);
		assert_memory_equal(copies[i], key, n);
		assert_int_equal(((const char *)copies[i])[n], 0);
		assert_int_equal((uintptr_t)copies[i] % 8, 0);
	}
	assert_int_equal(in.n, KEYS);
	assert_in_range(in.n_slots, 2 * KEYS, 4 * KEYS);
}

/* Keys are bytes: a NUL is one of them, and the length tells keys apart. */
static void test_bytes(void **state)
{
	static const char zeros[8];
	_cleanup_(arena_deinit) struct arena arena;
	_cleanup_(intern_deinit) struct intern in = {0};
	const void *copy;

	(void)state;
	arena_init(&arena, 1u << 20);
	for (uint32_t n = 0; n <= sizeof(zeros); n++)
		assert_int_equal(intern_add(&in, &arena, zeros, n, n + 1, &copy), 0);
	for (uint32_t n = 0; n <= sizeof(zeros); n++)
		assert_int_equal(intern_find(&in, zeros, n), n + 1);
}

/* Numbered from 0 on, each once: by what was found last, and by the table. */
static void test_texts(void **state)
{
	_cleanup_(arena_deinit) struct arena arena;
	_cleanup_(intern_texts_deinit) struct intern_texts texts = {0};
	const struct interned *text;
	char name[32];

	(void)state;
	arena_init(&arena, 1u << 20);
	for (unsigned int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 10 * INTERN_RECENT; i++)
			for (unsigned int again = 0; again < 2; again++) {
				int n = snprintf(name, sizeof(name), "function_%u", i);

				assert_int_equal(
					intern_text(&texts, &arena, name, (size_t)n, &text), 0);
				assert_int_equal(text->number, i);
				assert_string_equal(text->key, name);
				assert_int_equal(text->n, n);
			}
	/* a part of a text is another text */
	assert_int_equal(intern_text(&texts, &arena, "function_1", 9, &text), 0);
	assert_string_equal(text->key, "function_");
}

/* The arena's ceiling holds for the table as well, and all entries before it stay. */
static void test_ceiling(void **state)
{
	_cleanup_(arena_deinit) struct arena arena;
	_cleanup_(intern_deinit) struct intern in = {0};
	const void *copy;
	uint32_t n = 0;
	int r;

	(void)state;
	arena_init(&arena, 100000);
	while ((r = intern_add(&in, &arena, &n, sizeof(n), n + 1, &copy)) == 0)
		n++;
	assert_int_equal(r, ARENA_FULL);
	assert_in_range(arena.bytes, in.n_slots * sizeof(*in.slots) + n * sizeof(n), 100000);
	assert_in_range(n, 1000, 100000 / (sizeof(struct interned) + 8));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(intern_find(&in, &i, sizeof(i)), i + 1);
	assert_int_equal(intern_find(&in, &n, sizeof(n)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
