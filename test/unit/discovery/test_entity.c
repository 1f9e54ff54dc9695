// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "discovery/entity.h"
#include "discovery/process_cache.h"
#include "support/allocfail.h"

#define ID1 "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define ID2 "40c03570b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a9"
#define POD "2c48913c-b29f-11e7-9350-020968147796"

static struct entity *container(struct entity_table *table, const char *path)
{
	struct cgroup_id id;
	struct entity *entity = NULL;

	cgroup_parse_path(strview_of(path), &id);
	assert_int_equal(entity_container(table, &id, &entity), 0);
	return entity;
}

static void assert_label(const struct entity *entity, const char *name, const char *value)
{
	const char *is = labels_get(&entity->labels, name);

	if (!value)
		assert_null(is);
	else
		assert_string_equal(is ? is : "(none)", value);
}

static int unit_named(struct entity_table *table, const char *name, struct entity **ret)
{
	const struct unit unit = {strview_of(name), strview_of("system.slice"), strview_of("")};

	return entity_unit(table, &unit, ret);
}

static size_t count(struct entity_table *table)
{
	struct entity *entity = NULL;
	size_t n = 0;

	while ((entity = entity_next(table, entity)))
		n++;
	return n;
}

static void test_labels(void **state)
{
	struct entity_table *table;
	struct entity *o;

	(void)state;
	assert_int_equal(entity_table_new("node-1", &table), 0);

	o = container(table, "/kubepods/burstable/pod" POD "/" ID1);
	assert_label(o, "container", ID1);
	assert_label(o, "pod_uid", POD);
	assert_label(o, "runtime", "unknown");
	assert_label(o, "node", "node-1");
	assert_label(o, "service_name", "73051af27110");
	assert_label(o, "outer_container", NULL);
	assert_int_equal(o->kind, ENTITY_CONTAINER);
	entity_unref(o);

	o = container(table, "/lxc/a-container-with-a-name");
	assert_label(o, "container", "a-container-with-a-name");
	assert_label(o, "service_name", "a-container-with-a-name");
	assert_label(o, "pod_uid", NULL);
	entity_unref(o);

	o = container(table, "/kubepods/pod" POD "/kata_" ID1);
	assert_label(o, "container", ID1);
	assert_label(o, "level", "pod");
	entity_unref(o);

	o = container(table, "/docker/" ID1 "/kubepods/burstable/pod" POD);
	assert_int_equal(o->kind, ENTITY_POD);
	assert_string_equal(entity_name(o), POD);
	assert_label(o, "pod_uid", POD);
	assert_label(o, "level", "pod");
	assert_label(o, "service_name", POD);
	assert_label(o, "container", NULL);
	assert_label(o, "outer_container", ID1);
	assert_false(entity_alive(o)); /* without a known directory */
	entity_unref(o);

	o = container(table, "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/"
			     "libpod-payload-" ID1);
	assert_label(o, "container", ID1);
	assert_label(o, "runtime", "podman");
	assert_label(o, "unit", "web.service");
	assert_label(o, "user", "1000");
	assert_label(o, "service_name", "web");
	assert_label(o, "outer_container", NULL);
	entity_unref(o);

	o = container(table, "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID1
			     ".scope/container");
	assert_label(o, "unit", NULL);
	assert_label(o, "user", "1000");
	assert_label(o, "service_name", "73051af27110");
	entity_unref(o);

	/* another daemon's service is not the service of the daemon's containers */
	o = container(table, "/system.slice/containerd.service/kubepods-pod" POD
			     ".slice:cri-containerd:" ID1);
	assert_label(o, "unit", NULL);
	entity_unref(o);

	/* a cgroup inside a container of podman does not belong to the service */
	o = container(table, "/system.slice/web.service/libpod-payload-" ID1 "/libpod-" ID2);
	assert_label(o, "unit", NULL);
	assert_label(o, "outer_container", ID1);
	entity_unref(o);

	assert_int_equal(unit_named(table, "ssh.service", &o), 0);
	assert_label(o, "unit", "ssh.service");
	assert_label(o, "service_name", "ssh.service");
	assert_label(o, "slice", "system.slice");
	assert_label(o, "user", NULL);
	assert_label(o, "node", "node-1");
	entity_unref(o);

	assert_int_equal(entity_process(table, "sh", &o), 0);
	assert_label(o, "comm", "sh");
	assert_label(o, "service_name", "sh");
	entity_unref(o);

	o = entity_unknown(table);
	assert_label(o, "service_name", "unknown");
	assert_int_equal(o->kind, ENTITY_UNKNOWN);
	assert_int_equal(count(table), 1);
	entity_table_free(table);
}

/* Units of two users, or of a user and the system, are different. */
static void test_users_units(void **state)
{
	struct unit unit = {strview_of("web.service"), strview_of("app.slice"), strview_of("1000")};
	struct entity_table *table;
	struct entity *a, *b, *c, *again;

	(void)state;
	assert_int_equal(entity_table_new("", &table), 0);
	assert_int_equal(entity_unit(table, &unit, &a), 0);
	assert_int_equal(entity_unit(table, &unit, &again), 0);
	assert_ptr_equal(a, again);
	assert_ptr_equal(entity_known_unit(table, &unit), a);
	unit.user = strview_of("1001");
	assert_null(entity_known_unit(table, &unit));
	assert_int_equal(entity_unit(table, &unit, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(unit_named(table, "web.service", &c), 0);
	assert_ptr_not_equal(a, c);
	assert_string_equal(entity_name(a), "web.service");
	assert_label(a, "unit", "web.service");
	assert_label(a, "slice", "app.slice");
	assert_label(a, "user", "1000");
	assert_label(b, "user", "1001");
	assert_label(b, "service_name", "web.service");
	assert_label(c, "user", NULL);
	entity_unref(a);
	entity_unref(again);
	entity_unref(b);
	entity_unref(c);
	entity_table_free(table);
}

struct comm_row {
	const char *comm;
	const char *name;
};

static const struct comm_row comm_rows[] = {
	{"sh", "sh"},
	{"kworker/0:1H-kbl", "kworker"},
	{"ksoftirqd/1", "ksoftirqd"},
	{"/x", "/x"},
	{"", "?"},
	{"a\xff", "a?"},
};

static void test_comms(void **state)
{
	struct entity_table *table;
	struct entity *o;

	(void)state;
	assert_int_equal(entity_table_new("", &table), 0);
	for (size_t i = 0; i < array_size(comm_rows); i++) {
		assert_int_equal(entity_process(table, comm_rows[i].comm, &o), 0);
		assert_label(o, "service_name", comm_rows[i].name);
		assert_label(o, "node", NULL);
		entity_unref(o);
	}
	entity_table_free(table);
}

static void test_left_out(void **state)
{
	struct entity_table *entities;
	struct entity *unit;
	char why[] = "rule 1";

	(void)state;
	assert_int_equal(entity_table_new("n1", &entities), 0);
	assert_int_equal(unit_named(entities, "u.service", &unit), ENTITY_OK);
	assert_null(unit->left_out);
	assert_int_equal(entity_leave_out(unit, why), 0);
	why[5] = '2';
	assert_string_equal(unit->left_out, "rule 1");
	assert_int_equal(entity_leave_out(unit, why), 0);
	assert_string_equal(unit->left_out, "rule 2");
	assert_int_equal(entity_leave_out(unit, NULL), 0);
	assert_null(unit->left_out);
	entity_unref(unit);
	entity_table_free(entities);
}

static void note_change(void *ctx)
{
	unsigned int *n = ctx;

	*n += 1;
}

/* Each change is told; a look is not a change. */
static void test_changes(void **state)
{
	struct labels labels = {0}, settings = {0};
	struct entity_table *table;
	struct entity *unit, *same;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(entity_table_new("n1", &table), 0);
	entity_table_watch(table, note_change, &n);
	assert_int_equal(unit_named(table, "u.service", &unit), ENTITY_OK);
	assert_int_equal(n, 1);
	assert_int_equal(unit_named(table, "u.service", &same), ENTITY_OK);
	assert_non_null(entity_next(table, NULL));
	entity_unref(same);
	assert_int_equal(n, 1);
	assert_int_equal(entity_leave_out(unit, "rule 1"), 0);
	assert_int_equal(n, 2);
	entity_set_labels(unit, &labels, &settings);
	assert_int_equal(n, 3);
	entity_table_changed(table);
	assert_int_equal(n, 4);
	entity_unref(unit);
	assert_int_equal(n, 5);
	entity_table_watch(table, NULL, NULL);
	assert_int_equal(unit_named(table, "u.service", &unit), ENTITY_OK);
	assert_int_equal(n, 5);
	entity_unref(unit);
	labels_deinit(&labels);
	labels_deinit(&settings);
	entity_table_free(table);
}

static void test_same_and_other(void **state)
{
	struct entity_table *table;
	struct entity *a, *b, *inner, *unit, *process;

	(void)state;
	assert_int_equal(entity_table_new("n", &table), 0);
	a = container(table, "/docker/" ID1);
	/* another tree shows the same container with the pod */
	b = container(table, "/kubepods/pod" POD "/" ID1);
	assert_ptr_equal(a, b);
	assert_label(a, "pod_uid", POD);
	/* a container with directories of another's id joins no group */
	inner = container(table, "/docker/" ID2 "/kubepods/pod" POD "/" ID1);
	assert_ptr_not_equal(inner, a);
	assert_label(inner, "container", ID1);
	assert_label(inner, "outer_container", ID2);
	assert_false(labels_equal(&inner->labels, &a->labels));
	/* kinds do not meet either */
	assert_int_equal(unit_named(table, "x", &unit), 0);
	assert_int_equal(entity_process(table, "x", &process), 0);
	assert_ptr_not_equal(unit, process);
	entity_unref(a);
	entity_unref(b);
	entity_unref(inner);
	entity_unref(unit);
	entity_unref(process);
	entity_unref(NULL);
	assert_int_equal(count(table), 1);
	entity_table_free(table);
}

struct heard {
	const struct entity *entity;
	size_t n;
};

/* Reported entities are complete, and may be labelled at once. */
static void hear(void *ctx, struct entity *entity)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};
	struct heard *heard = ctx;

	heard->entity = entity;
	heard->n++;
	assert_int_equal(entity->stamp, 0);
	assert_int_equal(entity_identity(entity, &labels), 0);
	assert_true(labels_equal(&labels, &entity->labels));
	assert_int_equal(labels_set(&labels, "pod", "p"), 0);
	assert_int_equal(labels_set(&settings, "go_heap", "force"), 0);
	entity_set_labels(entity, &labels, &settings);
	entity->stamp = 7;
	assert_null(labels_get(&labels, "pod"));
}

static void test_listener(void **state)
{
	struct entity_table *table;
	struct heard heard = {0};
	struct entity *a, *same, *unit;

	(void)state;
	assert_int_equal(entity_table_new("n", &table), 0);
	assert_int_equal(unit_named(table, "u.service", &unit), ENTITY_OK);
	entity_table_listen(table, hear, &heard);
	assert_int_equal(heard.n, 2); /* the unknown entity and the unit */
	a = container(table, "/docker/" ID1);
	assert_int_equal(heard.n, 3);
	assert_ptr_equal(heard.entity, a);
	assert_label(a, "pod", "p");
	assert_label(a, "container", ID1);
	assert_string_equal(labels_get(&a->settings, "go_heap"), "force");
	/* nothing new */
	same = container(table, "/docker/" ID1);
	assert_int_equal(heard.n, 3);
	entity_unref(same);
	/* more facts arrive: a named entity keeps its name until the next naming */
	same = container(table, "/kubepods/pod" POD "/" ID1);
	assert_int_equal(heard.n, 4);
	assert_label(a, "pod_uid", POD);
	assert_label(a, "pod", "p");
	entity_unref(same);
	entity_table_listen(table, NULL, NULL);
	same = container(table, "/docker/" ID2);
	assert_int_equal(heard.n, 4);
	entity_unref(same);
	entity_unref(a);
	entity_unref(unit);
	entity_table_free(table);
}

/* An entity above the ceiling of each class; room again after a removal. */
static void test_ceilings(void **state)
{
	static struct entity *entities[8193];
	struct entity_table *table;
	char name[16];
	size_t n = 0;
	int r = 0;

	(void)state;
	assert_int_equal(entity_table_new("n", &table), 0);
	for (; n < array_size(entities); n++) {
		snprintf(name, sizeof(name), "c%zu", n);
		r = entity_process(table, name, &entities[n]);
		if (r)
			break;
	}
	assert_int_equal(r, ENTITY_TOO_MANY);
	assert_int_equal(n, 2048);
	entity_unref(entities[0]);
	assert_int_equal(unit_named(table, "u.service", &entities[0]), 0);
	assert_int_equal(unit_named(table, "v.service", &entities[n]), ENTITY_TOO_MANY);
	while (n)
		entity_unref(entities[--n]);

	for (; n < array_size(entities); n++) {
		struct cgroup_id id = {.kind = CGROUP_KIND_CONTAINER};

		snprintf(id.container_id, sizeof(id.container_id), "%zu", n);
		r = entity_container(table, &id, &entities[n]);
		if (r)
			break;
	}
	assert_int_equal(r, ENTITY_TOO_MANY);
	assert_int_equal(n, 8192);
	while (n)
		entity_unref(entities[--n]);
	entity_table_free(table);
}

/* Returns the number of containers among the @n that found room and keep the place. */
static size_t fill(struct entity_table *table, struct cgroup_id id, size_t n)
{
	struct entity *entity;
	size_t i = 0;

	for (; i < n; i++) {
		snprintf(id.container_id, sizeof(id.container_id), "%.40s%s%zu", id.outer_id,
			 id.pod_uid, i);
		if (entity_container(table, &id, &entity))
			break;
	}
	return i;
}

/* A single pod, or the inventions of a single container, leave room for others. */
static void test_groups(void **state)
{
	struct cgroup_id id = {.kind = CGROUP_KIND_CONTAINER, .pod_uid = POD};
	struct entity_table *table;
	struct entity *entity;
	size_t n = 0;

	(void)state;
	assert_int_equal(entity_table_new("n", &table), 0);
	assert_int_equal(fill(table, id, 10000), 1024);
	/* already in the table */
	strcpy(id.container_id, POD "7");
	assert_int_equal(entity_container(table, &id, &entity), 0);
	entity_unref(entity);
	/* a container leaves: the place is free */
	entity_unref(entity);
	assert_int_equal(fill(table, id, 10000), 1024);
	strcpy(id.pod_uid, "another pod");
	assert_int_equal(fill(table, id, 10), 10);
	/* in a single container; and in any number of containers */
	for (int i = 0; i < 6; i++) {
		snprintf(id.outer_id, sizeof(id.outer_id), "outer %d ", i);
		n += fill(table, id, 10000);
		assert_int_equal(n, i < 4 ? 1024 * (i + 1) : 4096);
	}
	id.outer_id[0] = '\0';
	strcpy(id.pod_uid, "a third pod");
	assert_int_equal(fill(table, id, 10000), 1024);
	entity_table_free(table);
}

static void test_targets(void **state)
{
	struct pid_id p = {.pid = 5, .start_ticks = 6}, later = {.pid = 5, .start_ticks = 7};
	struct entity_table *entities;
	struct process_cache *cache;
	struct cached_process *t;
	struct entity *a, *b;

	(void)state;
	assert_int_equal(entity_table_new("n", &entities), 0);
	assert_int_equal(process_cache_new(&cache), 0);
	assert_int_equal(entity_process(entities, "a", &a), 0);
	assert_int_equal(entity_process(entities, "b", &b), 0);
	assert_int_equal(process_cache_set(cache, &p, a, &t), 0);
	assert_int_equal(process_cache_set(cache, &later, b, &t), 0);
	assert_ptr_equal(process_cache_find(cache, &p)->entity, a);
	assert_ptr_equal(process_cache_find(cache, &later)->entity, b);
	/* the process keeps the entity until the process gets another entity */
	entity_unref(a);
	entity_unref(b);
	assert_int_equal(count(entities), 3);
	assert_int_equal(process_cache_set(cache, &p, b, &t), 0);
	assert_int_equal(count(entities), 2);
	assert_int_equal(process_cache_set(cache, &p, b, &t), 0);
	assert_ptr_equal(t->entity, b);
	process_cache_expire(cache, UINT64_MAX);
	assert_non_null(process_cache_find(cache, &p));
	t->used_ns -= 1000;
	process_cache_expire(cache, 0);
	assert_null(process_cache_find(cache, &p));
	process_cache_free(cache);
	assert_int_equal(count(entities), 1);
	entity_table_free(entities);
}

static int build(void *ctx)
{
	struct pid_id p = {.pid = 5, .start_ticks = 6};
	struct process_cache *cache = NULL;
	struct entity_table *entities = NULL;
	struct entity *entity = NULL, *unit = NULL;
	struct cgroup_id id;
	struct cached_process *t;
	int r;

	(void)ctx;
	cgroup_parse_path(strview_of("/docker/" ID1), &id);
	r = entity_table_new("n", &entities);
	if (!r)
		r = process_cache_new(&cache);
	if (!r)
		r = entity_container(entities, &id, &entity);
	cgroup_parse_path(strview_of("/kubepods/pod" POD "/" ID1), &id);
	if (!r) {
		struct entity *same;

		r = entity_container(entities, &id, &same);
		if (!r)
			entity_unref(same);
	}
	if (!r)
		r = unit_named(entities, "u.service", &unit);
	if (!r)
		r = process_cache_set(cache, &p, entity, &t);
	process_cache_free(cache);
	entity_unref(entity);
	entity_unref(unit);
	entity_table_free(entities);
	return r;
}

static void test_without_memory(void **state)
{
	(void)state;
	assert_true(allocfail_each(build, NULL) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),	       cmocka_unit_test(test_users_units),
		cmocka_unit_test(test_comms),	       cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_same_and_other), cmocka_unit_test(test_listener),
		cmocka_unit_test(test_ceilings),       cmocka_unit_test(test_groups),
		cmocka_unit_test(test_targets),	       cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
