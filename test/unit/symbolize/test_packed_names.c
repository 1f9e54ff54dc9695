// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/cleanup.h"
#include "support/allocfail.h"
#include "symbolize/packed_names.h"

static const char *const names[] = {
	"",
	"a",
	"_",
	"__",
	"7",
	"ext4_mark_inode_dirty",
	"ext4_mark_inode_dirty", /* again */
	"ext4_mark",
	"mark_ext4",
	"__x64_sys_read",
	"bpf_prog_6deef7357e7b4530_sd_fw_egress [bpf]",
	"x.isra.0",
	"trailing_",
	"two..dots",
	"_ZN4core3ptr13drop_in_placeE",
	"caf\xc3\xa9",
	"4lead",
};

static void test_names(void **state)
{
	uint32_t places[array_size(names)];
	struct packed_names p;
	char text[64];

	(void)state;
	packed_names_init(&p, 4096);
	for (size_t i = 0; i < array_size(names); i++)
		assert_int_equal(packed_names_add(&p, names[i], &places[i]), 0);
	for (int complete = 0; complete < 2; complete++) {
		for (size_t i = 0; i < array_size(names); i++) {
			row_begin(names[i]);
			packed_names_get(&p, places[i], text, sizeof(text));
			assert_string_equal(text, names[i]);
		}
		packed_names_complete(&p);
	}
	packed_names_deinit(&p);
}

/* More words than the first table and numbers of two and three bytes; each word is kept once. */
static void test_many_words(void **state)
{
	const uint32_t n = 20000;
	uint32_t *places = calloc(n, sizeof(*places));
	struct packed_names p;
	char text[32], want[32];
	size_t n_words;

	(void)state;
	assert_non_null(places);
	packed_names_init(&p, 1 << 20);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(want, sizeof(want), "word%u_x", i);
		assert_int_equal(packed_names_add(&p, want, &places[i]), 0);
	}
	n_words = p.n_words;
	assert_int_equal(n_words, n + 2);
	assert_int_equal(packed_names_add(&p, "word19999_x", &places[0]), 0);
	assert_int_equal(p.n_words, n_words);
	packed_names_complete(&p);
	for (uint32_t i = 1; i < n; i++) {
		snprintf(want, sizeof(want), "word%u_x", i);
		packed_names_get(&p, places[i], text, sizeof(text));
		assert_string_equal(text, want);
	}
	packed_names_get(&p, places[0], text, sizeof(text));
	assert_string_equal(text, "word19999_x");
	packed_names_deinit(&p);
	free(places);
}

/* A name is cut to the caller's room, at any byte of a word. */
static void test_cut(void **state)
{
	static const char name[] = "ext4_mark_inode";
	struct packed_names p;
	char text[sizeof(name) + 1];
	uint32_t place;

	(void)state;
	packed_names_init(&p, 4096);
	assert_int_equal(packed_names_add(&p, name, &place), 0);
	for (size_t size = 1; size <= sizeof(text); size++) {
		memset(text, 'z', sizeof(text));
		packed_names_get(&p, place, text, size);
		assert_int_equal(strlen(text), size - 1 < strlen(name) ? size - 1 : strlen(name));
		assert_memory_equal(text, name, strlen(text));
		assert_true(size == sizeof(text) || text[size] == 'z');
	}
	packed_names_deinit(&p);
}

/* A full list refuses a name, and keeps the others. */
static void test_full(void **state)
{
	struct packed_names p;
	uint32_t first, second = 77;
	char text[32];

	(void)state;
	packed_names_init(&p, 16);
	assert_int_equal(packed_names_add(&p, "a_b_c", &first), 0);
	assert_int_equal(packed_names_add(&p, "d_e_f_g_h_i_j_k_l", &second), BUF_FULL);
	assert_int_equal(second, 77);
	packed_names_get(&p, first, text, sizeof(text));
	assert_string_equal(text, "a_b_c");
	packed_names_deinit(&p);
}

static int pack_and_free(void *ctx)
{
	struct packed_names p;
	uint32_t place;
	int r = 0;

	(void)ctx;
	packed_names_init(&p, 1 << 20);
	for (size_t i = 0; !r && i < array_size(names); i++)
		r = packed_names_add(&p, names[i], &place);
	packed_names_complete(&p);
	packed_names_deinit(&p);
	return r;
}

static void test_out_of_memory(void **state)
{
	(void)state;
	allocfail_survive(pack_and_free, NULL); /* shrinking may fail */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	      cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_cut),	      cmocka_unit_test(test_full),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
