/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_DEBUGSERVERS_H
#define PODPROF_CMD_DEBUGSERVERS_H

/* Debug files from debuginfod servers for an interactive subcommand: --debuginfod URL, repeatable,
 * and --debuginfod-dir DIR. The files stay in a directory of the user's for the next time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"

struct cmdline_values;
struct debuginfod;

/* A command waits so long for debug files and then goes on without the others. */
#define DEBUGSERVERS_WAIT_NS   (60 * NSEC_PER_SEC)
/* Interval of looks at downloads. */
#define DEBUGSERVERS_LOOK_NS   (50 * NSEC_PER_MSEC)
/* Bytes of the files in the directory, as in the agent's --debuginfod-bytes. Reached: those not
 * used for longest are removed. */
#define DEBUGSERVERS_BYTES_MAX ((uint64_t)2 << 30)

/**
 * struct debugservers - zeros before debugservers_open(), and without servers
 * @servers: NULL: no servers
 * @lock:    keeps other commands out of the directory, whose unfinished downloads belong to one
 */
struct debugservers {
	struct debuginfod *servers;
	int lock;
};

#define DEBUGSERVERS_INIT  \
	{                  \
		.lock = -1 \
	}

/* @dir NULL: podprof/debuginfod in the user's directory for caches. CMD_DONE, also with no URL, or
 * another status after a message with @command. */
int debugservers_open(const char *command, const struct cmdline_values *urls, const char *dir,
		      struct debugservers *ret);
void debugservers_deinit(struct debugservers *d);

/* Tells on standard error how many files were downloaded, and how many were not. */
void debugservers_summary(const struct debugservers *d);

#endif
