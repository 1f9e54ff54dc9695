// SPDX-License-Identifier: Apache-2.0
/* Trails: a walk's sets in order, up to the limit, and any bytes in a trail. Stacks of walks with
 * trails are in test_walkstep, test_stacks and others: test/support/hostwalk.c has one. */
#include "support/test.h"

#include <string.h>

#include "lib/table_host.h"
#include "lib/trail.bpf.h"

/* Note @n sets, the numbers from @first on. */
static void walk(struct trail *trail, uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		trail_note(trail, i, (first + i) % MEMO_SETS);
	trail_end(trail, n);
}

static const struct {
	const char *name;
	uint64_t before; /* sets of the walk before */
	uint64_t n;
	uint64_t followed;
} rows[] = {
	{"no walk yet", 0, 0, 0},
	{"a set", 0, 1, 1},
	{"shorter than before", 30, 20, 20},
	{"none after some", 30, 0, 0},
	{"one below the limit", 0, TRAIL_SETS - 1, TRAIL_SETS - 1},
	{"the limit", 0, TRAIL_SETS, TRAIL_SETS},
	{"above the limit", 0, TRAIL_SETS + 1, TRAIL_SETS},
	{"the deepest stack", 3, 512, TRAIL_SETS},
	{"one below, after the limit", TRAIL_SETS, TRAIL_SETS - 1, TRAIL_SETS - 1},
};

static void test_walks(void **state)
{
	static const struct memo memo;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct trail trail = {{0}};
		const uint64_t first = MEMO_SETS - 10;

		walk(&trail, 5, rows[i].before);
		walk(&trail, first, rows[i].n);
		if (trail_follow(&trail, &memo) != rows[i].followed)
			fail_msg("%s: %d sets", rows[i].name, (int)trail_follow(&trail, &memo));
		for (uint64_t k = 0; k < rows[i].followed; k++)
			if (trail.sets[k] != (first + k) % MEMO_SETS + 1)
				fail_msg("%s: set %d", rows[i].name, (int)k);
	}
}

/* Every set is reached, and nothing behind the last: the sanitizer watches the memo's bounds. */
static void test_bytes(void **state)
{
	static const struct memo memo;
	struct trail trail;

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		memset(&trail, byte, sizeof(trail));
		assert_int_equal(trail_follow(&trail, &memo),
				 byte >= 1 && byte <= MEMO_SETS ? TRAIL_SETS : 0);
	}
}

/* The numbers noted are those of the sets that a lookup reads. */
static void test_number(void **state)
{
	static struct memo memo;

	(void)state;
	for (uint64_t key = 1; key < 1ull << 40; key = key * 3 + 1)
		assert_true(memo_set(&memo, key) == &memo.sets[memo_set_number(key)]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
