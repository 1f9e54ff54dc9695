/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMINGOPTS_H
#define PODPROF_NAMINGOPTS_H

/* What naming is to do, by the agent's settings: for the agent and for who shows what it would do.
 */

#include <limits.h>

#include "naming/naming.h"

struct config;

/* Borrows from the settings. */
struct naming_settings namingopts_settings(const struct config *c);

/* @host_root: the node's root directory, of which @opts has the address: it does not move. */
struct namingopts {
	struct naming_opts opts;
	char host_root[PATH_MAX];
};

/* All but the loop, discovery and the callback. Borrows from the settings. */
void namingopts_init(struct namingopts *n, const struct config *c);

#endif
