/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_NODES_H
#define PODPROF_TEST_SUPPORT_NODES_H

/* The Node and Deno programs of this machine. */

#include <stdbool.h>
#include <stddef.h>

#include "support/goprocess.h"

#define NODES_MAX	  16
#define NODES_ARGS_MAX	  16
/* Bytes of V8's options for Deno. */
#define NODES_FLAGS_BYTES 256

struct nodes {
	char *paths[NODES_MAX];
	size_t n;
};

/* Debian's own, which test/setup.sh installs, and others below /opt. Owned. */
void nodes_find(struct nodes *ret);
/* Adds those of Deno below /opt. */
void nodes_add_deno(struct nodes *nodes);
void nodes_deinit(struct nodes *nodes);

bool nodes_is_deno(const char *path);

/* Runs a script of test/data/v8 until it prints "ready". @options end with NULL: of V8. */
void nodes_run(const char *path, const char *const *options, const char *script, const char *arg,
	       struct goprocess *p);

#endif
