/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_GOPROCESS_H
#define PODPROF_TEST_SUPPORT_GOPROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/root.h"
#include "discovery/pid.h"

/* A running program of test/fixtures/go. The program prints "ready" and reads orders, one a line.
 */
struct goprocess {
	struct root proc; /* /proc */
	struct pid_id id;
	int to;	  /* the program's standard input */
	int from; /* the program's standard output */
};

/* Start @path (in $PATH without a slash) with @args (ends with NULL; without the program's name)
 * and wait for "ready". @env has more variables ("NAME=value", separated by semicolons) or is NULL.
 * The test fails where it cannot be started. */
void goprocess_start(struct goprocess *p, const char *path, const char *const *args,
		     const char *env);
/* The same with this process number; false if somebody has it: nothing was started then. */
bool goprocess_start_as(struct goprocess *p, pid_t pid, const char *path, const char *const *args,
			const char *env);
/* Send a line and wait for the next "ready". */
void goprocess_order(struct goprocess *p, const char *line);
/* Wait for another "ready" that the program prints unasked. */
void goprocess_wait(struct goprocess *p);
/* Kill the program and wait for its end. Does nothing for {.to = -1}. */
void goprocess_stop(struct goprocess *p);

#endif
