// SPDX-License-Identifier: Apache-2.0
/*
 * Entities have keys: "c<outer container>/<container>", "k<outer container>/<pod UID>",
 * "u<user>/<slice>/<unit>", "p<name>". The outer container is part of the key: a process inside
 * chooses the inner path and its id. The id may belong to another container of the node, whose
 * samples must stay separate.
 *
 * Entities are reference counted. A cgroup directory holds a reference until the end of the grace
 * period, so late samples still find their entity.
 */
#include "discovery/entity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/nsec.h"

/* ---- groups */

/* A group is the containers of one pod, or all containers inside one container. Its ceiling keeps a
 * single pod or container from filling the entity table. */

/* Containers of one group: usual groups have 10, a node in a container (kind) 500. A larger group
 * is refused with ENTITY_GROUP_FULL. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_GROUP_MAX 1024

enum entity_group_outcome {
	ENTITY_GROUP_OK = 0,
	ENTITY_GROUP_FULL,
};

/* The name begins with a letter for the kind of id, because a pod's and a container's could be
 * equal. */
struct entity_group {
	size_t n;
	UT_hash_handle hh;
	char name[CGROUP_ID_MAX + 1];
};

static int group_new(struct entity_group **groups, const char *name, struct entity_group **ret)
{
	struct entity_group *group = calloc(1, sizeof(*group));
	bool hash_oom = false;

	if (!group)
		return -ENOMEM;
	memcpy(group->name, name, sizeof(group->name));
	HASH_ADD(hh, *groups, name[0], strlen(group->name), group);
	if (hash_oom) {
		free(group);
		return -ENOMEM;
	}
	*ret = group;
	return 0;
}

/* Adds one container to the group of @id. *@groups is NULL at first and whenever no group is left;
 * *@ret is NULL for a container of no group. 0, ENTITY_GROUP_FULL, -ENOMEM. */
static int entity_group_join(struct entity_group **groups, const struct cgroup_id *id,
			     struct entity_group **ret)
{
	char name[CGROUP_ID_MAX + 1] = {0};
	struct entity_group *group = NULL;

	/* "" for a container without a group. A container whose pod is found later stays without.
	 */
	if (id->outer_id[0])
		snprintf(name, CGROUP_ID_MAX + 1, "o%s", id->outer_id);
	else if (id->pod_uid[0])
		snprintf(name, CGROUP_ID_MAX + 1, "p%s", id->pod_uid);
	else
		name[0] = '\0';
	if (name[0]) {
		HASH_FIND(hh, *groups, name, strlen(name), group);
		if (group && group->n >= ENTITY_GROUP_MAX)
			return ENTITY_GROUP_FULL;
		if (!group && group_new(groups, name, &group))
			return -ENOMEM;
		group->n++;
	}
	*ret = group;
	return 0;
}

/* NULL is allowed. */
static void entity_group_leave(struct entity_group **groups, struct entity_group *group)
{
	if (!group || --group->n)
		return;
	HASH_DELETE(hh, *groups, group);
	free(group);
}

/* Containers and pods, including those in their grace period: a kubelet usually runs 110 pods, and
 * at most 500. Beyond: ENTITY_TOO_MANY. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_CONTAINERS_MAX 8192
/* Containers and pods inside containers: processes in the outer container choose their paths, so
 * half of the table is reserved for the node's own. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_INNER_MAX      (ENTITY_CONTAINERS_MAX / 2)
/* Units and programs of the host: a process can give itself any number of names. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_HOST_MAX	      2048
/* Characters of a container's id in a name, as the runtimes' own tools show it. */
#define ENTITY_SHORT_ID	      12

struct entity_table {
	struct entity *entities;
	struct entity *unknown;
	struct entity_group *groups;
	size_t n[ENTITY_KIND_MAX];
	size_t n_inner;
	char *node;
	entity_fn listener;
	void *listener_ctx;
	entity_change_fn watcher;
	void *watcher_ctx;
};

const char *entity_kind_name(enum entity_kind kind)
{
	static const char *const names[ENTITY_KIND_MAX] = {
		[ENTITY_CONTAINER] = "container", [ENTITY_POD] = "pod",
		[ENTITY_UNIT] = "unit",		  [ENTITY_PROCESS] = "process",
		[ENTITY_UNKNOWN] = "unknown",
	};

	return kind < ENTITY_KIND_MAX ? names[kind] : "unknown";
}

const char *entity_what(enum entity_kind kind, const struct labels *labels)
{
	const char *level = labels_get(labels, ENTITY_LEVEL);

	if (kind == ENTITY_CONTAINER && level && strcmp(level, ENTITY_LEVEL_POD) == 0)
		return "sandbox";
	return entity_kind_name(kind);
}

/* ---- labels ---- */

/* The few labels here have valid names and stay far below the ceiling, so the only error is
 * -ENOMEM. */
static int set(struct labels *l, const char *name, const char *value)
{
	return labels_set(l, name, value) ? -ENOMEM : 0;
}

static int set_text(struct labels *l, const char *name, struct strview value)
{
	_cleanup_(freep) char *s = strview_dup(value);

	return s ? set(l, name, s) : -ENOMEM;
}

/* Labels the user or the outer container around it. */
static int label_outer(struct labels *l, const struct cgroup_id *id)
{
	struct strview user;

	return cgroup_user(id, &user) ? set_text(l, ENTITY_USER, user)
				      : set(l, ENTITY_OUTER, id->outer_id);
}

/* A service is a better name than an id. */
static struct strview service_of(const struct cgroup_id *id)
{
	struct strview name = strview_of(*id->service ? id->service : id->container_id);

	if (strview_suffix(&name, ".service"))
		return name;
	if (strview_len(&name) == 64)
		name.end = name.p + ENTITY_SHORT_ID;
	return name;
}

/* Sets a name as both the label and the service. */
static int label_host(struct labels *l, const char *label, const char *name)
{
	return set(l, label, name) || set(l, "service_name", name) ? -ENOMEM : 0;
}

static int label_unit(struct labels *l, const struct entity *entity)
{
	const struct unit unit = entity_unit_of(entity);

	if (set_text(l, ENTITY_USER, unit.user) || set_text(l, "slice", unit.slice))
		return -ENOMEM;
	return label_host(l, "unit", entity_name(entity));
}

static int label_kind(struct labels *l, const struct entity *entity)
{
	switch (entity->kind) {
	case ENTITY_CONTAINER:
		if (set(l, "container", entity->id.container_id) || label_outer(l, &entity->id) ||
		    set(l, "pod_uid", entity->id.pod_uid) || set(l, "unit", entity->id.service) ||
		    set_text(l, "service_name", service_of(&entity->id)))
			return -ENOMEM;
		if (entity->id.kind == CGROUP_KIND_SANDBOX &&
		    set(l, ENTITY_LEVEL, ENTITY_LEVEL_POD))
			return -ENOMEM;
		return set(l, "runtime", cgroup_runtime_name(entity->id.runtime));
	case ENTITY_POD:
		if (label_outer(l, &entity->id) || set(l, "pod_uid", entity->id.pod_uid) ||
		    set(l, "service_name", entity->id.pod_uid))
			return -ENOMEM;
		return set(l, ENTITY_LEVEL, ENTITY_LEVEL_POD);
	case ENTITY_UNIT:
		return label_unit(l, entity);
	case ENTITY_PROCESS:
		return label_host(l, "comm", entity_name(entity));
	case ENTITY_UNKNOWN:
	case ENTITY_KIND_MAX:
		break;
	}
	return set(l, "service_name", "unknown");
}

const char *entity_name(const struct entity *entity)
{
	if (entity->kind == ENTITY_POD)
		return entity->id.pod_uid;
	if (entity->kind == ENTITY_UNIT)
		return strrchr(entity->key, '/') + 1;
	return entity->kind == ENTITY_CONTAINER ? entity->id.container_id : entity->key + 1;
}

int entity_identity(const struct entity *entity, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels labels = {0};

	if (set(&labels, "node", entity->table->node) || label_kind(&labels, entity))
		return -ENOMEM;
	labels_swap(ret, &labels);
	return 0;
}

void entity_table_changed(struct entity_table *table)
{
	if (table->watcher)
		table->watcher(table->watcher_ctx);
}

void entity_set_labels(struct entity *entity, struct labels *labels, struct labels *settings)
{
	labels_swap(&entity->labels, labels);
	labels_swap(&entity->settings, settings);
	entity_table_changed(entity->table);
}

/* ---- the table ---- */

static size_t kind_max(enum entity_kind kind)
{
	return entity_has_dirs(kind) ? ENTITY_CONTAINERS_MAX : ENTITY_HOST_MAX;
}

static void entity_destroy(struct entity *entity)
{
	if (!entity)
		return;
	labels_deinit(&entity->labels);
	labels_deinit(&entity->settings);
	free(entity->left_out);
	free(entity);
}

DEFINE_CLEANUP(struct entity *, entity_destroyp, entity_destroy);

static size_t kind_count(const struct entity_table *table, enum entity_kind kind)
{
	if (entity_has_dirs(kind))
		return table->n[ENTITY_CONTAINER] + table->n[ENTITY_POD];
	return table->n[ENTITY_UNIT] + table->n[ENTITY_PROCESS];
}

static void entity_tell(struct entity_table *table, struct entity *entity)
{
	if (table->listener)
		table->listener(table->listener_ctx, entity);
}

/* Makes an entity and adds it to the table. @id: of a container or pod, else NULL. *@ret: an owned
 * reference. */
static int entity_add(struct entity_table *table, enum entity_kind kind, const char *key,
		      const struct cgroup_id *id, struct entity **ret)
{
	size_t n = strlen(key) + 1;
	_cleanup_(entity_destroyp) struct entity *entity = calloc(1, sizeof(*entity) + n);
	bool hash_oom = false;

	if (!entity)
		return -ENOMEM;
	entity->kind = kind;
	entity->table = table;
	entity->n_refs = 1;
	entity->first_seen_ns = nsec_monotonic();
	if (id)
		entity->id = *id;
	memcpy(entity->key, key, n);
	if (entity_identity(entity, &entity->labels))
		return -ENOMEM;
	HASH_ADD(hh, table->entities, key[0], strlen(entity->key), entity);
	if (hash_oom)
		return -ENOMEM;
	table->n[kind]++;
	entity_tell(table, entity);
	entity_table_changed(table);
	*ret = take_ptr(entity);
	return 0;
}

static struct entity *entity_find(struct entity_table *table, const char *key)
{
	struct entity *entity;

	HASH_FIND(hh, table->entities, key, strlen(key), entity);
	return entity ? entity_ref(entity) : NULL;
}

int entity_leave_out(struct entity *entity, const char *why)
{
	_cleanup_(freep) char *copy = NULL;

	if (why) {
		copy = strdup(why);
		if (!copy)
			return -ENOMEM;
	}
	free(entity->left_out);
	entity->left_out = take_ptr(copy);
	entity_table_changed(entity->table);
	return 0;
}

/* Hierarchies differ in detail: another path of the same container may name the pod. */
static int entity_enrich(struct entity *entity, const struct cgroup_id *id)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	struct cgroup_id was = entity->id;

	if (entity->id.pod_uid[0] || !id->pod_uid[0])
		return 0;
	entity->id = *id;
	if (entity_identity(entity, &labels)) {
		entity->id = was;
		return -ENOMEM;
	}
	if (!entity->named)
		labels_swap(&entity->labels, &labels);
	entity->stamp = 0;
	entity_tell(entity->table, entity);
	entity_table_changed(entity->table);
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

static int container_new(struct entity_table *table, const struct cgroup_id *id, const char *key,
			 struct entity **ret)
{
	const bool pod = id->kind == CGROUP_KIND_POD;
	struct entity_group *group;
	struct entity *entity;
	int r;

	r = entity_group_join(&table->groups, id, &group);
	if (r)
		return r < 0 ? r : ENTITY_TOO_MANY;
	if (entity_add(table, pod ? ENTITY_POD : ENTITY_CONTAINER, key, id, &entity)) {
		entity_group_leave(&table->groups, group);
		return -ENOMEM;
	}
	entity->group = group;
	entity->inner = id->outer_id[0] != '\0';
	table->n_inner += entity->inner;
	*ret = entity;
	return 0;
}

struct entity *entity_outer(const struct entity *entity)
{
	struct cgroup_id id = {.kind = CGROUP_KIND_CONTAINER};
	char key[CONTAINER_KEY_BYTES];
	struct entity *outer;

	if (entity->kind != ENTITY_CONTAINER || !entity->id.outer_id[0])
		return NULL;
	snprintf(id.container_id, sizeof(id.container_id), "%s", entity->id.outer_id);
	container_key(&id, key);
	HASH_FIND(hh, entity->table->entities, key, strlen(key), outer);
	return outer;
}

int entity_container(struct entity_table *table, const struct cgroup_id *id, struct entity **ret)
{
	char key[CONTAINER_KEY_BYTES];
	struct entity *found;

	container_key(id, key);
	found = entity_find(table, key);
	if (found && entity_enrich(found, id)) {
		entity_unref(found);
		return -ENOMEM;
	}
	if (found) {
		*ret = found;
		return 0;
	}
	if (kind_count(table, ENTITY_CONTAINER) >= kind_max(ENTITY_CONTAINER) ||
	    (id->outer_id[0] && table->n_inner >= ENTITY_INNER_MAX))
		return ENTITY_TOO_MANY;
	return container_new(table, id, key, ret);
}

/* The entity of a unit or a program; @key without its first letter is the name. */
static int entity_host(struct entity_table *table, enum entity_kind kind, const char *key,
		       struct entity **ret)
{
	struct entity *found = entity_find(table, key);

	if (found) {
		*ret = found;
		return 0;
	}
	if (kind_count(table, kind) >= kind_max(kind))
		return ENTITY_TOO_MANY;
	return entity_add(table, kind, key, NULL, ret);
}

/* Owned by the caller. */
static char *unit_key(const struct unit *unit)
{
	char *key;

	return asprintf(&key, "u%.*s/%.*s/%.*s", (int)strview_len(&unit->user), unit->user.p,
			(int)strview_len(&unit->slice), unit->slice.p,
			(int)strview_len(&unit->name), unit->name.p) < 0
		       ? NULL
		       : key;
}

struct unit entity_unit_of(const struct entity *entity)
{
	struct strview rest = strview_of(entity->kind == ENTITY_UNIT ? entity->key + 1 : "//");
	struct unit unit;

	if (!strview_until(&rest, '/', &unit.user) || !strview_until(&rest, '/', &unit.slice))
		return (struct unit){rest, rest, rest};
	unit.name = rest;
	return unit;
}

int entity_unit(struct entity_table *table, const struct unit *unit, struct entity **ret)
{
	_cleanup_(freep) char *key = unit_key(unit);

	return key ? entity_host(table, ENTITY_UNIT, key, ret) : -ENOMEM;
}

struct entity *entity_known_unit(struct entity_table *table, const struct unit *unit)
{
	_cleanup_(freep) char *key = unit_key(unit);
	struct entity *entity = NULL;

	if (key)
		HASH_FIND(hh, table->entities, key, strlen(key), entity);
	return entity;
}

int entity_process(struct entity_table *table, const char *comm, struct entity **ret)
{
	/* Kernel threads have a suffix for each CPU or work queue after a slash: "kworker/1:2-mm".
	 */
	size_t n = strcspn(comm, "/");
	char key[64];

	snprintf(key, sizeof(key), "p%.*s", (int)(n ? n : strlen(comm)), comm);
	return entity_host(table, ENTITY_PROCESS, key[1] ? key : "p?", ret);
}

struct entity *entity_unknown(struct entity_table *table)
{
	return table->unknown;
}

struct entity *entity_ref(struct entity *entity)
{
	entity->n_refs++;
	return entity;
}

void entity_unref(struct entity *entity)
{
	struct entity_table *table;

	if (!entity || --entity->n_refs)
		return;
	table = entity->table;
	HASH_DELETE(hh, table->entities, entity);
	table->n[entity->kind]--;
	table->n_inner -= entity->inner;
	entity_group_leave(&table->groups, entity->group);
	entity_destroy(entity);
	entity_table_changed(table);
}

bool entity_alive(const struct entity *entity)
{
	return !entity_has_dirs(entity->kind) || entity->n_live > 0;
}

bool entity_lives(struct entity_table *table, const struct cgroup_id *id)
{
	char key[CONTAINER_KEY_BYTES];
	struct entity *entity;

	container_key(id, key);
	HASH_FIND(hh, table->entities, key, strlen(key), entity);
	return entity && entity_alive(entity);
}

struct entity *entity_next(struct entity_table *table, const struct entity *entity)
{
	return entity ? entity->hh.next : table->entities;
}

DEFINE_CLEANUP(struct entity_table *, entity_table_freep, entity_table_free);

int entity_table_new(const char *node, struct entity_table **ret)
{
	_cleanup_(entity_table_freep) struct entity_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->node = strdup(node);
	if (!table->node || entity_add(table, ENTITY_UNKNOWN, "?", NULL, &table->unknown))
		return -ENOMEM;
	*ret = take_ptr(table);
	return 0;
}

void entity_table_listen(struct entity_table *table, entity_fn fn, void *ctx)
{
	table->listener = fn;
	table->listener_ctx = ctx;
	for (struct entity *entity = table->entities; fn && entity; entity = entity->hh.next)
		fn(ctx, entity);
}

void entity_table_watch(struct entity_table *table, entity_change_fn fn, void *ctx)
{
	table->watcher = fn;
	table->watcher_ctx = ctx;
}

void entity_table_free(struct entity_table *table)
{
	struct entity *entity, *next;

	if (!table)
		return;
	HASH_ITER(hh, table->entities, entity, next) {
		HASH_DELETE(hh, table->entities, entity);
		entity_group_leave(&table->groups, entity->group);
		entity_destroy(entity);
	}
	free(table->node);
	free(table);
}
