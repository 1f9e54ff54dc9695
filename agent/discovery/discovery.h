/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_DISCOVERY_H
#define PODPROF_DISCOVERY_DISCOVERY_H

/* The interface of this folder: from the ids of a sample to its entity, and the lists of entities
 * and processes. */

#include <stdbool.h>
#include <stdint.h>

#include "discovery/entity.h"
#include "discovery/hierarchy.h"
#include "discovery/pid.h"

struct cgroup_listing;
struct discovery;
struct process_listing;
struct loop;
struct metric_sink;
struct root;

/**
 * struct discovery_opts
 * @proc:           the node's /proc; borrowed
 * @cgroupfs_root:  as for hierarchy_find(); NULL: found by itself
 * @host_processes: processes outside containers have entities too
 * @node_name:      label "node" of all entities; copied
 * @grace_ns:       how long an ended container keeps its entity, for late samples
 * @loop:           to follow changes; NULL for a single look
 */
struct discovery_opts {
	const struct root *proc;
	const char *cgroupfs_root;
	bool host_processes;
	const char *node_name;
	uint64_t grace_ns;
	struct loop *loop;
};

/* All cgroups are in the table on return. *@ret: owned. 0, HIERARCHY_NO_SUCH_DIR,
 * HIERARCHY_NO_CGROUPFS, -errno. */
int discovery_new(const struct discovery_opts *opts, struct discovery **ret);
/* The caller must release all entity references first. */
void discovery_free(struct discovery *d);

/* Whether the cgroups are a copy, which no sample is in (hierarchy_is_copy()). */
bool discovery_is_copy(const struct discovery *d);
/* The version 1 controller whose hierarchy supplies the samples' version 1 cgroup ids.
 * CONTROLLER_NONE on a node with only the unified hierarchy. The answer does not change. */
enum controller discovery_v1_controller(const struct discovery *d);

/* Returns the path of a recently made cgroup directory, from the root of its hierarchy: "/...", at
 * most @size bytes with the NUL. @id is the id of a sample. False: not known. */
typedef bool (*discovery_made_fn)(void *ctx, enum hierarchy hierarchy, uint64_t id, char *ret,
				  size_t size);

/* Sets the source of paths for directories that ended before discovery saw them. NULL: no source.
 */
void discovery_ask(struct discovery *d, discovery_made_fn made, void *ctx);

/**
 * discovery_entity() - the entity of a sample
 * @cgroup_id:    of the task in the unified hierarchy; 0 for none
 * @cgroup_v1_id: of the task in the hierarchy of discovery_v1_controller(); 0 for none
 * @pid, @comm:   the process, for processes outside containers and for unknown ids
 *
 * For an unknown id, the lookup asks the source of discovery_ask(), then reads /proc and, at most
 * once a second, scans all cgroups.
 *
 * Return: the entity, borrowed until the next iteration of the loop (entity_ref() keeps it). The
 * entity of kind ENTITY_UNKNOWN if the lookup fails. NULL for a process of the host, unless
 * host_processes is set. Every call is counted by outcome.
 */
struct entity *discovery_entity(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id,
				const struct pid_id *pid, const char *comm);

/* The owner of a sample for shares of ceilings (base/share.h): the cgroup id of the outermost
 * container around the task, or of the outermost systemd unit, so that directories made inside do
 * not bring more shares. Reads pending events for an unknown id. Else the task's own cgroup id: an
 * unknown one, or @cgroup_v1_id, or @cgroup_id if this is 0. @d may be NULL. */
uint64_t discovery_owner(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id);

/* Iterates over all entities, oldest first: @entity is NULL to start; NULL at the end. Borrowed as
 * above. */
struct entity *discovery_next_entity(struct discovery *d, const struct entity *entity);

/* entity_table_listen(), for all entities. @fn must not call back into discovery. */
void discovery_listen(struct discovery *d, entity_fn fn, void *ctx);
/* entity_table_watch(): @fn is called after each change of what the iterations of this header show,
 * except of processes. The same restriction. */
void discovery_watch(struct discovery *d, entity_change_fn fn, void *ctx);

enum discovery_find {
	DISCOVERY_FOUND = 0,
	DISCOVERY_NO_SUCH,   /* no living container's id has this prefix */
	DISCOVERY_AMBIGUOUS, /* several containers' ids have this prefix */
};

/**
 * discovery_find_container() - find a living container by a prefix of its id
 * @id:     as users write it; "containerd://..." is accepted
 * @ret_id: the whole id, CGROUP_ID_MAX bytes
 */
enum discovery_find discovery_find_container(struct discovery *d, const char *id, char *ret_id);
/* True if the container, or a container inside, has a process: cgroup directories may outlast their
 * processes. @id is whole. */
bool discovery_container_runs(struct discovery *d, const char *id);
/* True if @entity is the container with this (whole) id, or a container inside. */
bool discovery_in_container(const struct entity *entity, const char *id);

/* A result other than 0 ends the iteration. Must not call back into discovery. */
typedef int (*discovery_process_fn)(void *ctx, const struct pid_id *pid, struct entity *entity);

/* Calls @fn once for each process of a container or pod. With host_processes, also for each process
 * of the host with a program (kernel threads have none). 0, the result of @fn, -ENOMEM. */
int discovery_for_each_process(struct discovery *d, discovery_process_fn fn, void *ctx);
/* The same in slices, by process_listing_step(): discovery/process_list.h. 0 or -ENOMEM. */
int discovery_list_processes(struct discovery *d, discovery_process_fn fn, void *ctx,
			     struct process_listing **ret);

typedef void (*discovery_cgroup_fn)(void *ctx, struct entity *entity, enum hierarchy hierarchy,
				    uint64_t id);

/* Calls @fn for each cgroup directory of a container or pod, in both hierarchies, with the id of
 * the samples. @entity is NULL for a pod's own directory without known processes. Must not call
 * back into discovery. */
void discovery_for_each_cgroup(struct discovery *d, discovery_cgroup_fn fn, void *ctx);

/* The same in slices: cgroup_listing_step() visits one directory and returns whether more are left.
 * Directories may come and go between two steps; new ones come last. *@ret: owned; freed before @d.
 * 0 or -ENOMEM.
 *
 * @of_host: instead the directories outside containers and pods, with the entity of their systemd
 * unit. @entity is NULL without host_processes, outside units, and for an unknown unit. The
 * directories are of a single hierarchy. On a node with both versions this is version 1, because
 * all runtimes put all containers there; in the other hierarchy, tasks of a container may be in a
 * unit's directory. */
int discovery_list_cgroups(struct discovery *d, bool of_host, discovery_cgroup_fn fn, void *ctx,
			   struct cgroup_listing **ret);
bool cgroup_listing_step(struct cgroup_listing *listing);
/* NULL is fine. */
void cgroup_listing_free(struct cgroup_listing *listing);

/* The largest id of a directory of the unified hierarchy so far, and so of the youngest: the kernel
 * counts upwards. 0 without this hierarchy. */
uint64_t discovery_newest_cgroup(const struct discovery *d);

/* True if processes outside containers have entities. */
bool discovery_has_host_processes(const struct discovery *d);

/* A metric_collect_fn; @ctx is the discovery. */
void discovery_collect(void *ctx, struct metric_sink *sink);

#endif
