/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_CMD_H
#define PODPROF_CMD_CMD_H

/* The subcommands: one file each, found by name in the table of cmd.c. */

enum cmd_exit {
	CMD_DONE = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,	 /* wrong usage */
	CMD_NOTHING = 3, /* nothing to profile */
};

/* Runs the subcommand that argv[1] names. Returns the exit status. */
int cmd_main(int argc, char **argv);

/* Each takes its own name as argv[0]. */
int cmd_doctor(int argc, char **argv);
int cmd_heap(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_agent(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* One line on stderr, "podprof: " before it: what failed, on what, why, what to do. */
void cmd_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Somebody else's text on stdout: what a terminal would obey becomes '?', in errors too. */
void cmd_print(const char *s);
/* A line of JSON on stdout. Takes @object, which may be NULL for want of memory. 0 or -ENOMEM. */
struct json_t;
int cmd_print_json(struct json_t *object);

#endif
