/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_CMDLINE_H
#define PODPROF_CMD_CMDLINE_H

/*
 * Shared code of the interactive subcommands: options, uniform error messages, and the end of a
 * command. (The agent's settings are in config/option.h, because a file and the environment also
 * set them.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct root;

/* Values of a repeatable option. Reached: wrong usage. */
#define CMDLINE_VALUES_MAX 64

struct cmdline_values {
	const char *items[CMDLINE_VALUES_MAX];
	size_t n;
};

/**
 * struct cmdline_option - an option and the places of the value
 * @name:    without dashes
 * @letter:  short form; 0: none
 * @given:   set to true if the option is present
 *
 * An option with one of the other places takes a value. An absent option changes no place.
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
 * struct cmdline - a subcommand's command line
 * @command:    name in messages, as in "inspect maps"
 * @help:       prints the text of --help; every command has --help
 * @runs:       the operands are another program's command line, which begins behind "--"
 * @operands:   set by cmdline_parse(): arguments other than options, in order; borrows from argv
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

/* Maximum options of a command, without --help. */
#define CMDLINE_OPTIONS 30

/* True to continue; otherwise the message is printed. *@ret_exit is the exit status so far. */
bool cmdline_parse(struct cmdline *c, int argc, char **argv, int *ret_exit);

/* "COMMAND: MESSAGE; see 'podprof COMMAND --help'" as an error. Returns CMD_USAGE. */
int cmdline_usage(const struct cmdline *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A number above 0 within the range of pid_t. */
bool cmdline_pid(const char *s, pid_t *ret);

/* "true" or "1", "false" or "0". */
bool cmdline_bool(const char *s, bool *ret);

/* Loads the agent's settings for a command that depends on the agent's flags, variables and file
 * (config_load()). True to continue. Otherwise the message is printed, and *@ret_exit is the exit
 * status; for --help this is the result of @help, which prints the command's own options. */
bool cmdline_settings(const char *command, int argc, char **argv, int (*help)(void),
		      struct config *ret, int *ret_exit);

/* Opens the procfs of a command's --proc-root. CMD_DONE, or CMD_FAILED after a message. */
int cmdline_open_proc(const char *command, const char *path, struct root *ret);

/* Opens the ELF file of a command line for reading. CMD_DONE, or CMD_FAILED after a message. */
int cmdline_open_elf(const char *command, const char *path, int *ret_fd);
/* The message for @path with an outcome or -errno of elffile_open(). Returns CMD_FAILED. */
int cmdline_not_elf(const char *command, const char *path, int outcome);

/* Flushes the output; a failure is an error. @status: the status so far; returns this status or a
 * worse one. */
int cmdline_finish(const char *command, int status);

#endif
