/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_RECORD_H
#define PODPROF_CMD_RECORD_H

/* 'podprof record': its options, and the command that it may run. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/labels.h"
#include "cmd/cmdline.h"
#include "shared/settings.h"

struct event;

/**
 * struct record_options - whose samples (one of @pids, @container, @all and @command), and how
 * @duration_ns: 0: until it is ended, or they have
 * @output:      NULL: a name is made up
 * @period:      0: the clock, at @rate_hz
 * @command:     ends with NULL; borrows from argv
 */
struct record_options {
	pid_t pids[CMDLINE_VALUES_MAX];
	size_t n_pids;
	const char *container;
	bool all;
	char **command;
	uint64_t duration_ns;
	const char *output;
	const struct event *event;
	unsigned int rate_hz;
	uint64_t period;
	double off_cpu; /* share of task switches; 0: none */
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool unsafe_kernel;
	struct labels tags;
	const char *proc_root;
};

void record_options_deinit(struct record_options *o);
/* @ret must be {0}; deinit it whatever comes. True to go on; else all is said and *@ret_exit is the
 * status to leave with. */
bool record_options_parse(int argc, char **argv, struct record_options *ret, int *ret_exit);

/**
 * struct record_child - the command: there from the beginning, running when it is let
 * @pid:    0: none, or it has been waited for
 * @go:     the end of a pipe on which it waits to run; -1 when it does
 * @failed: the end of a pipe where it says why it could not
 * @status: as of waitpid(), once it has ended
 */
struct record_child {
	pid_t pid;
	int go;
	int failed;
	bool ended;
	int status;
};

#define RECORD_CHILD_INIT               \
	{                               \
		.go = -1, .failed = -1, \
	}

/* Call before signals are blocked and threads are made. @quiet: its standard output is ours to
 * write on, and it gets standard error instead. 0 or -errno. */
int record_child_start(char **command, bool quiet, struct record_child *ret);
/* Let it run. 0, or -errno of execvp(). */
int record_child_go(struct record_child *child);
/* Whether it has ended; does not wait. */
bool record_child_ended(struct record_child *child);
/* If it was never let run it ends. Else it goes on, without us. */
void record_child_deinit(struct record_child *child);

#endif
