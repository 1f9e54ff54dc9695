/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCESS_LIST_H
#define PODPROF_DISCOVERY_PROCESS_LIST_H

/* All processes there are, with their entities. */

#include <stdbool.h>
#include <stdint.h>

struct entity;
struct entity_resolver;
struct metric_sink;
struct pid_id;
struct process_cache;

/* Why a process that a cgroup lists was left out. */
enum listed {
	LISTED_OK,
	LISTED_GONE,
	LISTED_OTHER_NAMESPACE, /* shown as 0: the agent needs the node's pid namespace */
	LISTED_UNREADABLE,	/* its stat, or the cgroup.procs it would be in */
	LISTED_MAX,
};

/**
 * struct process_list - what is kept between listings
 * @resolver, @processes: borrowed
 * @foreign:              /proc is of another PID namespace than ours: what cgroups list is not what
 *                        it has
 * @true_paths:           /proc/PID/cgroup has paths as the trees have them
 * @number:               of the last one; 0: none yet
 */
struct process_list {
	struct entity_resolver *resolver;
	struct process_cache *processes;
	bool foreign;
	bool true_paths;
	uint32_t number;
	uint64_t n_listed[LISTED_MAX];
};

/* Return other than 0 to stop. Must not call back. */
typedef int (*process_list_fn)(void *ctx, const struct pid_id *pid, struct entity *entity);

/* Calls @fn once for each process that is in a container or pod now, and with @host_processes for
 * those others that have a program (kernel threads have none). 0, what @fn returned, -ENOMEM. */
int process_list_run(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx);

void process_list_collect(const struct process_list *l, struct metric_sink *sink);

#endif
