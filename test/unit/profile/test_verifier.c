// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "profile/verifier.h"

struct insns_row {
	const char *name;
	const char *log;
	uint32_t want;
};

static const struct insns_row insns_rows[] = {
	{"as 6.18 writes it",
	 "verification time 23624 usec\nstack depth 88\nprocessed 13604 insns (limit 1000000) "
	 "max_states_per_insn 4 total_states 184 peak_states 132 mark_read 0\n",
	 13604},
	{"behind a complaint", "R1 invalid mem access 'inv'\nprocessed 7 insns (limit 1000000)\n",
	 7},
	{"the word elsewhere",
	 "BPF program is too large. Processed 1000001 insn\nprocessed 1000001 insns\n", 1000001},
	{"cut in front of the unit", "processed 13604", 0},
	{"another unit", "processed 13604 states\n", 0},
	{"no number", "processed insns\n", 0},
	{"more than 32 bits", "processed 4294967296 insns\n", 0},
	{"all 32 bits", "processed 4294967295 insns\n", 4294967295},
	{"nothing", "", 0},
};

static void test_insns(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(insns_rows); i++) {
		row_begin(insns_rows[i].name);
		assert_int_equal(verifier_insns(insns_rows[i].log), insns_rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
