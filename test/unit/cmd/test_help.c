// SPDX-License-Identifier: Apache-2.0
/* All ways to ask for a help text, and for the version. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"

static const struct help_row {
	const char *words[4]; /* behind the program */
	int status;
	const char *out; /* the beginning of standard output */
} rows[] = {
	{{"--help"}, CMD_DONE, "usage: podprof COMMAND"},
	{{"help"}, CMD_DONE, "usage: podprof COMMAND"},
	{{"record", "--help"}, CMD_DONE, "usage: podprof record"},
	{{"help", "record"}, CMD_DONE, "usage: podprof record"},
	{{"help", "heap"}, CMD_DONE, "usage: podprof heap"},
	{{"help", "doctor"}, CMD_DONE, "usage: podprof doctor"},
	{{"help", "agent"}, CMD_DONE, "usage: podprof agent"},
	{{"help", "version"}, CMD_DONE, "usage: podprof version"},
	{{"help", "inspect"}, CMD_DONE, "usage: podprof inspect WHAT"},
	{{"help", "inspect", "profile"}, CMD_DONE, "usage: podprof inspect profile"},
	{{"help", "help"}, CMD_DONE, "usage: podprof COMMAND"},
	{{"help", "--help"}, CMD_DONE, "usage: podprof COMMAND"},
	{{"help", "nothing"}, CMD_USAGE, ""},
	{{"help", "inspect", "nothing"}, CMD_USAGE, ""},
	{{"version"}, CMD_DONE, "podprof "},
	{{"--version"}, CMD_DONE, "podprof "},
	{{"version", "more"}, CMD_USAGE, ""},
	{{"nothing"}, CMD_USAGE, ""},
	{{NULL}, CMD_USAGE, ""},
};

/* The status; standard output is @ret. */
static int run(const char *const *words, char *ret, size_t size)
{
	char program[] = "podprof", text[4][16], *argv[6] = {program};
	FILE *out = tmpfile();
	int argc = 1, saved, status;
	size_t n;

	assert_non_null(out);
	for (; argc <= 4 && words[argc - 1]; argc++) {
		snprintf(text[argc - 1], sizeof(text[0]), "%s", words[argc - 1]);
		argv[argc] = text[argc - 1];
	}
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	assert_true(saved >= 0);
	assert_true(dup2(fileno(out), STDOUT_FILENO) >= 0);
	status = cmd_main(argc, argv);
	fflush(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	close(saved);
	rewind(out);
	n = fread(ret, 1, size - 1, out);
	ret[n] = '\0';
	fclose(out);
	return status;
}

static void test_help(void **state)
{
	char out[256];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct help_row *row = &rows[i];

		row_begin(row->words[1] ? row->words[1] : row->words[0] ? row->words[0] : "none");
		assert_int_equal(run(row->words, out, sizeof(out)), row->status);
		out[row->status == CMD_DONE ? strlen(row->out) : sizeof(out) - 1] = '\0';
		assert_string_equal(out, row->out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
