/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_JAVAS_H
#define PODPROF_TEST_SUPPORT_JAVAS_H

/* The Java virtual machines of this machine. */

#include <stddef.h>

#include "support/goprocess.h"

#define JAVAS_MAX      16
#define JAVAS_ARGS_MAX 16

struct javas {
	char *paths[JAVAS_MAX];
	size_t n;
	char classes[64]; /* directory with the compiled programs of test/data/java */
};

/* All below /usr/lib/jvm: Debian's own, which test/setup.sh installs, and others. Compiles the
 * programs. Owned. */
void javas_find(struct javas *ret);
void javas_deinit(struct javas *javas);

/* Runs a program until it prints "ready". @options end with NULL: of the virtual machine. */
void javas_run(const struct javas *javas, const char *path, const char *const *options,
	       const char *program, const char *arg, struct goprocess *p);

#endif
