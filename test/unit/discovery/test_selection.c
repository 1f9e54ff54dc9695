// SPDX-License-Identifier: Apache-2.0
/* Which entities a request's words select: containers of a false cgroup tree. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/root.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "discovery/selection.h"
#include "support/allocfail.h"
#include "support/tree.h"

#define TAIL "2c0a2d7f8f7ba5aa6a8f17e1f2b6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b"
#define ID_A "a1bd2" TAIL
#define ID_B "a1bd3" TAIL
#define ID_C "dbdd4" TAIL

struct fixture {
	struct root proc;
	struct tree tree;
	struct discovery *discovery;
};

/* NULL for @pod: no names yet. */
static void name(struct fixture *f, const char *id, const char *pod, const char *container,
		 const char *service)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};
	struct entity *entity = NULL;

	while ((entity = discovery_next_entity(f->discovery, entity)))
		if (strcmp(entity->id.container_id, id) == 0)
			break;
	assert_non_null(entity);
	entity->pending = !pod;
	if (!pod)
		return;
	assert_int_equal(labels_set(&labels, "namespace", "shop"), 0);
	assert_int_equal(labels_set(&labels, "pod", pod), 0);
	assert_int_equal(labels_set(&labels, "container", container), 0);
	assert_int_equal(labels_set(&labels, "service_name", service), 0);
	entity_set_labels(entity, &labels, &settings);
	entity->named = true;
}

static void init(struct fixture *f)
{
	struct discovery_opts opts = {.proc = &f->proc, .node_name = "n"};

	*f = (struct fixture){.proc = ROOT_INIT};
	tree_init(&f->tree);
	tree_write(f->tree.fd, "cgroup.controllers", "");
	tree_mkdir(f->tree.fd, "docker/" ID_A);
	tree_mkdir(f->tree.fd, "docker/" ID_B);
	tree_mkdir(f->tree.fd, "docker/" ID_C);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	opts.cgroupfs_root = f->tree.path;
	assert_int_equal(discovery_new(&opts, &f->discovery), 0);
	name(f, ID_A, "cart-0", "db", "cart");
	name(f, ID_B, "cart-0", "app", "cart");
	name(f, ID_C, NULL, NULL, NULL);
}

static void deinit(struct fixture *f)
{
	discovery_free(f->discovery);
	tree_deinit(&f->tree);
	root_deinit(&f->proc);
}

/* A letter for each selected container: capital with names, small without them. */
static void selected(struct fixture *f, const struct selection *s, char ret[4])
{
	static const char *const ids[] = {ID_A, ID_B, ID_C};
	struct entity *entity = NULL;
	char has[3] = "...";
	size_t n = 0;

	while ((entity = discovery_next_entity(f->discovery, entity)))
		for (size_t i = 0; i < array_size(ids); i++) {
			if (strcmp(entity->id.container_id, ids[i]) != 0)
				continue;
			if (selection_has(s, entity)) {
				assert_true(selection_may_have(s, entity));
				has[i] = (char)('A' + i);
			} else if (selection_may_have(s, entity)) {
				has[i] = (char)('a' + i);
			}
		}
	for (size_t i = 0; i < array_size(ids); i++)
		if (has[i] != '.')
			ret[n++] = has[i];
	ret[n] = '\0';
}

static void words(void **state)
{
	static const struct {
		const char *name;
		struct selection_words words;
		int r;
		const char *selected;
	} rows[] = {
		{"everything", {NULL, NULL, NULL}, 0, "ABC"},
		{"a whole id", {ID_A, NULL, NULL}, 0, "A"},
		{"the beginning of an id", {"a1bd3", NULL, NULL}, 0, "B"},
		{"with the runtime in front", {"docker://a1bd3", NULL, NULL}, 0, "B"},
		{"the beginning of two", {"a1bd", NULL, NULL}, SELECTION_AMBIGUOUS, NULL},
		{"the id of a container without names", {"dbd", NULL, NULL}, 0, "C"},
		{"a name, also the beginning of an id", {"db", NULL, NULL}, 0, "Ac"},
		{"an unknown name", {"web", NULL, NULL}, 0, "c"},
		{"a pod", {NULL, "shop/cart-0", NULL}, 0, "ABc"},
		{"a pod elsewhere", {NULL, "shop2/cart-0", NULL}, 0, "c"},
		{"half a namespace", {NULL, "sho/cart-0", NULL}, 0, "c"},
		{"half a pod", {NULL, "shop/cart-", NULL}, 0, "c"},
		{"no slash", {NULL, "shop", NULL}, 0, "c"},
		{"a service", {NULL, NULL, "cart"}, 0, "ABc"},
		{"half a service", {NULL, NULL, "car"}, 0, "c"},
		{"all three", {"app", "shop/cart-0", "cart"}, 0, "Bc"},
		{"an id of another service", {ID_A, NULL, "web"}, 0, ""},
	};
	struct fixture f;

	(void)state;
	init(&f);
	for (size_t i = 0; i < array_size(rows); i++) {
		struct selection s = {.id = ""};
		char got[4];
		int r;

		row_begin(rows[i].name);
		r = selection_init(&s, f.discovery, &rows[i].words);
		assert_int_equal(r, rows[i].r);
		if (!r) {
			selected(&f, &s, got);
			assert_string_equal(got, rows[i].selected);
			assert_int_equal(selection_is_all(&s), i == 0);
		}
		selection_deinit(&s);
	}
	deinit(&f);
}

static int make(void *ctx)
{
	const struct selection_words all = {"web", "shop/cart-0", "cart"};
	struct selection s = {.id = ""};
	struct fixture *f = ctx;
	int r = selection_init(&s, f->discovery, &all);

	selection_deinit(&s);
	return r;
}

static void no_memory(void **state)
{
	struct fixture f;

	(void)state;
	init(&f);
	assert_int_equal(allocfail_each(make, &f), 3);
	deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
