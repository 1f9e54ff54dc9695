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

/* The pages of a node with containers. */
struct node {
	struct tree tree;
	struct root proc;
	struct discovery *discovery;
	struct uisource *source;
};

static void node_init(struct node *n, size_t n_containers)
{
	struct discovery_opts opts = {.node_name = "n1", .proc = &n->proc};
	struct uisource_opts source = {.node = "n1"};
	char name[128];

	*n = (struct node){.proc = ROOT_INIT};
	tree_init(&n->tree);
	for (size_t i = 1; i <= n_containers; i++) {
		snprintf(name, sizeof(name), "unified/docker/%064zx", i);
		tree_mkdir(n->tree.fd, name);
	}
	assert_int_equal(root_open("/proc", &n->proc), 0);
	opts.cgroupfs_root = n->tree.path;
	assert_int_equal(discovery_new(&opts, &n->discovery), 0);
	source.discovery = n->discovery;
	assert_int_equal(uisource_new(&source, &n->source), 0);
}

static void node_deinit(struct node *n)
{
	uisource_free(n->source);
	discovery_free(n->discovery);
	root_deinit(&n->proc);
	tree_deinit(&n->tree);
}

/* Each entity is grouped by its labels and told, some in a step; and one alone. */
static void test_slices(void **state)
{
	struct seen_table all = {0}, one = {0};
	const struct ui_source *ui;
	struct ui_listing *listing;
	struct node node;
	size_t n_steps;

	(void)state;
	node_init(&node, N);
	ui = uisource_get(node.source);
	assert_int_equal(list(ui, NULL, &all, &n_steps), 0);
	assert_int_equal(all.n, N);
	assert_int_equal(all.n_again, 0);
	assert_in_range(n_steps, 2 * N / 100, 2 * N);
	assert_int_equal(list(ui, all.items->id, &one, &n_steps), 0);
	assert_int_equal(one.n, 1);
	assert_string_equal(one.items->id, all.items->id);
	assert_in_range(n_steps, N / 100, N);
	assert_int_equal(list(ui, "other", &one, &n_steps), UI_GONE);
	assert_int_equal(one.n, 1);

	assert_int_equal(ui->list(ui->ctx, NULL, &listing), 0);
	assert_int_equal(ui->list_step(listing, on_entity, &one), UI_MORE);
	ui->list_free(listing); /* in the middle */
	seen_deinit(&all);
	seen_deinit(&one);
	node_deinit(&node);
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
	struct node node;
	void *ui;

	(void)state;
	node_init(&node, 3);
	ui = (void *)(uintptr_t)uisource_get(node.source);
	assert_in_range(allocfail_each(copy_pages, ui), 10, 200);
	node_deinit(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
