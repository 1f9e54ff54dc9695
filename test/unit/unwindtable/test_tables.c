// SPDX-License-Identifier: Apache-2.0
/* Tables in page space, found by the walker's own lookup; the kernel is an array here. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memo.bpf.h"
#include "lib/table_host.h"
#include "support/allocfail.h"
#include "unwindtable/tables.h"

#define SLABS 4
#define SEC   1000000000ull
#define TEXT  0x1000

struct kernel {
	struct table_exe exes[TABLE_EXES];
	struct table_use uses[TABLE_EXES];
	struct unwind_rule rules[TABLE_RULES];
	struct table_rule_run rule_runs[TABLE_RULE_RUNS];
	struct table_page table_pages[SLABS * TABLE_SLAB_PAGES];
	struct memo memo; /* of a CPU that looks at every table */
	struct tables *tables;
	uint64_t now_ns;
	bool later; /* slabs are */
	int n_made;
};

static int make(void *ctx, uint32_t number)
{
	struct kernel *k = ctx;

	if (number >= SLABS)
		return -ENOMEM;
	k->n_made++;
	return k->later ? PAGE_POOL_LATER : 0;
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct kernel *k = ctx;

	(void)n;
	return &k->table_pages[(size_t)number * TABLE_SLAB_PAGES + first];
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	(void)ctx;
	(void)mem;
	(void)n;
}

static struct kernel *kernel(uint64_t budget_bytes)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct tables_opts opts = {.budget_bytes = budget_bytes};

	assert_non_null(k);
	k->now_ns = 1000 * SEC;
	opts.memory = (struct tables_memory){
		k->exes, k->uses, k->rules, k->rule_runs, {k, make, map, unmap}};
	assert_int_equal(tables_new(&opts, &k->tables), 0);
	return k;
}

static void kernel_free(struct kernel *k)
{
	if (k)
		tables_free(k->tables);
	free(k);
}

DEFINE_CLEANUP(struct kernel *, kernel_freep, kernel_free);

/* ---------------------------------------------------------------- images */

/* An image's rows depend on its number only; images share most rules and rule runs. */
static struct unwind_rule rule_of(uint32_t image, uint32_t i)
{
	return (struct unwind_rule){.cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_X86_SP,
				    .cfa_off = (int32_t)(8 + 8 * (i % (20 + image % 50))),
				    .fp_off = i % 97 ? 0 : (int32_t)image,
				    .ra_off = -8};
}

/* Images from this number on have no rule runs: their tables are large. */
#define SPREAD 5000

static uint64_t vaddr_of(uint32_t image, uint32_t i)
{
	if (image >= SPREAD)
		return TEXT + (uint64_t)i * 20;
	return TEXT + i / 8 * (100 + image % 7) + i % 8 * 2;
}

static struct table *table_of(uint32_t image, uint32_t n)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table = NULL;

	assert_int_equal(rows_new(TEXT, UINT64_MAX, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, vaddr_of(image, n)), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct unwind_rule rule = rule_of(image, i);

		assert_int_equal(rows_add(rows, vaddr_of(image, i), &rule), 0);
	}
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	return table;
}

static uint16_t get(struct kernel *k, uint32_t image)
{
	const struct file_id file = {.inode = image};
	uint16_t exe = 0;

	assert_int_equal(tables_exe_get(k->tables, &file, k->now_ns, &exe), 0);
	assert_int_not_equal(exe, 0);
	return exe;
}

static int publish(struct kernel *k, uint16_t exe, uint32_t image, uint32_t n)
{
	return tables_publish(k->tables, exe, table_of(image, n), k->now_ns);
}

/* Whether @exe leads to the whole table of @image, also through a memo with rules of all tables
 * before. */
static bool leads_to(struct kernel *k, const struct table_exe *exe, uint32_t image, uint32_t n)
{
	const struct table_space space = {k->table_pages, k->rules,
					  k->rule_runs,	  array_size(k->table_pages),
					  TABLE_RULES,	  TABLE_RULE_RUNS};

	for (uint32_t i = 0; i < n; i++) {
		struct unwind_rule want = rule_of(image, i), got = {0}, known = {0};

		/* the first call adds the entry, the second finds it */
		for (int n_calls = 0; n_calls < 2; n_calls++)
			if (memo_find(&k->memo, &space, exe, vaddr_of(image, i), &known) !=
			    TABLE_FOUND)
				return false;
		if (table_find(&space, exe, vaddr_of(image, i), &got) != TABLE_FOUND ||
		    memcmp(&got, &want, sizeof(got)) != 0 ||
		    memcmp(&known, &want, sizeof(known)) != 0)
			return false;
	}
	return true;
}

static bool leads_nowhere(const struct kernel *k, uint16_t exe)
{
	return k->exes[exe].n_blocks == 0;
}

static void seconds(struct kernel *k, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		k->now_ns += SEC;
		tables_tick(k->tables, k->now_ns);
	}
}

/* ---------------------------------------------------------------- one table and two */

static void test_publish(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t a = get(k, 1), b = get(k, 2);
	struct tables_stats stats;

	assert_int_not_equal(a, b);
	assert_int_equal(get(k, 1), a);
	assert_false(tables_live(k->tables, a));
	assert_int_equal(publish(k, a, 1, 5000), 0);
	assert_int_equal(publish(k, b, 2, 30), 0);
	assert_true(tables_live(k->tables, a));
	assert_true(leads_to(k, &k->exes[a], 1, 5000));
	assert_true(leads_to(k, &k->exes[b], 2, 30));
	stats = tables_stats(k->tables);
	assert_int_equal(stats.n_live, 2);
	assert_int_equal(stats.loads, 2);
	assert_int_equal(stats.rules_lost, 0);
	assert_true(stats.rules > 0 && stats.rule_runs > 0);
	assert_int_equal(stats.slab_bytes, 1 << 20);
}

/* The old table stays readable for a second after its removal. */
static void test_replace(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t a = get(k, 1), b = get(k, 9);
	struct table_exe old;

	assert_int_equal(publish(k, a, 1, 5000), 0);
	old = k->exes[a];
	assert_int_equal(publish(k, a, 2, 6000), 0);
	assert_true(leads_nowhere(k, a));
	assert_int_equal(publish(k, b, 9, 5000), 0);
	assert_true(leads_to(k, &old, 1, 5000));
	k->now_ns += SEC - 1;
	tables_tick(k->tables, k->now_ns);
	assert_true(leads_nowhere(k, a));
	assert_true(leads_to(k, &old, 1, 5000));
	seconds(k, 1);
	assert_true(leads_to(k, &k->exes[a], 2, 6000));
	assert_true(leads_to(k, &k->exes[b], 9, 5000));
}

static void test_forgotten(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t a = get(k, 1);

	assert_int_equal(publish(k, a, 1, 5000), 0);
	k->uses[a].frames += 100;
	seconds(k, 1);
	tables_exe_put(k->tables, a, k->now_ns);
	seconds(k, 5);
	assert_true(tables_live(k->tables, a));
	assert_int_equal(get(k, 1), a); /* the table is back */
	tables_exe_put(k->tables, a, k->now_ns);
	seconds(k, 200);
	assert_false(tables_live(k->tables, a));
	assert_int_equal(tables_stats(k->tables).n_exes, 0);
	assert_int_equal(tables_stats(k->tables).rules, 0);
	assert_int_equal(tables_stats(k->tables).rule_runs, 0);
	assert_int_equal(page_pool_reserved_bytes(tables_page_pool(k->tables)), 0);
	assert_int_equal(tables_publish(k->tables, a, NULL, k->now_ns), TABLES_UNKNOWN);
}

static void test_pid_filter(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	struct tables_want want[2];
	uint16_t exes[5];

	for (uint32_t i = 0; i < 5; i++) {
		exes[i] = get(k, i);
		k->uses[exes[i]].frames += 10 + i;
	}
	get(k, 77); /* nobody came there */
	assert_int_equal(tables_wanted(k->tables, k->now_ns, want, 2), 0);
	seconds(k, 1);
	assert_int_equal(tables_wanted(k->tables, k->now_ns, want, 2), 2);
	assert_int_equal(want[0].exe, exes[4]);
	assert_int_equal(want[1].exe, exes[3]);
	tables_absent(k->tables, exes[4]);
	assert_int_equal(publish(k, exes[3], 3, 50), 0);
	assert_int_equal(tables_wanted(k->tables, k->now_ns, want, 2), 2);
	assert_int_equal(want[0].exe, exes[2]);
	assert_int_equal(want[1].exe, exes[1]);
}

/* Whether the kernel's walkers take stack dumps for this image. */
static bool awaited(const struct kernel *k, uint16_t exe)
{
	assert_int_equal(k->exes[exe].awaited, tables_awaited(k->tables, exe, k->now_ns));
	return k->exes[exe].awaited;
}

static void test_awaited(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t exes[3];

	for (uint32_t i = 0; i < 3; i++) {
		exes[i] = get(k, i);
		assert_true(awaited(k, exes[i]));
	}
	tables_absent(k->tables, exes[0]);
	assert_false(awaited(k, exes[0]));
	assert_int_equal(publish(k, exes[1], 1, 50), 0);
	seconds(k, 1);
	assert_false(awaited(k, exes[1])); /* already loaded */
	assert_false(tables_placing(k->tables, exes[1]));
	assert_true(awaited(k, exes[2]));
	/* a reassigned number begins with a new count */
	tables_exe_put(k->tables, exes[0], k->now_ns);
	seconds(k, 2);
	assert_int_equal(get(k, 9), exes[0]);
	assert_true(awaited(k, exes[0]));
	/* waits until the place is free again */
	assert_int_equal(publish(k, exes[1], 1, 60), 0);
	assert_true(tables_placing(k->tables, exes[1]));
	assert_false(tables_placing(k->tables, 0));
	assert_false(tables_awaited(k->tables, 0, k->now_ns));
}

/* A table outlives its file for a while: a new file with the inode, size and written time of the
 * old file has no table. */
static void test_inode_reused(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	struct file_id file = {.device = 1, .inode = 2, .size = 3, .mtime_ns = 4, .ctime_ns = 5};
	uint16_t exes[2];

	assert_int_equal(tables_exe_get(k->tables, &file, k->now_ns, &exes[0]), 0);
	tables_exe_put(k->tables, exes[0], k->now_ns);
	file.ctime_ns++;
	assert_int_equal(tables_exe_get(k->tables, &file, k->now_ns, &exes[1]), 0);
	assert_int_not_equal(exes[0], exes[1]);
}

static void test_all_numbers(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	const struct file_id file = {.inode = UINT32_MAX};
	uint16_t exe;

	for (uint32_t i = 1; i < TABLE_EXES; i++)
		get(k, i);
	assert_int_equal(tables_exe_get(k->tables, &file, k->now_ns, &exe), TABLES_FULL);
	tables_exe_put(k->tables, 5, k->now_ns);
	seconds(k, 2);
	assert_int_equal(tables_exe_get(k->tables, &file, k->now_ns, &exe), 0);
	assert_int_equal(exe, 5);
}

/* ---------------------------------------------------------------- budget */

/* Rows of a spread image; a slab holds two such tables, not three. */
#define BIG 170000

static void test_eviction(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(1 << 20);
	struct tables_want want[4];
	uint16_t exes[3];

	for (uint32_t i = 0; i < 3; i++)
		exes[i] = get(k, i);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(publish(k, exes[i], SPREAD + i, BIG), 0);
	/* A new table stays. */
	k->uses[exes[2]].frames += 1000;
	seconds(k, 1);
	assert_int_equal(publish(k, exes[2], SPREAD + 2, BIG), TABLES_FULL);
	assert_int_equal(tables_stats(k->tables).refused, 1);
	/* Not asked for again at once. */
	k->uses[exes[2]].frames += 1000;
	seconds(k, 1);
	assert_int_equal(tables_wanted(k->tables, k->now_ns, want, 4), 0);
	for (int i = 0; i < 40; i++) {
		k->uses[exes[0]].frames += 600;
		k->uses[exes[1]].frames += 400;
		k->uses[exes[2]].frames += 1000;
		seconds(k, 1);
	}
	/* An image with more than twice the score of the least used table replaces the table. */
	assert_int_equal(tables_wanted(k->tables, k->now_ns, want, 4), 1);
	assert_int_equal(publish(k, exes[2], SPREAD + 2, BIG), 0);
	assert_false(tables_live(k->tables, exes[1]));
	seconds(k, 1);
	assert_true(tables_live(k->tables, exes[0]));
	assert_true(leads_to(k, &k->exes[exes[0]], SPREAD, BIG));
	assert_true(leads_to(k, &k->exes[exes[2]], SPREAD + 2, BIG));
	assert_int_equal(tables_stats(k->tables).evictions, 1);
}

/* Ten tables with equal scores, room for two: the loaded tables stay. */
static void test_no_flapping(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(1 << 20);
	struct tables_want want[16];
	uint16_t exes[10];
	uint64_t compiled = 0;

	for (uint32_t i = 0; i < 10; i++)
		exes[i] = get(k, i);
	for (int s = 0; s < 300; s++) {
		size_t n;

		for (uint32_t i = 0; i < 10; i++)
			k->uses[exes[i]].frames += 50 + (uint32_t)(s * 7 + (int)i * 13) % 40;
		seconds(k, 1);
		n = tables_wanted(k->tables, k->now_ns, want, 1);
		for (size_t i = 0; i < n; i++) {
			uint32_t image = (uint32_t)want[i].exe - exes[0];

			compiled++;
			(void)publish(k, want[i].exe, SPREAD + image, BIG);
		}
	}
	assert_int_equal(tables_stats(k->tables).evictions, 0);
	assert_int_equal(tables_stats(k->tables).n_live, 2);
	assert_true(compiled <= 10);
}

/* A node with ten times as many images in use as there is room for. Image i is used in @mean[i] / 8
 * frames a second, by chance: each of 64 dice says yes or no. */
#define IMAGES 300
#define HOT    20

struct node {
	struct kernel *k;
	uint16_t exes[IMAGES];
	uint32_t mean[IMAGES];
	uint64_t seed;
	uint64_t compiled;
};

static uint32_t frames_of(struct node *node, uint32_t mean)
{
	uint32_t frames = 0;

	for (int i = 0; i < 64; i++) {
		node->seed = node->seed * 6364136223846793005ull + 1442695040888963407ull;
		frames += (node->seed >> 40) % 512 < mean;
	}
	return frames;
}

/* Like table_builder.c, four at a time. */
static void node_seconds(struct node *node, uint32_t n)
{
	struct kernel *k = node->k;

	for (uint32_t s = 0; s < n; s++) {
		struct tables_want want[4];
		size_t n_want;

		for (uint32_t i = 0; i < IMAGES; i++)
			k->uses[node->exes[i]].frames += frames_of(node, node->mean[i]);
		seconds(k, 1);
		n_want = tables_wanted(k->tables, k->now_ns, want, array_size(want));
		for (size_t i = 0; i < n_want; i++) {
			node->compiled++;
			(void)publish(k, want[i].exe, SPREAD + want[i].exe, BIG / 15);
		}
	}
}

static uint32_t live_among(const struct node *node, uint32_t first, uint32_t n)
{
	uint32_t live = 0;

	for (uint32_t i = first; i < first + n; i++)
		live += tables_live(node->k->tables, node->exes[i]);
	return live;
}

/* Hot images have a table and do not lose it. Some of the many cold images have a table, and chance
 * does not make them alternate. New hot images get a table once. */
static void test_too_many(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(1 << 20);
	struct node node = {.k = k, .seed = 11};
	uint64_t evictions, compiled;

	for (uint32_t i = 0; i < IMAGES; i++) {
		node.exes[i] = get(k, i);
		node.mean[i] = i < HOT ? 200 : 2 + i % 6;
	}
	node_seconds(&node, 120);
	assert_int_equal(live_among(&node, 0, HOT), HOT);
	assert_true(live_among(&node, HOT, IMAGES - HOT) >= 5);
	evictions = tables_stats(k->tables).evictions;
	compiled = node.compiled;
	node_seconds(&node, 1800);
	assert_int_equal(live_among(&node, 0, HOT), HOT);
	assert_true(tables_stats(k->tables).evictions - evictions <= 6);
	assert_true(node.compiled - compiled <= 6);
	for (uint32_t i = 0; i < 2 * HOT; i++)
		node.mean[i] = i < HOT ? 2 : 200;
	node_seconds(&node, 180);
	assert_int_equal(live_among(&node, HOT, HOT), HOT);
	assert_true(tables_stats(k->tables).evictions - evictions <= HOT + 12);
	/* how large a table is was found out once */
	assert_true(tables_stats(k->tables).refused < IMAGES);
}

/* ---------------------------------------------------------------- deferred slabs */

/* A table is invisible to walkers until all of it has room. */
static void test_later(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t a = get(k, 1), b = get(k, 2);

	k->later = true;
	assert_int_equal(publish(k, a, SPREAD, 3 * BIG), 0); /* two slabs */
	assert_int_equal(publish(k, b, 2, 50), 0);
	assert_int_equal(tables_stats(k->tables).n_waiting, 2);
	assert_int_equal(k->n_made, 1);
	seconds(k, 1);
	assert_int_equal(tables_stats(k->tables).n_waiting, 2);
	assert_int_equal(k->n_made, 1);
	tables_slab_made(k->tables, 0, k->now_ns);
	assert_true(leads_nowhere(k, a));
	assert_true(leads_to(k, &k->exes[b], 2, 50));
	while (leads_nowhere(k, a)) {
		assert_true(k->n_made <= 3);
		tables_slab_made(k->tables, 0, k->now_ns);
	}
	assert_true(leads_to(k, &k->exes[a], SPREAD, 3 * BIG));
	assert_int_equal(tables_stats(k->tables).n_waiting, 0);
}

/* Without memory: waiting images are tried again, but not at once. */
static void test_never(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	struct tables_want want;
	uint16_t a = get(k, 1);

	k->later = true;
	assert_int_equal(publish(k, a, 1, 50), 0);
	k->uses[a].frames += 1000;
	tables_slab_made(k->tables, -ENOMEM, k->now_ns);
	assert_int_equal(tables_stats(k->tables).n_waiting, 0);
	assert_int_equal(tables_stats(k->tables).failures, 1);
	seconds(k, 1);
	assert_int_equal(tables_wanted(k->tables, k->now_ns, &want, 1), 0);
	seconds(k, 30);
	k->uses[a].frames += 1000;
	seconds(k, 1);
	assert_int_equal(tables_wanted(k->tables, k->now_ns, &want, 1), 1);
	assert_int_equal(publish(k, a, 1, 50), 0);
	tables_slab_made(k->tables, 0, k->now_ns);
	assert_true(leads_to(k, &k->exes[a], 1, 50));
}

/* ---------------------------------------------------------------- by chance */

struct place {
	uint32_t image, n;
	uint16_t exe;
	bool held, leaving;    /* not held any more, but still live */
	struct table_exe gone; /* the state of a walker during a walk */
	uint64_t gone_ns;
	uint32_t gone_image, gone_n;
};

/* The table of @p is removed now, or is known to be removed. */
static void note_gone(struct kernel *k, struct place *p)
{
	p->gone = k->exes[p->exe];
	p->gone_ns = k->now_ns;
	p->gone_image = p->image;
	p->gone_n = p->n;
}

/* Tables are loaded, changed and removed; each live table is whole, and so is a table removed less
 * than a second ago. */
static void test_churn(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	struct place places[12] = {0};
	uint64_t seed = 5;
	int n_left = 0;

	for (int i = 0; i < 400; i++) {
		struct place *p;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		p = &places[(seed >> 33) % array_size(places)];
		if ((p->held || p->leaving) && tables_live(k->tables, p->exe))
			note_gone(k, p);
		if (seed >> 62) {
			if (!p->held)
				p->exe = get(k, 1000 + (uint32_t)(p - places));
			p->held = true;
			p->leaving = false;
			p->image = (uint32_t)(seed >> 20) % 100;
			p->n = 1 + (uint32_t)(seed >> 40) % 4000;
			assert_int_equal(publish(k, p->exe, p->image, p->n), 0);
		} else if (p->held) {
			p->held = false;
			p->leaving = tables_live(k->tables, p->exe);
			tables_exe_put(k->tables, p->exe, k->now_ns);
		}
		k->now_ns += SEC / 3;
		tables_tick(k->tables, k->now_ns);
		for (size_t j = 0; j < array_size(places); j++) {
			p = &places[j];
			if (p->leaving && !tables_live(k->tables, p->exe)) {
				p->gone_ns = k->now_ns;
				p->leaving = false;
				n_left++;
			}
			if ((p->held || p->leaving) && tables_live(k->tables, p->exe))
				assert_true(leads_to(k, &k->exes[p->exe], p->image, p->n));
			if (p->gone_n && k->now_ns - p->gone_ns < SEC)
				assert_true(leads_to(k, &p->gone, p->gone_image, p->gone_n));
		}
	}
	assert_int_equal(tables_stats(k->tables).refused, 0);
	assert_true(tables_stats(k->tables).loads > 100);
	assert_true(n_left > 10);
}

/* A table with offsets outside of itself, as from a damaged file. */
static void test_damaged(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	struct table *table = table_of(1, 5000);
	uint16_t a = get(k, 1);

	memset(table->table_image + table->exe.ids, 0xff, 2 * (size_t)table->n_ids);
	for (uint32_t i = 0; i < table->n_rule_runs; i++)
		memset(&table->rule_runs[i], 0x7e, sizeof(table->rule_runs[i]));
	assert_int_equal(tables_publish(k->tables, a, table, k->now_ns), 0);
	for (uint32_t i = 0; i < 5000; i++) {
		const struct table_space space = {k->table_pages, k->rules,
						  k->rule_runs,	  array_size(k->table_pages),
						  TABLE_RULES,	  TABLE_RULE_RUNS};
		struct unwind_rule rule = {0};

		assert_int_not_equal(table_find(&space, &k->exes[a], vaddr_of(1, i), &rule),
				     TABLE_TORN);
		assert_int_equal(rule.cfa, UNWIND_CFA_GAP);
	}
}

static int publish_once(void *ctx)
{
	struct kernel *k = ctx;
	struct table *table;
	int r;

	allocfail_disarm();
	table = table_of(3, 500);
	allocfail_arm(1);
	r = tables_publish(k->tables, 1, table, k->now_ns);
	allocfail_disarm();
	return r;
}

static void test_no_memory(void **state)
{
	_cleanup_(kernel_freep) struct kernel *k = kernel(SLABS << 20);
	uint16_t a = get(k, 1);

	assert_int_equal(a, 1);
	assert_int_equal(publish_once(k), -ENOMEM);
	assert_false(tables_live(k->tables, a));
	assert_int_equal(tables_stats(k->tables).rules, 0);
	assert_int_equal(page_pool_reserved_bytes(tables_page_pool(k->tables)), 0);
	assert_int_equal(publish(k, a, 3, 500), 0);
	assert_true(leads_to(k, &k->exes[a], 3, 500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_publish),	    cmocka_unit_test(test_replace),
		cmocka_unit_test(test_forgotten),   cmocka_unit_test(test_pid_filter),
		cmocka_unit_test(test_awaited),	    cmocka_unit_test(test_inode_reused),
		cmocka_unit_test(test_awaited),	    cmocka_unit_test(test_inode_reused),
		cmocka_unit_test(test_all_numbers), cmocka_unit_test(test_eviction),
		cmocka_unit_test(test_too_many),    cmocka_unit_test(test_later),
		cmocka_unit_test(test_never),	    cmocka_unit_test(test_no_flapping),
		cmocka_unit_test(test_churn),	    cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
