/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PROCESS_LIST_H
#define PODPROF_DISCOVERY_PROCESS_LIST_H

/* The list of all running processes with their entities. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct entity;
struct entity_resolver;
struct metric_sink;
struct pid_id;
struct process_cache;
struct process_listing;

/* Outcomes of a process in a cgroup's list. */
enum listed {
	LISTED_OK,
	LISTED_GONE,
	LISTED_OTHER_NAMESPACE, /* shown as 0: the agent needs the node's pid namespace */
	LISTED_UNREADABLE,	/* its stat, or a whole cgroup.procs */
	LISTED_MAX,
};

/**
 * struct process_list - state between listings
 * @resolver, @processes: borrowed
 * @foreign:    /proc is of another PID namespace, so the pids of cgroup.procs differ from the pids
 *              of /proc
 * @true_paths: /proc/PID/cgroup has the paths of the hierarchies
 * @number:     of the last listing; 0: none yet
 */
struct process_list {
	struct entity_resolver *resolver;
	struct process_cache *processes;
	bool foreign;
	bool true_paths;
	uint32_t number;
	uint64_t n_listed[LISTED_MAX];
};

/* A result other than 0 ends the listing. Must not call back. */
typedef int (*process_list_fn)(void *ctx, const struct pid_id *pid, struct entity *entity);

/* Calls @fn once for each process of a container or pod. With @host_processes, also for each other
 * process with a program (kernel threads have none). 0, the result of @fn, -ENOMEM. */
int process_list_run(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx);

/*
 * The same in slices, for a step of the loop. Processes that begin after process_listing_new()
 * may be missing. @l must outlive the listing, and other listings may run meanwhile.
 */

/* Of process_listing_step(), whose @fn must not return this: call again. */
#define PROCESS_LISTING_MORE INT_MAX

/* 0 or -ENOMEM. */
int process_listing_new(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx,
			struct process_listing **ret);
void process_listing_free(struct process_listing *run);
/* One process or directory, or a part of a list of these. PROCESS_LISTING_MORE, or the end with the
 * result of process_list_run().
 */
int process_listing_step(struct process_listing *run);

void process_list_collect(const struct process_list *l, struct metric_sink *sink);

#endif
