/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_INSPECT_H
#define PODPROF_CMD_INSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 'podprof inspect WHAT': podprof's view of a target. One file for each subcommand, found by name
 * in the table of inspect.c; argv[0] is the name. Returns the exit status (enum cmd_exit). */

int inspect_cgroup(int argc, char **argv);
int inspect_goruntime(int argc, char **argv);
int inspect_maps(int argc, char **argv);
int inspect_profile(int argc, char **argv);
int inspect_runtime(int argc, char **argv);
int inspect_symbols(int argc, char **argv);
int inspect_targets(int argc, char **argv);
int inspect_unwind(int argc, char **argv);

/* Options of 'inspect unwind --pid'. */
struct inspect_unwind_pid {
	pid_t pid;
	bool json;
	bool lookup; /* of @pc, instead of all */
	uint64_t pc;
	const char *proc_root;
};

int inspect_unwind_pid(const struct inspect_unwind_pid *o);

#endif
