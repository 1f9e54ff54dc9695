/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_DISCOVERY_H
#define PODPROF_DISCOVERY_DISCOVERY_H

/* Whose is it? The front of this folder: from what a sample carries to its entity, and the lists of
 * entities and processes. */

#include <stdbool.h>
#include <stdint.h>

#include "discovery/entity.h"
#include "discovery/hierarchy.h"
#include "discovery/pid.h"

struct discovery;
struct loop;
struct metric_sink;
struct root;

/**
 * struct discovery_opts
 * @proc:           the node's /proc; borrowed
 * @cgroupfs_root:  as for hierarchy_find(); NULL: found by itself
 * @host_processes: processes in no container have entities too
 * @node_name:      label "node" of all entities; copied
 * @grace_ns:       how long a container that has gone keeps its entity, for samples that arrive
 *                  late
 * @loop:           to follow changes on; NULL for one look
 */
struct discovery_opts {
	const struct root *proc;
	const char *cgroupfs_root;
	bool host_processes;
	const char *node_name;
	uint64_t grace_ns;
	struct loop *loop;
};

/* Has looked at all cgroups when it returns. 0, HIERARCHY_NO_SUCH_DIR, HIERARCHY_NO_CGROUPFS,
 * -errno. */
int discovery_new(const struct discovery_opts *opts, struct discovery **ret);
/* References to entities must be given back before. */
void discovery_free(struct discovery *d);

/* The version 1 controller in whose hierarchy samples are to carry their task's cgroup id; none
 * where the node has only the unified one. Does not change. */
enum controller discovery_v1_controller(const struct discovery *d);

/* The path, from its tree's root, of a cgroup directory that was made lately, by the id that
 * samples carry: "/...", at most @size bytes with its NUL. False: not known. */
typedef bool (*discovery_made_fn)(void *ctx, enum hierarchy hierarchy, uint64_t id, char *ret,
				  size_t size);

/* Whom to ask for directories that have gone before they were seen. NULL: nobody. */
void discovery_ask(struct discovery *d, discovery_made_fn made, void *ctx);

/**
 * discovery_entity() - whose a sample is
 * @cgroup_id:    of the task in the unified hierarchy; 0 if there is none
 * @cgroup_v1_id: of the task in the hierarchy of discovery_v1_controller(); 0 if there is none
 * @pid, @comm:   the process, for what is in no container and for ids that are not known yet
 *
 * For an id that is not known it asks as told by discovery_ask(), and looks at /proc and, once a
 * second at most, at all cgroups.
 *
 * Return: the entity, borrowed until the next trip through the loop (entity_ref() keeps it). The
 * one of kind ENTITY_UNKNOWN where it cannot be told. NULL for a process of the host, unless
 * host_processes is set. All are counted by outcome.
 */
struct entity *discovery_entity(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id,
				const struct pid_id *pid, const char *comm);

/* All entities, oldest first: @entity is NULL to start; NULL at the end. Borrowed as above. */
struct entity *discovery_next_entity(struct discovery *d, const struct entity *entity);

/* entity_table_listen(), of all entities. @fn must not call back into discovery. */
void discovery_listen(struct discovery *d, entity_fn fn, void *ctx);

enum discovery_find {
	DISCOVERY_FOUND = 0,
	DISCOVERY_NO_SUCH,   /* no living container's id begins like that */
	DISCOVERY_AMBIGUOUS, /* those of more than one do */
};

/**
 * discovery_find_container() - a container by its id or the beginning of it
 * @id: as people have it: "containerd://..." is fine
 * @ret_id: all of the id, CGROUP_ID_MAX bytes
 */
enum discovery_find discovery_find_container(struct discovery *d, const char *id, char *ret_id);
/* Whether it has a process, of those inside it too: its directories may outlast them. @id is
 * whole. */
bool discovery_container_runs(struct discovery *d, const char *id);
/* Whether an entity is the container of this (whole) id, or one inside it. */
bool discovery_in_container(const struct entity *entity, const char *id);

/* Return other than 0 to stop. Must not call back into discovery. */
typedef int (*discovery_process_fn)(void *ctx, const struct pid_id *pid, struct entity *entity);

/* Calls @fn once for each process that is in a container or pod now, and for those of the host that
 * have a program (kernel threads have none), if host_processes is set. 0, what @fn returned,
 * -ENOMEM. */
int discovery_for_each_process(struct discovery *d, discovery_process_fn fn, void *ctx);

typedef void (*discovery_cgroup_fn)(void *ctx, struct entity *entity, enum hierarchy hierarchy,
				    uint64_t id);

/* Calls @fn for each cgroup directory of a container or pod, of either tree, with the id that
 * samples carry. @entity is NULL for a pod's own in which nothing was found to run yet. Must not
 * call back into discovery. */
void discovery_for_each_cgroup(struct discovery *d, discovery_cgroup_fn fn, void *ctx);

/* Calls @fn for each cgroup directory that is in no container or pod, with the entity of its
 * systemd unit, or NULL where it is in none or nothing is known of it. Of one tree only: of a node
 * with both versions it is version 1's, where all runtimes have all containers; tasks of a
 * container may well be in a unit's directory of the other. Must not call back into discovery. */
void discovery_for_each_host_cgroup(struct discovery *d, discovery_cgroup_fn fn, void *ctx);

/* Whether processes in no container have entities. */
bool discovery_has_host_processes(const struct discovery *d);

/* A metric_collect_fn; @ctx is the discovery. */
void discovery_collect(void *ctx, struct metric_sink *sink);

#endif
