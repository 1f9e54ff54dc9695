// SPDX-License-Identifier: Apache-2.0
/* `podprof record` names a stripped program by the debug file of a server. */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nsec.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/debugserver.h"
#include "support/fixture.h"
#include "support/tree.h"

/* Only ends a hanging test. */
#define WAIT_SECONDS 300
#define LINE_BYTES   8192

static void shell(const char *format, const char *from, const char *to)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line), format, from, to);
	assert_int_equal(system(line), 0); // NOLINT(cert-env33-c)
}

static void record(const struct tree *t, struct command_run *ret)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line),
		 "record --debuginfod " DEBUGSERVER_URL
		 " --debuginfod-dir %s/cache --output %s/out.pb.gz -- %s/short 300",
		 t->path, t->path, t->path);
	command_run(line, ret);
	print_message("%s", ret->err.data);
	assert_int_equal(ret->status, CMD_DONE);
}

static bool is_named(const struct tree *t)
{
	_cleanup_(command_run_deinit) struct command_run run = {0};
	char line[LINE_BYTES];

	snprintf(line, sizeof(line), "inspect profile %s/out.pb.gz", t->path);
	command_run(line, &run);
	assert_int_equal(run.status, CMD_DONE);
	return strstr(run.out.data, "short_inner") != NULL;
}

static void test_names(void **state)
{
	_cleanup_(tree_deinit) struct tree files = {0}, t = {0};
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;
	char whole[FIXTURE_PATH_MAX];
	bool named = false;
	pid_t server;

	(void)state;
	debugserver_own_network();
	tree_init(&files);
	tree_init(&t);
	fixture_path("short", whole);
	shell("objcopy --only-keep-debug %s %s/short.debug", whole, files.path);
	shell("objcopy --strip-all %s %s/short", whole, t.path);
	server = debugserver_start(&files);
	while (!named) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		record(&t, &run);
		named = is_named(&t);
		command_assert_has(&run.err,
				   named ? "debug files: 1 downloaded" : "debug files: 0");
		debugserver_check(server);
		/* or "not found", by a server that still scans, would hold for an hour */
		(void)unlinkat(t.fd, "cache/servers", 0);
		assert_true(nsec_monotonic() < until);
	}
	debugserver_kill(server);
	{
		_cleanup_(command_run_deinit) struct command_run run = {0};

		record(&t, &run); /* the file is there from the last time */
		assert_true(is_named(&t));
		command_assert_has(&run.err, "debug files: 0 downloaded");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
