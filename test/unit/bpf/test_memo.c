// SPDX-License-Identifier: Apache-2.0
/* The memo of rules: packed rules at their limits, and the sets. A memo never gives another rule
 * than the table. */
#include "support/test.h"

#include <string.h>

#include "lib/memo.bpf.h"
#include "lib/table_host.h"

struct row {
	const char *name;
	struct unwind_rule rule;
	bool fits;
};

#define SP(...)                                                                            \
	{                                                                                  \
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_X86_SP, .ra_off = -8, __VA_ARGS__ \
	}

static const struct row rows[] = {
	{"gap", {0}, true},
	{"last cfa", {.cfa = UNWIND_CFA_MAX - 1}, true},
	{"last fp", SP(.fp = UNWIND_FP_MAX - 1), true},
	{"last ra", SP(.ra = UNWIND_RA_MAX - 1), true},
	{"last register", {.cfa = UNWIND_CFA_REG, .cfa_reg = 255}, true},
	{"frame of 64 KiB - 1", SP(.cfa_off = 65535), true},
	{"frame of 64 KiB", SP(.cfa_off = 65536), false},
	{"cfa lowest", SP(.cfa_off = -65536), true},
	{"cfa too low", SP(.cfa_off = -65537), false},
	{"cfa's last bit", SP(.cfa_off = INT32_MIN), false},
	{"fp highest", SP(.fp = UNWIND_FP_AT_CFA, .fp_off = INT16_MAX), true},
	{"fp too high", SP(.fp = UNWIND_FP_AT_CFA, .fp_off = INT16_MAX + 1), false},
	{"fp lowest", SP(.fp = UNWIND_FP_AT_CFA, .fp_off = INT16_MIN), true},
	{"fp too low", SP(.fp = UNWIND_FP_AT_CFA, .fp_off = INT16_MIN - 1), false},
	{"ra highest", {.cfa = UNWIND_CFA_REG, .ra_off = INT16_MAX}, true},
	{"ra lowest", {.cfa = UNWIND_CFA_REG, .ra_off = INT16_MIN}, true},
	{"addition", {.cfa = UNWIND_CFA_DEREF, .cfa_add = 1}, false},
	{"all negative", {.cfa = UNWIND_CFA_REG, .cfa_off = -1, .fp_off = -1, .ra_off = -1}, true},
};

static void test_packed(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct unwind_rule got;

		memset(&got, 0x5a, sizeof(got));
		if (memo_fits(&row->rule) != row->fits)
			fail_msg("%s: fits", row->name);
		if (!row->fits)
			continue;
		if (!memo_pack(&row->rule))
			fail_msg("%s: no word", row->name);
		memo_unpack(memo_pack(&row->rule), &got);
		if (memcmp(&got, &row->rule, sizeof(got)) != 0)
			fail_msg("%s: another rule", row->name);
	}
}

static bool knows(struct memo *memo, uint64_t key, const struct unwind_rule *rule)
{
	return memo_known(memo_set(memo, key), key) == memo_pack(rule);
}

/* Keys of all sets: none is outside the memo, and each set takes four. */
static void test_sets(void **state)
{
	static struct memo memo;
	static uint32_t n_of[MEMO_SETS];
	uint32_t n_full = 0;

	(void)state;
	for (uint64_t vaddr = 0; n_full < MEMO_SETS; vaddr += 5) {
		const struct table_exe exe = {.version = 1 + vaddr % 3};
		const uint64_t key = memo_key(&exe, vaddr);
		const struct unwind_rule rule = SP(.cfa_off = (int32_t)(vaddr & 0xfff8));
		struct memo_set *set = memo_set(&memo, key);
		const size_t number = (size_t)(set - memo.sets);

		assert_true(number < MEMO_SETS);
		if (n_of[number] == MEMO_WAYS)
			continue;
		assert_true(memo_known(set, key) == 0);
		memo_add(set, key, &rule);
		assert_true(knows(&memo, key, &rule));
		n_full += ++n_of[number] == MEMO_WAYS;
	}
	for (size_t i = 0; i < MEMO_SETS; i++)
		for (size_t k = 0; k < MEMO_WAYS; k++)
			assert_true(memo_set(&memo, memo.sets[i].entries[k].key) == &memo.sets[i]);
}

/* The oldest leaves a full set, and no other. */
static void test_oldest(void **state)
{
	static struct memo memo;
	const struct unwind_rule rule = SP(.cfa_off = 16);
	uint64_t keys[MEMO_WAYS + 2];
	size_t n = 0;

	(void)state;
	for (uint64_t key = 1ull << 32; n < array_size(keys); key++)
		if (memo_set(&memo, key) == &memo.sets[7])
			keys[n++] = key;
	for (size_t i = 0; i < n; i++) {
		memo_add(memo_set(&memo, keys[i]), keys[i], &rule);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(knows(&memo, keys[k], &rule), k <= i && k + MEMO_WAYS > i);
	}
}

/* A table without blocks: nothing is found, and nothing is added. */
static void test_outside(void **state)
{
	static struct memo memo;
	static const struct memo empty;
	static const struct table_exe exe = {.version = 1};
	static const struct table_space space;
	struct unwind_rule rule;

	(void)state;
	assert_int_equal(memo_find(&memo, &space, &exe, 0x1000, &rule), TABLE_OUTSIDE);
	assert_memory_equal(&memo, &empty, sizeof(memo));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
