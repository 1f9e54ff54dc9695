/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_NODE_H
#define PODPROF_DOCTOR_NODE_H

/* Whether podprof sees the whole node: its processes, its cgroups, and their events. */

#include <stdbool.h>
#include <stddef.h>

#include "discovery/hierarchy.h"
#include "discovery/procview.h"

struct config;
struct findings;
struct probe_results;
struct root;

/**
 * struct node
 * @view:        of --proc-root
 * @n_strangers: processes in a cgroup other than ours, counted up to a limit
 * @cgroups:     the outcome of hierarchy_find()
 * @has:         by hierarchy: it exists
 * @real:        it is a cgroup file system and not another directory
 * @top:         it begins at the machine's root, not at a container's
 * @controller:  of the version 1 hierarchy
 * @n_dirs:      cgroup directories
 * @n_containers: live containers
 * @n_unwatched: directories without an inotify watch
 * @no_inotify:  no inotify instance is available
 */
struct node {
	struct procview view;
	size_t n_strangers;
	int cgroups;
	bool has[HIERARCHY_MAX];
	bool real[HIERARCHY_MAX];
	bool top[HIERARCHY_MAX];
	enum controller controller;
	size_t n_dirs;
	size_t n_containers;
	size_t n_unwatched;
	bool no_inotify;
};

/* @proc: --proc-root. All but n_containers. 0 or -ENOMEM. */
int node_look(const struct config *config, const struct root *proc, struct node *ret);

void node_check(const struct probe_results *results, struct findings *ret);

#endif
