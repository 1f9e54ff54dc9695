/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_RECORD_H
#define PODPROF_CMD_RECORD_H

/* 'podprof record': its options, and the command it may run. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/labels.h"
#include "cmd/cmdline.h"
#include "shared/settings.h"

struct event;

/**
 * struct record_options - the target (one of @pids, @container, @all and @command) and the method
 * @duration_ns: 0: until a signal, or the end of the targets
 * @output:      NULL: a generated name
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
	bool thread_names;
	bool task_names;
	bool dwarf;
	enum settings_unwind unwind;
	bool unsafe_kernel;
	struct labels tags;
	struct cmdline_values debuginfod; /* URLs */
	const char *debuginfod_dir;
	const char *proc_root;
};

void record_options_deinit(struct record_options *o);
/* @ret must be {0}; the caller deinits it after every result. True to continue; otherwise the
 * message is printed and *@ret_exit is the exit status. */
bool record_options_parse(int argc, char **argv, struct record_options *ret, int *ret_exit);

/**
 * struct record_child - the command: its process exists from the start and runs after
 * record_child_go()
 * @pid:    0: none, or already reaped
 * @go:     the end of a pipe on which the child waits; -1 when it runs
 * @failed: the end of a pipe for the child's error
 * @status: as of waitpid(), after its end
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

/* Call before blocking signals and starting threads. @quiet: standard output is for the profile, so
 * the command gets standard error instead. 0 or -errno. */
int record_child_start(char **command, bool quiet, struct record_child *ret);
/* Let the command run. 0, or -errno of execvp(). */
int record_child_go(struct record_child *child);
/* Whether the command has ended; does not wait. */
bool record_child_ended(struct record_child *child);
/* A command that never ran ends. A running command continues without us. */
void record_child_deinit(struct record_child *child);

#endif
