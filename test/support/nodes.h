/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_NODES_H
#define PODPROF_TEST_SUPPORT_NODES_H

/* The Node programs of this machine. */

#include <stddef.h>

#include "support/goprocess.h"

#define NODES_MAX      16
#define NODES_ARGS_MAX 16

struct nodes {
	char *paths[NODES_MAX];
	size_t n;
};

/* Debian's own, which test/setup.sh installs, and others below /opt. Owned. */
void nodes_find(struct nodes *ret);
void nodes_deinit(struct nodes *nodes);

/* Runs a script of test/data/v8 until it prints "ready". @options end with NULL: of Node. */
void nodes_run(const char *path, const char *const *options, const char *script, const char *arg,
	       struct goprocess *p);

#endif
