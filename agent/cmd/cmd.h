/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_CMD_H
#define PODPROF_CMD_CMD_H

/* The subcommands: one file each, found by name in the table of cmd.c. */

#include <stdint.h>

#include "base/nsec.h"

enum cmd_exit {
	CMD_DONE = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,	 /* wrong usage */
	CMD_NOTHING = 3, /* nothing to profile */
};

/* Runs the subcommand argv[1]. Returns the exit status. */
int cmd_main(int argc, char **argv);

/* Each function takes the subcommand's name as argv[0]. */
int cmd_doctor(int argc, char **argv);
int cmd_heap(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_agent(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* One line on stderr with the prefix "podprof: ": the failed action, its object, the reason, the
 * remedy. */
void cmd_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From SIGINT or SIGTERM to the end of a command that only reads. Reached: its working process is
 * killed. */
#define CMD_INTERRUPTED_NS NSEC_PER_SEC
/* Runs @run in a child process (base/supervise.h), because a thread in a file system without an
 * answer cannot be ended: it stays behind, and the command ends. @name: the command, for that
 * message. @grace_ns: from SIGINT or SIGTERM to the end by force; 0: no limit. Returns the exit
 * status. */
int cmd_run_apart(const char *name, int (*run)(void *ctx), void *ctx, uint64_t grace_ns);
/* Prints foreign text on stdout with control characters replaced by '?', also in errors. */
void cmd_print(const char *s);
/* Prints a line of JSON on stdout, or indented lines. Control characters are escaped, also those
 * above ASCII. Takes @object, which may be NULL after a lack of memory. 0 or -ENOMEM. */
struct json_t;
int cmd_print_json(struct json_t *object);
int cmd_print_json_tree(struct json_t *object);

#endif
