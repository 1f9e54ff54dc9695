/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SETTINGS_H
#define PODPROF_SETTINGS_H

/*
 * Converts the settings for each pipeline: the enums of config/ become enums of the modules, and
 * the memory budget is divided. The agent and the commands that show the agent's view share these
 * functions.
 */

#include <limits.h>

#include "cpu/profiler.h"
#include "discovery/discovery.h"
#include "naming/naming.h"

struct config;

/* Shares of --memory-budget: the divisor of each. The rest is for data in flight, folded stacks and
 * reports. */
#define BUDGET_TABLES  6 /* unwind tables in the kernel */
#define BUDGET_SYMBOLS 8 /* symbol tables of CPU profiles, and as much again for heap profiles */
#define BUDGET_HEAPS   4 /* Go heap records */
#define BUDGET_PULLS   8 /* profiles read on demand, and as much again for their symbols */
#define BUDGET_QUEUE   4 /* profiles waiting for sending */

/* Options of the CPU profiler. The caller sets the loop, roots, discovery, cache and callback,
 * which are NULL. Strings borrow from @c. */
struct cpu_profiler_opts settings_cpu(const struct config *c);

/* Where cgroups are and which entities they make. The caller sets the loop, the root and the grace
 * period. Strings borrow from @c. */
struct discovery_opts settings_discovery(const struct config *c);

/* Labels, patterns and rules. Borrows from @c. */
struct naming_settings settings_naming(const struct config *c);

/* @host_root is the node's root directory. @opts points into the struct, so the struct must not
 * move. */
struct settings_naming_opts {
	struct naming_opts opts;
	char host_root[PATH_MAX];
};

/* All options of naming but the loop, discovery and the callback. Borrows from @c. */
void settings_naming_opts_init(struct settings_naming_opts *n, const struct config *c);

#endif
