/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_OUTPUT_H
#define PODPROF_CMD_OUTPUT_H

/* The output file of a command: opened before the work begins, so that problems appear early, and
 * written when the profile is complete. */

#include <stdbool.h>
#include <stddef.h>

/**
 * struct output
 * @name:    in the user's spelling; "-" is standard output; borrowed
 * @fd:      -1 while closed
 * @created: the file is new; removed again if nothing is written
 */
struct output {
	const char *name;
	int fd;
	bool created;
};

#define OUTPUT_INIT      \
	{                \
		.fd = -1 \
	}

/* The file's old contents stay until output_write(). CMD_DONE, or CMD_FAILED after a message with
 * @command. */
int output_open(const char *command, const char *name, struct output *ret);
/* Write all @n bytes and close. CMD_DONE, or CMD_FAILED after a message. */
int output_write(const char *command, struct output *o, const char *data, size_t n);
void output_deinit(struct output *o);

#endif
