/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_H
#define PODPROF_DISCOVERY_ENTITY_H

/* Entities: the owners of processes, with their labels. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "discovery/cgroup.h"
#include "discovery/unit.h"

/* Nanoseconds: how long a new entity may wait for its names. During this time the labels are
 * provisional, and the profiles of the entity wait. The kubelet knows a container's id a second or
 * two after the start, the API server later. */
#define ENTITY_PENDING_NS (10 * NSEC_PER_SEC)

/* Label and value of an entity in a pod but in none of its containers. */
#define ENTITY_LEVEL	 "level"
#define ENTITY_LEVEL_POD "pod"
/* The labels of an entity inside another container (its id) or a user's systemd (the uid). */
#define ENTITY_OUTER	 "outer_container"
#define ENTITY_USER	 "user"

enum entity_kind {
	ENTITY_CONTAINER,
	ENTITY_POD,	/* in a pod but in none of its containers: gVisor, Kata */
	ENTITY_UNIT,	/* a systemd unit of the host */
	ENTITY_PROCESS, /* all processes of one name on the host, outside units */
	ENTITY_UNKNOWN, /* the lookup failed; there is a single such entity */
	ENTITY_KIND_MAX,
};

/* True for the kinds of entities with cgroup directories of their own and an @id. */
static inline bool entity_has_dirs(enum entity_kind kind)
{
	return kind == ENTITY_CONTAINER || kind == ENTITY_POD;
}

/* "container", ... */
const char *entity_kind_name(enum entity_kind kind);
/* The kind as text for users: as above, but "sandbox" for a container with the label ENTITY_LEVEL
 * in @labels, the entity's labels. */
const char *entity_what(enum entity_kind kind, const struct labels *labels);

/**
 * struct entity - a container, a pod, a unit, a program
 * @id:            of a container or pod; else zero
 * @labels:        ready to be a series' labels: those of entity_identity() until
 *                 entity_set_labels()
 * @settings:      requested settings by name: "go_heap" = "force"
 * @named:         @labels include the names from metadata, not only identities
 * @pending:       some names are missing and may still arrive, for ENTITY_PENDING_NS at most
 * @stamp:         for the module that sets the labels: version of the inputs of the labels. 0 at
 *                 first, and after a change of @id
 * @left_out:      the reason why processes of the entity are not profiled, for users; NULL:
 *                 profiled
 * @first_seen_ns: monotonic
 * @n_live:        number of existing cgroup directories (containers, pods)
 * @key:           hash key: the same after a container's directory was removed and made again
 *
 * Reference counted. Users of the table hold references as long as needed, a cgroup directory until
 * the end of the grace period.
 */
struct entity {
	enum entity_kind kind;
	struct cgroup_id id;
	struct labels labels;
	struct labels settings;
	bool named;
	bool pending;
	uint64_t stamp;
	char *left_out;
	uint64_t first_seen_ns;
	size_t n_live;

	struct entity_table *table;
	struct entity_group *group;
	bool inner;
	size_t n_refs;
	UT_hash_handle hh;
	char key[];
};

struct entity_table;

/* @node: value of the label "node", may be empty. *@ret: owned. */
int entity_table_new(const char *node, struct entity_table **ret);
/* Also frees entities with references. */
void entity_table_free(struct entity_table *table);

enum entity_outcome {
	ENTITY_OK = 0,
	ENTITY_TOO_MANY, /* a ceiling of entity.c is reached: use entity_unknown() */
};

/* Calls @fn for each existing entity now. Later calls follow for each new or enriched entity,
 * before any other code sees the change. There is one listener; NULL: none. */
typedef void (*entity_fn)(void *ctx, struct entity *entity);
void entity_table_listen(struct entity_table *table, entity_fn fn, void *ctx);

/* Calls @fn after each change of the entities: a new one, its end, labels, settings, an exclusion,
 * and each entity_table_changed(). Many calls may follow each other, so @fn should only take a
 * note. There is one watcher; NULL: none. */
typedef void (*entity_change_fn)(void *ctx);
void entity_table_watch(struct entity_table *table, entity_change_fn fn, void *ctx);
/* A cgroup directory of an entity was made or removed. */
void entity_table_changed(struct entity_table *table);

/* The entity of a container (of a pod if @id->kind is CGROUP_KIND_POD), a unit, a process name;
 * made on first use. *@ret: an owned reference. 0, ENTITY_TOO_MANY, -ENOMEM. */
int entity_container(struct entity_table *table, const struct cgroup_id *id, struct entity **ret);
int entity_unit(struct entity_table *table, const struct unit *unit, struct entity **ret);
int entity_process(struct entity_table *table, const char *comm, struct entity **ret);
/* The existing entity of a unit, or NULL. Borrowed. */
struct entity *entity_known_unit(struct entity_table *table, const struct unit *unit);
/* Borrowed; valid as long as the table. */
struct entity *entity_unknown(struct entity_table *table);

/* The outermost container around a container, borrowed; NULL: none, or not known. */
struct entity *entity_outer(const struct entity *entity);

/* The unit of an entity of kind ENTITY_UNIT; for other kinds all fields are "". Borrowed. */
struct unit entity_unit_of(const struct entity *entity);

/* The name of a unit or program; a container's id; a pod's UID. Borrowed. */
const char *entity_name(const struct entity *entity);

/* The labels from the entity's identity alone. All: node and service_name. Container: container
 * (the id), pod_uid, runtime, unit (its service), ENTITY_OUTER or ENTITY_USER; sandbox: also
 * ENTITY_LEVEL. Pod: pod_uid, ENTITY_OUTER or ENTITY_USER, and ENTITY_LEVEL. Unit: unit, slice,
 * ENTITY_USER. Program: comm. @ret must be empty. 0 or -ENOMEM. */
int entity_identity(const struct entity *entity, struct labels *ret);
/* Swaps in new labels and settings. The old contents are left in both arguments. */
void entity_set_labels(struct entity *entity, struct labels *labels, struct labels *settings);

/* Excludes the entity from profiling. @why: copied; NULL: the entity is profiled (again). 0 or
 * -ENOMEM; on failure nothing changes. */
int entity_leave_out(struct entity *entity, const char *why);

struct entity *entity_ref(struct entity *entity);
/* NULL is allowed. */
void entity_unref(struct entity *entity);

/* True while a container or pod has a cgroup directory. True for other kinds: such an entity leaves
 * the table with its last reference. */
bool entity_alive(const struct entity *entity);

/* True if this container or pod is in the table and entity_alive(). */
bool entity_lives(struct entity_table *table, const struct cgroup_id *id);

/* Iterates over all entities, oldest first: @entity is NULL to start; NULL at the end. Borrowed. */
struct entity *entity_next(struct entity_table *table, const struct entity *entity);

#endif
