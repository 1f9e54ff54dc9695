/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_OWNER_H
#define PODPROF_DISCOVERY_OWNER_H

/* What targets belong to, and the labels of it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "discovery/cgroup.h"
#include "discovery/unit.h"

/* Names are waited for so long after an owner has appeared, and what goes by its labels waits with
 * it. The kubelet learns of a container's id a second or two after its start, the API server after
 * that. */
#define OWNER_PENDING_NS (10 * NSEC_PER_SEC)

/* The label of what is a pod's and of none of its containers, and its value. */
#define OWNER_LEVEL	"level"
#define OWNER_LEVEL_POD "pod"
/* Those of what is inside something that is not the node's: a container's id, a user's number. */
#define OWNER_OUTER	"outer_container"
#define OWNER_USER	"user"

enum owner_kind {
	OWNER_CONTAINER,
	OWNER_POD,     /* what is in a pod and in no container of it: gVisor, Kata */
	OWNER_UNIT,    /* a systemd unit of the host */
	OWNER_PROCESS, /* of the host and of no unit: all processes of one name */
	OWNER_UNKNOWN, /* it could not be found out; there is one of these */
	OWNER_KIND_MAX,
};

/* Those that have cgroup directories of their own, and @id. */
static inline bool owner_has_dirs(enum owner_kind kind)
{
	return kind == OWNER_CONTAINER || kind == OWNER_POD;
}

/* "container", ... */
const char *owner_kind_name(enum owner_kind kind);
/* The same for people, who also want to know which containers are only a pod's "sandbox": by
 * @labels, the owner's. */
const char *owner_what(enum owner_kind kind, const struct labels *labels);

/**
 * struct owner - a container, a pod, a unit, a program
 * @id:            of a container, of a pod; else zero
 * @labels:        ready to be a series' labels: those of owner_identity() until owner_set_labels()
 * @settings:      what is wanted for it, by name: "go_heap" = "force"
 * @named:         the names that people know it by are among @labels
 * @pending:       they are not, but may be soon: for OWNER_PENDING_NS at most
 * @stamp:         for whoever sets the labels: what they were made of. 0 at first, and again when
 *                 more of @id is known
 * @left_out:      why its processes are not to be profiled, for people; NULL: they are
 * @first_seen_ns: monotonic
 * @n_live:        cgroup directories that exist (containers, pods)
 * @key:           what it is found by: the same for a container that has come back
 *
 * Lives while it is referred to; the table's users hold references for as long as they need the
 * owner, cgroup directories until their grace time is over.
 */
struct owner {
	enum owner_kind kind;
	struct cgroup_id id;
	struct labels labels;
	struct labels settings;
	bool named;
	bool pending;
	uint64_t stamp;
	char *left_out;
	uint64_t first_seen_ns;
	size_t n_live;

	struct owner_table *table;
	struct owner_group *group;
	bool inner;
	size_t n_refs;
	UT_hash_handle hh;
	char key[];
};

struct owner_table;

/* @node: value of the label "node", may be empty. */
int owner_table_new(const char *node, struct owner_table **ret);
/* Frees the owners that are still referred to as well. */
void owner_table_free(struct owner_table *table);

enum owner_outcome {
	OWNER_OK = 0,
	OWNER_TOO_MANY, /* the table's ceiling: take owner_unknown() */
};

/* Calls @fn for each owner there is, and from then on for each that is made or of which more is
 * known, before anybody else sees that. One at a time; NULL: nobody. */
typedef void (*owner_fn)(void *ctx, struct owner *owner);
void owner_table_listen(struct owner_table *table, owner_fn fn, void *ctx);

/* The owner for a container (a pod where that is @id's kind), a unit, a process's name; made if
 * need be. *@ret is the caller's reference. 0, OWNER_TOO_MANY, -ENOMEM. */
int owner_container(struct owner_table *table, const struct cgroup_id *id, struct owner **ret);
int owner_unit(struct owner_table *table, const struct unit *unit, struct owner **ret);
int owner_process(struct owner_table *table, const char *comm, struct owner **ret);
/* A unit's owner if there is one, else NULL. Borrowed. */
struct owner *owner_known_unit(struct owner_table *table, const struct unit *unit);
/* Borrowed; as long-lived as the table. */
struct owner *owner_unknown(struct owner_table *table);

/* What it is the owner of; all "" where it is no unit. Borrowed. */
struct unit owner_unit_of(const struct owner *owner);

/* What a unit or a program is called; of a container its id, of a pod its UID. Borrowed. */
const char *owner_name(const struct owner *owner);

/* The labels that its identity alone gives: node and service_name; of a container also container
 * (the id), pod_uid, runtime, unit (its service), OWNER_OUTER or OWNER_USER, and of a sandbox
 * OWNER_LEVEL; of a pod: pod_uid, OWNER_OUTER or OWNER_USER, and OWNER_LEVEL; of a unit: unit,
 * slice, OWNER_USER; of a program: comm. @ret must be empty. 0 or -ENOMEM. */
int owner_identity(const struct owner *owner, struct labels *ret);
/* Its labels and settings from now on; what they were before is left in both. */
void owner_set_labels(struct owner *owner, struct labels *labels, struct labels *settings);

/* @why: copied; NULL: it is to be profiled (again). 0 or -ENOMEM: then it is as before. */
int owner_leave_out(struct owner *owner, const char *why);

struct owner *owner_ref(struct owner *owner);
/* NULL is fine. */
void owner_unref(struct owner *owner);

/* Whether a container or pod still has a cgroup directory. The others end with their last
 * reference, so that one which is in the table was seen lately. */
bool owner_alive(const struct owner *owner);

/* Whether this container or pod is in the table and owner_alive(). */
bool owner_lives(struct owner_table *table, const struct cgroup_id *id);

/* All, oldest first: @owner is NULL to start; NULL at the end. Borrowed. */
struct owner *owner_next(struct owner_table *table, const struct owner *owner);

#endif
