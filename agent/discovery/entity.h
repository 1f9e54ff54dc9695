/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_H
#define PODPROF_DISCOVERY_ENTITY_H

/* What processes belong to, and the labels of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "discovery/cgroup.h"
#include "discovery/unit.h"

/* Names are waited for so long after an entity has appeared, and what goes by its labels waits with
 * it. The kubelet learns of a container's id a second or two after its start, the API server after
 * that. */
#define ENTITY_PENDING_NS (10 * NSEC_PER_SEC)

/* The label of what is a pod's and of none of its containers, and its value. */
#define ENTITY_LEVEL	 "level"
#define ENTITY_LEVEL_POD "pod"
/* Those of what is inside something that is not the node's: a container's id, a user's number. */
#define ENTITY_OUTER	 "outer_container"
#define ENTITY_USER	 "user"

enum entity_kind {
	ENTITY_CONTAINER,
	ENTITY_POD,	/* what is in a pod and in no container of it: gVisor, Kata */
	ENTITY_UNIT,	/* a systemd unit of the host */
	ENTITY_PROCESS, /* of the host and of no unit: all processes of one name */
	ENTITY_UNKNOWN, /* it could not be found out; there is one of these */
	ENTITY_KIND_MAX,
};

/* Those that have cgroup directories of their own, and @id. */
static inline bool entity_has_dirs(enum entity_kind kind)
{
	return kind == ENTITY_CONTAINER || kind == ENTITY_POD;
}

/* "container", ... */
const char *entity_kind_name(enum entity_kind kind);
/* The same for people, who also want to know which containers are only a pod's "sandbox": by
 * @labels, the entity's. */
const char *entity_what(enum entity_kind kind, const struct labels *labels);

/**
 * struct entity - a container, a pod, a unit, a program
 * @id:            of a container, of a pod; else zero
 * @labels:        ready to be a series' labels: those of entity_identity() until
 *                 entity_set_labels()
 * @settings:      what is wanted for it, by name: "go_heap" = "force"
 * @named:         the names that people know it by are among @labels
 * @pending:       they are not, but may be soon: for ENTITY_PENDING_NS at most
 * @stamp:         for whoever sets the labels: what they were made of. 0 at first, and again when
 *                 more of @id is known
 * @left_out:      why its processes are not to be profiled, for people; NULL: they are
 * @first_seen_ns: monotonic
 * @n_live:        cgroup directories that exist (containers, pods)
 * @key:           what it is found by: the same for a container that has come back
 *
 * Lives while it is referred to; the table's users hold references for as long as they need the
 * entity, cgroup directories until their grace time is over.
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

/* @node: value of the label "node", may be empty. */
int entity_table_new(const char *node, struct entity_table **ret);
/* Frees the entities that are still referred to as well. */
void entity_table_free(struct entity_table *table);

enum entity_outcome {
	ENTITY_OK = 0,
	ENTITY_TOO_MANY, /* the table's ceiling: take entity_unknown() */
};

/* Calls @fn for each entity there is, and from then on for each that is made or of which more is
 * known, before anybody else sees that. One at a time; NULL: nobody. */
typedef void (*entity_fn)(void *ctx, struct entity *entity);
void entity_table_listen(struct entity_table *table, entity_fn fn, void *ctx);

/* The entity for a container (a pod where that is @id's kind), a unit, a process's name; made if
 * need be. *@ret is the caller's reference. 0, ENTITY_TOO_MANY, -ENOMEM. */
int entity_container(struct entity_table *table, const struct cgroup_id *id, struct entity **ret);
int entity_unit(struct entity_table *table, const struct unit *unit, struct entity **ret);
int entity_process(struct entity_table *table, const char *comm, struct entity **ret);
/* A unit's entity if there is one, else NULL. Borrowed. */
struct entity *entity_known_unit(struct entity_table *table, const struct unit *unit);
/* Borrowed; as long-lived as the table. */
struct entity *entity_unknown(struct entity_table *table);

/* The unit that it stands for; all "" where it is no unit. Borrowed. */
struct unit entity_unit_of(const struct entity *entity);

/* What a unit or a program is called; of a container its id, of a pod its UID. Borrowed. */
const char *entity_name(const struct entity *entity);

/* The labels that its identity alone gives: node and service_name; of a container also container
 * (the id), pod_uid, runtime, unit (its service), ENTITY_OUTER or ENTITY_USER, and of a sandbox
 * ENTITY_LEVEL; of a pod: pod_uid, ENTITY_OUTER or ENTITY_USER, and ENTITY_LEVEL; of a unit: unit,
 * slice, ENTITY_USER; of a program: comm. @ret must be empty. 0 or -ENOMEM. */
int entity_identity(const struct entity *entity, struct labels *ret);
/* Its labels and settings from now on; what they were before is left in both. */
void entity_set_labels(struct entity *entity, struct labels *labels, struct labels *settings);

/* @why: copied; NULL: it is to be profiled (again). 0 or -ENOMEM: then it is as before. */
int entity_leave_out(struct entity *entity, const char *why);

struct entity *entity_ref(struct entity *entity);
/* NULL is fine. */
void entity_unref(struct entity *entity);

/* Whether a container or pod still has a cgroup directory. The others end with their last
 * reference, so that one which is in the table was seen lately. */
bool entity_alive(const struct entity *entity);

/* Whether this container or pod is in the table and entity_alive(). */
bool entity_lives(struct entity_table *table, const struct cgroup_id *id);

/* All, oldest first: @entity is NULL to start; NULL at the end. Borrowed. */
struct entity *entity_next(struct entity_table *table, const struct entity *entity);

#endif
