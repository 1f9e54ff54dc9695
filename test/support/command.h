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

/* @line: what comes behind "podprof", words without quotes. */
void command_run(const char *line, struct command_run *ret);
void command_run_deinit(struct command_run *run);

/* @want is somewhere in what was printed. */
void command_assert_has(const struct buf *printed, const char *want);
/* How it has ended, and what is somewhere in each of its outputs; NULL: there is none. */
void command_assert(const struct command_run *run, int status, const char *out, const char *err);
/* How it has failed: with one line in which @says is, and nothing else was printed. */
void command_assert_error(const struct command_run *run, int status, const char *says);

#endif
