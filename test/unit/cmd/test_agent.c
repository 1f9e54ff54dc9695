// SPDX-License-Identifier: Apache-2.0
/* Settings with which the agent does not start: the reason is in the log. */
#include "support/test.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/tree.h"

struct start_row {
	const char *arguments; /* %s: an empty directory */
	const char *logged;
};

static const struct start_row start_rows[] = {
	{"--proc-root /nonexistent", "cannot open --proc-root: give a mounted procfs"},
	{"--proc-root %s", "why=\"no procfs is mounted there\""},
	{"--cgroupfs-root /nonexistent", "set --cgroupfs-root\" why=\"no such directory\""},
	{"--cgroupfs-root %s",
	 "set --cgroupfs-root\" why=\"no cgroup file system is mounted there\""},
};

/* An agent that does start ends at the address, which is none of this machine's. */
static void test_start(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(start_rows); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};
		char arguments[128], line[512];
		struct tree tree;

		row_begin(start_rows[i].arguments);
		tree_init(&tree);
		// NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): of the rows
		snprintf(arguments, sizeof(arguments), start_rows[i].arguments, tree.path);
		snprintf(line, sizeof(line),
			 "agent --cpu-rate 0 --metadata none --store-dir %s/store --listen "
			 "192.0.2.1:7070 %s",
			 tree.path, arguments);
		command_run(line, &run);
		assert_int_equal(run.status, CMD_FAILED);
		command_assert_has(&run.err, start_rows[i].logged);
		tree_deinit(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
