/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_OUTPUT_H
#define PODPROF_CMD_OUTPUT_H

/* The file that a command writes its profile to: opened before the work begins, so that what is
 * wrong with it is known before and not after, and written when all of it is there. */

#include <stdbool.h>
#include <stddef.h>

/**
 * struct output
 * @name:    as the user gave it; "-" is standard output; borrowed
 * @fd:      -1 while it is not open
 * @created: the file was not there before; it goes again if nothing is written
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

/* What was in the file stays until output_write(). CMD_DONE or CMD_FAILED, said as @command. */
int output_open(const char *command, const char *name, struct output *ret);
/* All of it, and close. CMD_DONE or CMD_FAILED, said. */
int output_write(const char *command, struct output *o, const char *data, size_t n);
void output_deinit(struct output *o);

#endif
