// SPDX-License-Identifier: Apache-2.0
/*
 * Owners are found by a key: "c<outer container>/<container>", "k<outer container>/<pod UID>",
 * "u<user>/<slice>/<unit>", "p<name>". The container around a container is part of it, since an
 * inner one's path, and so the id in it, is what somebody inside the outer one has chosen: it may
 * well be the id of a container elsewhere on the node, whose samples it must not join.
 *
 * References say how long an owner lives. That of a cgroup directory lasts until the directory's
 * grace time is over, so that samples that arrive late still find their name.
 */
#include "discovery/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/ownergroup.h"

/* Containers and pods at a time, those in their grace time too: 110 pods are usual, 500 the most a
 * kubelet is run with. One more is OWNER_TOO_MANY. Reached:
 * `podprof_owner_lookups_total{outcome="unknown_limit"}`. */
#define OWNER_CONTAINERS_MAX 8192
/* Of them those inside others, whose paths somebody in a container has chosen: the other half is
 * for the node's own. Reached: `podprof_owner_lookups_total{outcome="unknown_limit"}`. */
#define OWNER_INNER_MAX	     (OWNER_CONTAINERS_MAX / 2)
/* Units and programs of the host. A process can give itself any number of names. Reached:
 * `podprof_owner_lookups_total{outcome="unknown_limit"}`. */
#define OWNER_HOST_MAX	     2048
/* Characters of a container's id as a name: what the runtimes' own tools show. */
#define OWNER_SHORT_ID	     12

struct owner_table {
	struct owner *owners;
	struct owner *unknown;
	struct owner_group *groups;
	size_t n[OWNER_KIND_MAX];
	size_t n_inner;
	char *node;
	owner_fn listener;
	void *listener_ctx;
};

const char *owner_kind_name(enum owner_kind kind)
{
	static const char *const names[OWNER_KIND_MAX] = {
		[OWNER_CONTAINER] = "container", [OWNER_POD] = "pod",	      [OWNER_UNIT] = "unit",
		[OWNER_PROCESS] = "process",	 [OWNER_UNKNOWN] = "unknown",
	};

	return kind < OWNER_KIND_MAX ? names[kind] : "unknown";
}

const char *owner_what(enum owner_kind kind, const struct labels *labels)
{
	const char *level = labels_get(labels, OWNER_LEVEL);

	if (kind == OWNER_CONTAINER && level && strcmp(level, OWNER_LEVEL_POD) == 0)
		return "sandbox";
	return owner_kind_name(kind);
}

/* ---- labels ---- */

/* The few labels set here are far from the ceiling and have good names: only memory can lack. */
static int set(struct labels *l, const char *name, const char *value)
{
	return labels_set(l, name, value) ? -ENOMEM : 0;
}

static int set_text(struct labels *l, const char *name, struct strview value)
{
	_cleanup_(freep) char *s = strview_dup(value);

	return s ? set(l, name, s) : -ENOMEM;
}

/* Whose it is, if it is not the node's. */
static int label_outer(struct labels *l, const struct cgroup_id *id)
{
	struct strview user;

	return cgroup_user(id, &user) ? set_text(l, OWNER_USER, user)
				      : set(l, OWNER_OUTER, id->outer_id);
}

/* What runs it is better known than its id. */
static struct strview service_of(const struct cgroup_id *id)
{
	struct strview name = strview_of(*id->service ? id->service : id->container_id);

	if (strview_suffix(&name, ".service"))
		return name;
	if (strview_len(&name) == 64)
		name.end = name.p + OWNER_SHORT_ID;
	return name;
}

static int label_container(struct labels *l, const struct cgroup_id *id)
{
	if (set(l, "container", id->container_id) || label_outer(l, id) ||
	    set(l, "pod_uid", id->pod_uid) || set(l, "unit", id->service) ||
	    set_text(l, "service_name", service_of(id)))
		return -ENOMEM;
	if (id->kind == CGROUP_KIND_SANDBOX && set(l, OWNER_LEVEL, OWNER_LEVEL_POD))
		return -ENOMEM;
	return set(l, "runtime", cgroup_runtime_name(id->runtime));
}

static int label_pod(struct labels *l, const struct cgroup_id *id)
{
	if (label_outer(l, id) || set(l, "pod_uid", id->pod_uid) ||
	    set(l, "service_name", id->pod_uid))
		return -ENOMEM;
	return set(l, OWNER_LEVEL, OWNER_LEVEL_POD);
}

/* One name that is both what it is and its service. */
static int label_host(struct labels *l, const char *label, const char *name)
{
	return set(l, label, name) || set(l, "service_name", name) ? -ENOMEM : 0;
}

static int label_unit(struct labels *l, const struct owner *owner)
{
	const struct unit unit = owner_unit_of(owner);

	if (set_text(l, OWNER_USER, unit.user) || set_text(l, "slice", unit.slice))
		return -ENOMEM;
	return label_host(l, "unit", owner_name(owner));
}

static int label_kind(struct labels *l, const struct owner *owner)
{
	switch (owner->kind) {
	case OWNER_CONTAINER:
		return label_container(l, &owner->id);
	case OWNER_POD:
		return label_pod(l, &owner->id);
	case OWNER_UNIT:
		return label_unit(l, owner);
	case OWNER_PROCESS:
		return label_host(l, "comm", owner_name(owner));
	case OWNER_UNKNOWN:
	case OWNER_KIND_MAX:
		break;
	}
	return set(l, "service_name", "unknown");
}

const char *owner_name(const struct owner *owner)
{
	if (owner->kind == OWNER_POD)
		return owner->id.pod_uid;
	if (owner->kind == OWNER_UNIT)
		return strrchr(owner->key, '/') + 1;
	return owner->kind == OWNER_CONTAINER ? owner->id.container_id : owner->key + 1;
}

int owner_identity(const struct owner *owner, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels labels = {0};

	if (set(&labels, "node", owner->table->node) || label_kind(&labels, owner))
		return -ENOMEM;
	labels_swap(ret, &labels);
	return 0;
}

void owner_set_labels(struct owner *owner, struct labels *labels, struct labels *settings)
{
	labels_swap(&owner->labels, labels);
	labels_swap(&owner->settings, settings);
}

/* ---- the table ---- */

static size_t kind_max(enum owner_kind kind)
{
	return owner_has_dirs(kind) ? OWNER_CONTAINERS_MAX : OWNER_HOST_MAX;
}

static void owner_destroy(struct owner *owner)
{
	if (!owner)
		return;
	labels_deinit(&owner->labels);
	labels_deinit(&owner->settings);
	free(owner->left_out);
	free(owner);
}

DEFINE_CLEANUP(struct owner *, owner_destroyp, owner_destroy);

static size_t kind_count(const struct owner_table *table, enum owner_kind kind)
{
	if (owner_has_dirs(kind))
		return table->n[OWNER_CONTAINER] + table->n[OWNER_POD];
	return table->n[OWNER_UNIT] + table->n[OWNER_PROCESS];
}

static void owner_tell(struct owner_table *table, struct owner *owner)
{
	if (table->listener)
		table->listener(table->listener_ctx, owner);
}

/* A new owner, in the table; the reference is the caller's. @id: of a container, of a pod. */
static int owner_add(struct owner_table *table, enum owner_kind kind, const char *key,
		     const struct cgroup_id *id, struct owner **ret)
{
	size_t n = strlen(key) + 1;
	_cleanup_(owner_destroyp) struct owner *owner = calloc(1, sizeof(*owner) + n);
	bool hash_oom = false;

	if (!owner)
		return -ENOMEM;
	owner->kind = kind;
	owner->table = table;
	owner->n_refs = 1;
	owner->first_seen_ns = nsec_monotonic();
	if (id)
		owner->id = *id;
	memcpy(owner->key, key, n);
	if (owner_identity(owner, &owner->labels))
		return -ENOMEM;
	HASH_ADD(hh, table->owners, key[0], strlen(owner->key), owner);
	if (hash_oom)
		return -ENOMEM;
	table->n[kind]++;
	owner_tell(table, owner);
	*ret = take_ptr(owner);
	return 0;
}

static struct owner *owner_find(struct owner_table *table, const char *key)
{
	struct owner *owner;

	HASH_FIND(hh, table->owners, key, strlen(key), owner);
	return owner ? owner_ref(owner) : NULL;
}

int owner_leave_out(struct owner *owner, const char *why)
{
	_cleanup_(freep) char *copy = NULL;

	if (why) {
		copy = strdup(why);
		if (!copy)
			return -ENOMEM;
	}
	free(owner->left_out);
	owner->left_out = take_ptr(copy);
	return 0;
}

/* Some trees know more of a container than others: another path may tell the pod. */
static int owner_enrich(struct owner *owner, const struct cgroup_id *id)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	struct cgroup_id was = owner->id;

	if (owner->id.pod_uid[0] || !id->pod_uid[0])
		return 0;
	owner->id = *id;
	if (owner_identity(owner, &labels)) {
		owner->id = was;
		return -ENOMEM;
	}
	if (!owner->named)
		labels_swap(&owner->labels, &labels);
	owner->stamp = 0;
	owner_tell(owner->table, owner);
	return 0;
}

#define CONTAINER_KEY_BYTES (2 * CGROUP_ID_MAX + 2)

static void container_key(const struct cgroup_id *id, char ret[CONTAINER_KEY_BYTES])
{
	if (id->kind == CGROUP_KIND_POD)
		snprintf(ret, CONTAINER_KEY_BYTES, "k%s/%s", id->outer_id, id->pod_uid);
	else
		snprintf(ret, CONTAINER_KEY_BYTES, "c%s/%s", id->outer_id, id->container_id);
}

static int container_new(struct owner_table *table, const struct cgroup_id *id, const char *key,
			 struct owner **ret)
{
	const bool pod = id->kind == CGROUP_KIND_POD;
	struct owner_group *group;
	struct owner *owner;
	int r;

	r = owner_group_join(&table->groups, id, &group);
	if (r)
		return r < 0 ? r : OWNER_TOO_MANY;
	if (owner_add(table, pod ? OWNER_POD : OWNER_CONTAINER, key, id, &owner)) {
		owner_group_leave(&table->groups, group);
		return -ENOMEM;
	}
	owner->group = group;
	owner->inner = id->outer_id[0] != '\0';
	table->n_inner += owner->inner;
	*ret = owner;
	return 0;
}

int owner_container(struct owner_table *table, const struct cgroup_id *id, struct owner **ret)
{
	char key[CONTAINER_KEY_BYTES];
	struct owner *found;

	container_key(id, key);
	found = owner_find(table, key);
	if (found && owner_enrich(found, id)) {
		owner_unref(found);
		return -ENOMEM;
	}
	if (found) {
		*ret = found;
		return 0;
	}
	if (kind_count(table, OWNER_CONTAINER) >= kind_max(OWNER_CONTAINER) ||
	    (id->outer_id[0] && table->n_inner >= OWNER_INNER_MAX))
		return OWNER_TOO_MANY;
	return container_new(table, id, key, ret);
}

/* A unit or a program; its name is the rest of @key. */
static int owner_host(struct owner_table *table, enum owner_kind kind, const char *key,
		      struct owner **ret)
{
	struct owner *found = owner_find(table, key);

	if (found) {
		*ret = found;
		return 0;
	}
	if (kind_count(table, kind) >= kind_max(kind))
		return OWNER_TOO_MANY;
	return owner_add(table, kind, key, NULL, ret);
}

/* The caller's to free. */
static char *unit_key(const struct unit *unit)
{
	char *key;

	return asprintf(&key, "u%.*s/%.*s/%.*s", (int)strview_len(&unit->user), unit->user.p,
			(int)strview_len(&unit->slice), unit->slice.p,
			(int)strview_len(&unit->name), unit->name.p) < 0
		       ? NULL
		       : key;
}

struct unit owner_unit_of(const struct owner *owner)
{
	struct strview rest = strview_of(owner->kind == OWNER_UNIT ? owner->key + 1 : "//");
	struct unit unit;

	if (!strview_until(&rest, '/', &unit.user) || !strview_until(&rest, '/', &unit.slice))
		return (struct unit){rest, rest, rest};
	unit.name = rest;
	return unit;
}

int owner_unit(struct owner_table *table, const struct unit *unit, struct owner **ret)
{
	_cleanup_(freep) char *key = unit_key(unit);

	return key ? owner_host(table, OWNER_UNIT, key, ret) : -ENOMEM;
}

struct owner *owner_known_unit(struct owner_table *table, const struct unit *unit)
{
	_cleanup_(freep) char *key = unit_key(unit);
	struct owner *owner = NULL;

	if (key)
		HASH_FIND(hh, table->owners, key, strlen(key), owner);
	return owner;
}

int owner_process(struct owner_table *table, const char *comm, struct owner **ret)
{
	/* Kernel threads have a part for each CPU or work queue behind a slash: "kworker/1:2-mm".
	 */
	size_t n = strcspn(comm, "/");
	char key[64];

	snprintf(key, sizeof(key), "p%.*s", (int)(n ? n : strlen(comm)), comm);
	return owner_host(table, OWNER_PROCESS, key[1] ? key : "p?", ret);
}

struct owner *owner_unknown(struct owner_table *table)
{
	return table->unknown;
}

struct owner *owner_ref(struct owner *owner)
{
	owner->n_refs++;
	return owner;
}

void owner_unref(struct owner *owner)
{
	struct owner_table *table;

	if (!owner || --owner->n_refs)
		return;
	table = owner->table;
	HASH_DELETE(hh, table->owners, owner);
	table->n[owner->kind]--;
	table->n_inner -= owner->inner;
	owner_group_leave(&table->groups, owner->group);
	owner_destroy(owner);
}

bool owner_alive(const struct owner *owner)
{
	return !owner_has_dirs(owner->kind) || owner->n_live > 0;
}

bool owner_lives(struct owner_table *table, const struct cgroup_id *id)
{
	char key[CONTAINER_KEY_BYTES];
	struct owner *owner;

	container_key(id, key);
	HASH_FIND(hh, table->owners, key, strlen(key), owner);
	return owner && owner_alive(owner);
}

struct owner *owner_next(struct owner_table *table, const struct owner *owner)
{
	return owner ? owner->hh.next : table->owners;
}

DEFINE_CLEANUP(struct owner_table *, owner_table_freep, owner_table_free);

int owner_table_new(const char *node, struct owner_table **ret)
{
	_cleanup_(owner_table_freep) struct owner_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->node = strdup(node);
	if (!table->node || owner_add(table, OWNER_UNKNOWN, "?", NULL, &table->unknown))
		return -ENOMEM;
	*ret = take_ptr(table);
	return 0;
}

void owner_table_listen(struct owner_table *table, owner_fn fn, void *ctx)
{
	table->listener = fn;
	table->listener_ctx = ctx;
	for (struct owner *owner = table->owners; fn && owner; owner = owner->hh.next)
		fn(ctx, owner);
}

void owner_table_free(struct owner_table *table)
{
	struct owner *owner, *next;

	if (!table)
		return;
	HASH_ITER(hh, table->owners, owner, next) {
		HASH_DELETE(hh, table->owners, owner);
		owner_group_leave(&table->groups, owner->group);
		owner_destroy(owner);
	}
	free(table->node);
	free(table);
}
