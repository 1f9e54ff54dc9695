/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_CMDLINE_H
#define PODPROF_CMD_CMDLINE_H

/*
 * What the subcommands that are run by hand have in common: options, their errors in one wording,
 * and how a command ends. (The agent's settings are config/option.h's: they come from a file and
 * the environment, too.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct root;

/* Values of an option that may stand more than once; one more is wrong usage. Reached: wrong usage.
 */
#define CMDLINE_VALUES_MAX 64

struct cmdline_values {
	const char *items[CMDLINE_VALUES_MAX];
	size_t n;
};

/**
 * struct cmdline_option - an option, and where its value goes
 * @name:    without dashes
 * @letter:  its short form; 0: it has none
 * @given:   set to true where the option stands
 *
 * It takes a value if one of the other places is there. A place is not touched without the option.
 */
struct cmdline_option {
	const char *name;
	char letter;
	bool *given;
	const char **string;
	uint64_t *number;
	uint64_t *address; /* in hex, with "0x" or without */
	pid_t *pid;
	struct cmdline_values *values;
};

/**
 * struct cmdline - one subcommand's command line
 * @command:    its name in messages, as in "inspect maps"
 * @help:       what --help, which each of them has, prints
 * @runs:       its operands are another program's command line, which begins behind "--"
 * @operands:   set by cmdline_parse(): what is no option, in order; borrows from argv
 */
struct cmdline {
	const char *command;
	const char *help;
	const struct cmdline_option *options;
	size_t n_options;
	bool runs;
	char **operands;
	int n_operands;
};

/* Options a command may have, --help left aside. */
#define CMDLINE_OPTIONS 30

/* True to go on; else all is said. *@ret_exit is the status so far: to go on with, or to leave
 * with. */
bool cmdline_parse(struct cmdline *c, int argc, char **argv, int *ret_exit);

/* "COMMAND: MESSAGE; see 'podprof COMMAND --help'" as an error. Returns CMD_USAGE. */
int cmdline_usage(const struct cmdline *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A number above 0 that a pid_t holds. */
bool cmdline_pid(const char *s, pid_t *ret);

/* "true" or "1", "false" or "0". */
bool cmdline_bool(const char *s, bool *ret);

/* The agent's settings, for a command that goes by them: its flags, variables and file
 * (config_load()). True to go on; else all is said, and *@ret_exit is the status to leave with:
 * what @help, which prints the command's own, returns where --help stands. */
bool cmdline_settings(const char *command, int argc, char **argv, int (*help)(void),
		      struct config *ret, int *ret_exit);

/* The procfs that a command's --proc-root names. CMD_DONE or CMD_FAILED, said. */
int cmdline_open_proc(const char *command, const char *path, struct root *ret);

/* What has been printed is written, or that is the error. @status: so far; returns that or worse.
 */
int cmdline_finish(const char *command, int status);

#endif
