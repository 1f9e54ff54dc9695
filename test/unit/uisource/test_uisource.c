// SPDX-License-Identifier: Apache-2.0
/* The list of the pages: entities of a false cgroup tree, without profilers and without a store. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/root.h"
#include "discovery/discovery.h"
#include "server/snapshot.h"
#include "support/allocfail.h"
#include "support/tree.h"
#include "uisource/uisource.h"

#define N 1000

struct seen {
	char id[256];
	UT_hash_handle hh;
};

struct seen_table {
	struct seen *items;
	size_t n, n_again;
};

static void on_entity(void *arg, const struct ui_entity *entity)
{
	struct seen_table *table = arg;
	bool hash_oom = false;
	struct seen *seen;

	if (strcmp(entity->kind, "container") != 0)
		return; /* processes without an entity */
	assert_string_equal(entity->runtime, "docker");
	assert_null(entity->excluded);
	table->n++;
	HASH_FIND_STR(table->items, entity->id, seen);
	table->n_again += seen != NULL;
	if (seen)
		return;
	seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	snprintf(seen->id, sizeof(seen->id), "%s", entity->id);
	HASH_ADD_STR(table->items, id, seen);
	assert_false(hash_oom);
}

static int list(const struct ui_source *ui, const char *id, struct seen_table *ret, size_t *n_steps)
{
	struct ui_listing *listing;
	int r;

	*n_steps = 1;
	assert_int_equal(ui->list(ui->ctx, id, &listing), 0);
	while ((r = ui->list_step(listing, on_entity, ret)) == UI_MORE)
		++*n_steps;
	ui->list_free(listing);
	return r;
}

static void seen_deinit(struct seen_table *table)
{
	struct seen *seen, *next;

	HASH_ITER(hh, table->items, seen, next) {
		HASH_DEL(table->items, seen);
		free(seen);
	}
	*table = (struct seen_table){0};
}

/* Each entity is grouped by its labels and told, some in a step; and one alone. */
static void test_slices(void **state)
{
	struct discovery_opts opts = {.node_name = "n1"};
	struct seen_table all = {0}, one = {0};
	struct root proc = ROOT_INIT;
	struct ui_listing *listing;
	struct discovery *d;
	struct uisource *u;
	struct tree tree;
	char name[128];
	size_t n_steps;

	(void)state;
	tree_init(&tree);
	for (size_t i = 1; i <= N; i++) {
		snprintf(name, sizeof(name), "unified/docker/%064zx", i);
		tree_mkdir(tree.fd, name);
	}
	assert_int_equal(root_open("/proc", &proc), 0);
	opts.proc = &proc;
	opts.cgroupfs_root = tree.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_int_equal(uisource_new(&(struct uisource_opts){.discovery = d, .node = "n1"}, &u),
			 0);
	assert_int_equal(list(uisource_get(u), NULL, &all, &n_steps), 0);
	assert_int_equal(all.n, N);
	assert_int_equal(all.n_again, 0);
	assert_in_range(n_steps, 2 * N / 100, 2 * N);
	assert_int_equal(list(uisource_get(u), all.items->id, &one, &n_steps), 0);
	assert_int_equal(one.n, 1);
	assert_string_equal(one.items->id, all.items->id);
	assert_in_range(n_steps, N / 100, N);
	assert_int_equal(list(uisource_get(u), "other", &one, &n_steps), UI_GONE);
	assert_int_equal(one.n, 1);

	assert_int_equal(uisource_get(u)->list(u, NULL, &listing), 0);
	assert_int_equal(uisource_get(u)->list_step(listing, on_entity, &one), UI_MORE);
	uisource_get(u)->list_free(listing); /* in the middle */
	seen_deinit(&all);
	seen_deinit(&one);
	uisource_free(u);
	discovery_free(d);
	root_deinit(&proc);
	tree_deinit(&tree);
}

static int copy_page(const struct ui_source *ui, const char *id)
{
	struct ui_snapshot *s;
	int r = ui_snapshot_new(ui, id, &s);

	if (r)
		return r;
	do
		r = ui_snapshot_step(s);
	while (r == UI_MORE);
	ui_snapshot_free(s);
	return r;
}

static int copy_pages(void *ctx)
{
	const struct ui_source *ui = ctx;
	int r = copy_page(ui, NULL);

	return r ? r : copy_page(ui, "other") == UI_GONE ? 0 : -ENOMEM;
}

/* Each allocation fails once. */
static void test_out_of_memory(void **state)
{
	struct discovery_opts opts = {.node_name = "n1"};
	struct root proc = ROOT_INIT;
	struct discovery *d;
	struct uisource *u;
	struct tree tree;
	char name[128];

	(void)state;
	tree_init(&tree);
	for (size_t i = 1; i <= 3; i++) {
		snprintf(name, sizeof(name), "unified/docker/%064zx", i);
		tree_mkdir(tree.fd, name);
	}
	assert_int_equal(root_open("/proc", &proc), 0);
	opts.proc = &proc;
	opts.cgroupfs_root = tree.path;
	assert_int_equal(discovery_new(&opts, &d), 0);
	assert_int_equal(uisource_new(&(struct uisource_opts){.discovery = d, .node = "n1"}, &u),
			 0);
	assert_in_range(allocfail_each(copy_pages, (void *)(uintptr_t)uisource_get(u)), 10, 200);
	uisource_free(u);
	discovery_free(d);
	root_deinit(&proc);
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
