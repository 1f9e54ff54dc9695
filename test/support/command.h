/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_COMMAND_H
#define PODPROF_TEST_SUPPORT_COMMAND_H

#include "base/buf.h"

/* A podprof command, run in this process: exit status, standard output and error (never NULL). */
struct command_run {
	int status;
	struct buf out;
	struct buf err;
};

/* @line: the words after "podprof", without quotes. */
void command_run(const char *line, struct command_run *ret);
void command_run_deinit(struct command_run *run);

/* The output contains @want. */
void command_assert_has(const struct buf *printed, const char *want);
/* Exit status, and a part of each output; NULL: no output. */
void command_assert(const struct command_run *run, int status, const char *out, const char *err);
/* A failure with a single line that contains @says, and no other output. */
void command_assert_error(const struct command_run *run, int status, const char *says);

#endif
