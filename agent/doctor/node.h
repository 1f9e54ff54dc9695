/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_NODE_H
#define PODPROF_DOCTOR_NODE_H

/* Whether it is the node that we see: its processes, its cgroups, and what happens to them. */

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
 * @n_strangers: processes in another cgroup than our own, some of them
 * @cgroups:     the outcome of hierarchy_find()
 * @has:         by hierarchy: it is there
 * @real:        it is a cgroup file system and no other directory
 * @top:         it begins at the machine's own root, and not at some container's
 * @controller:  of the version 1 hierarchy
 * @n_dirs:      cgroup directories
 * @n_containers: that live
 * @n_unwatched: directories that inotify has no watch for
 * @no_inotify:  there is no instance to be had
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
