// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "export/spool_index.h"

/* The profiles before a damage keep the acknowledgement, although the acknowledgement also names
 * later profiles. */
static void test_acknowledged(void **state)
{
	static const struct spool_place place = {.off = SPOOL_MAGIC_LEN, .pprof_len = 1, .live = 1};
	static const struct {
		const char *name;
		struct spool_ack ack;
		bool known;
		size_t n_left;
	} rows[] = {
		{"all", {0, 1, 0, 3}, true, 0},
		{"one behind the last", {0, 1, 0, 4}, true, 0},
		{"from the last on", {0, 1, 2, UINT32_MAX}, true, 2},
		{"behind the last", {0, 1, 3, 1}, false, 3},
		{"no such segment", {0, 2, 0, 1}, false, 3},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct spool_index x = {0};
		struct spool_segment *segment;

		row_begin(rows[i].name);
		assert_int_equal(spool_index_add_segment(&x, 1, &segment), 0);
		assert_int_equal(spool_index_reserve(segment, 3), 0);
		for (size_t k = 0; k < 3; k++)
			spool_index_add(&x, segment, &place, 0);
		assert_int_equal(spool_index_acknowledge(&x, &rows[i].ack, 0), rows[i].known);
		assert_int_equal(segment->shares[0].n_live, rows[i].n_left);
		assert_int_equal(segment->shares[0].n_unread, rows[i].n_left);
		spool_index_deinit(&x);
	}
}

/* A profile whose reading fails counts as unread again, for its destination only. */
static void test_unread(void **state)
{
	static const struct spool_place place = {
		.off = SPOOL_MAGIC_LEN, .pprof_len = 5, .delta_len = 3, .live = 3};
	struct spool_index x = {.deltas = 2};
	struct spool_segment *segment;

	(void)state;
	assert_int_equal(spool_index_add_segment(&x, 1, &segment), 0);
	assert_int_equal(spool_index_reserve(segment, 1), 0);
	spool_index_add(&x, segment, &place, 0);
	spool_index_read(&x, segment, 0, 1);
	assert_int_equal(segment->shares[1].n_unread, 0);
	spool_index_unread(&x, segment, 0, 1);
	assert_int_equal(segment->shares[0].n_unread, 1);
	assert_int_equal(segment->shares[0].unread_bytes, 5);
	assert_int_equal(segment->shares[1].n_unread, 1);
	assert_int_equal(segment->shares[1].unread_bytes, 3);
	assert_int_equal(segment->shares[1].n_live, 1);
	spool_index_deinit(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_acknowledged),
		cmocka_unit_test(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
