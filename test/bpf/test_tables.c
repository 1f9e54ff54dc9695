// SPDX-License-Identifier: Apache-2.0
/* Unwind tables in the real kernel: lookups in BPF and on the host have the same results. */
#include "support/test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/lookup.h"
#include "lookup.skel.h"
#include "unwindtable/compile.h"
#include "unwindtable/tablemaps.h"

/* For 32 lookups in a loop, more than a walker does. Seen: 44,000 on 6.18. */
#define VERIFIED_INSNS_MAX 100000

#define SEC  1000000000ull
#define TEXT 0x400000

DEFINE_CLEANUP(struct table *, table_freep, table_free);

struct bench {
	struct lookup_bpf *skel;
	struct tablemaps *maps;
	struct tables *tables;
	struct lookup_query *queries;
	uint32_t n; /* pending queries */
	struct unwind_rule want[LOOKUP_QUERIES];
	uint64_t compared;
};

static struct bench bench;

static int setup(void **state)
{
	struct tables_opts opts = {.budget_bytes = 16 << 20};
	struct lookup_bpf *skel = lookup_bpf__open();
	void *queries;

	assert_non_null(skel);
	bpf_program__set_autoload(skel->progs.many_empty, false);
	bpf_program__set_autoload(skel->progs.many_ours, false);
	bpf_program__set_autoload(skel->progs.many_peer, false);
	assert_int_equal(lookup_bpf__load(skel), 0);
	queries = mmap(NULL, sizeof(struct lookup_query) * LOOKUP_QUERIES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, bpf_map__fd(skel->maps.lookup_queries), 0);
	assert_true(queries != MAP_FAILED);
	bench = (struct bench){.skel = skel, .queries = queries};
	assert_int_equal(
		tablemaps_new(&(struct tablemaps_fds){.slabs = bpf_map__fd(skel->maps.table_slabs),
						      .exes = bpf_map__fd(skel->maps.table_exes),
						      .uses = bpf_map__fd(skel->maps.table_uses),
						      .rules = bpf_map__fd(skel->maps.table_rules),
						      .rule_runs = bpf_map__fd(
							      skel->maps.table_rule_runs)},
			      &bench.maps),
		0);
	opts.memory = tablemaps_memory(bench.maps);
	assert_int_equal(tables_new(&opts, &bench.tables), 0);
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	tables_free(b->tables);
	tablemaps_free(b->maps);
	munmap(b->queries, sizeof(struct lookup_query) * LOOKUP_QUERIES);
	lookup_bpf__destroy(b->skel);
	return 0;
}

/* ---------------------------------------------------------------- asking */

static void run_some(const struct bench *b, uint32_t first)
{
	uint64_t args[12] = {first};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(b->skel->progs.lookup_some), &opts),
			 0);
	assert_int_equal(opts.retval, 0);
}

/* Answer the pending queries and compare. */
static void flush(struct bench *b)
{
	for (uint32_t i = 0; i < b->n; i += LOOKUP_SOME)
		run_some(b, i);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct lookup_query *q = &b->queries[i];

		assert_int_not_equal(q->found, TABLE_TORN);
		if (memcmp(&q->rule, &b->want[i], sizeof(q->rule)) != 0)
			fail_msg("at %#llx: cfa %u %d, not cfa %u %d", q->vaddr, q->rule.cfa,
				 q->rule.cfa_off, b->want[i].cfa, b->want[i].cfa_off);
	}
	b->compared += b->n;
	b->n = 0;
}

static void ask(struct bench *b, uint16_t exe, const struct table *table, uint64_t vaddr)
{
	struct unwind_rule want = {0};

	(void)table_lookup(table, vaddr, &want);
	b->want[b->n] = want;
	b->queries[b->n++] = (struct lookup_query){.vaddr = vaddr, .exe = exe, .found = 99};
	if (b->n == LOOKUP_QUERIES)
		flush(b);
}

/* At every row, or every @step-th, and before and after the row. */
static void ask_rows(struct bench *b, uint16_t exe, const struct rows *rows,
		     const struct table *table, size_t step)
{
	for (size_t i = 0; i < rows_count(rows); i += step) {
		uint64_t vaddr = rows_at(rows, i).vaddr;

		ask(b, exe, table, vaddr - 1);
		ask(b, exe, table, vaddr);
		ask(b, exe, table, vaddr + 40);
	}
	ask(b, exe, table, 0);
	ask(b, exe, table, UINT64_MAX);
	flush(b);
}

/* ---------------------------------------------------------------- tables */

static uint16_t get(struct bench *b, uint8_t image)
{
	const struct file_id file = {.inode = image};
	uint16_t exe = 0;

	assert_int_equal(tables_exe_get(b->tables, &file, SEC, &exe), 0);
	return exe;
}

static struct table *pack(const struct rows *rows)
{
	struct table *table = NULL;

	assert_int_equal(table_pack(rows, &table), 0);
	return table;
}

static struct rows *rows_of_file(const char *path)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct ehframe_stats stats;
	struct rows *rows = NULL;

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(compile_image(file, &stats, &rows), 0);
	return rows;
}

/* Enough rows for a table image with a part in a third slab. */
#define MANY_ROWS 1200000

static struct rows *many_rows(void)
{
	uint64_t vaddr = TEXT, seed = 1;
	struct rows *rows;

	assert_int_equal(rows_new(TEXT, TEXT + (1 << 28), &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, TEXT + (1 << 28)), 0);
	for (int i = 0; i < MANY_ROWS; i++) {
		struct unwind_rule rule = {.cfa = UNWIND_CFA_REG, .cfa_reg = 7, .ra_off = -8};

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		rule.cfa_off = (int32_t)(seed >> 33) % 300 * 8;
		assert_int_equal(rows_add(rows, vaddr, &rule), 0);
		vaddr += 5 + (seed >> 50) % 60;
	}
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	return rows;
}

static void test_verified(void **state)
{
	const struct bench *b = *state;
	struct bpf_prog_info info = {0};
	uint32_t n = sizeof(info);

	assert_int_equal(
		bpf_obj_get_info_by_fd(bpf_program__fd(b->skel->progs.lookup_some), &info, &n), 0);
	print_message("lookup_some: %u instructions verified\n", info.verified_insns);
	assert_true(info.verified_insns < VERIFIED_INSNS_MAX);
}

static void test_real(void **state)
{
	struct bench *b = *state;
	uint16_t exe = get(b, 1);
	_cleanup_(rows_freep) struct rows *rows = rows_of_file("/proc/self/exe");
	_cleanup_(table_freep) struct table *table = pack(rows);
	struct tables_stats stats;

	assert_int_equal(tables_publish(b->tables, exe, pack(rows), SEC), 0);
	ask_rows(b, exe, rows, table, 1);
	stats = tables_stats(b->tables);
	assert_int_equal(stats.slab_bytes, 1 << 20);
	assert_true(b->compared >= 3 * rows_count(rows));
}

static void test_large(void **state)
{
	struct bench *b = *state;
	uint16_t exe = get(b, 2);
	_cleanup_(rows_freep) struct rows *rows = many_rows();
	_cleanup_(table_freep) struct table *table = pack(rows);

	assert_true(table->n_bytes > 2 << 20);
	assert_int_equal(tables_publish(b->tables, exe, pack(rows), SEC), 0);
	ask_rows(b, exe, rows, table, 7);
}

/* Another table at the same number; no table; counters of walkers' lookups. */
static void test_replaced(void **state)
{
	struct bench *b = *state;
	const struct tables_memory memory = tablemaps_memory(b->maps);
	uint16_t exe = get(b, 1), other = get(b, 77);
	_cleanup_(rows_freep) struct rows *rows = rows_of_file("/bin/sh");
	_cleanup_(table_freep) struct table *table = pack(rows);
	struct tables_want want;
	uint64_t frames = memory.uses[other].frames;

	assert_int_equal(tables_publish(b->tables, exe, pack(rows), 2 * SEC), 0);
	run_some(b, 0);
	tables_tick(b->tables, 4 * SEC);
	assert_true(tables_live(b->tables, exe));
	ask_rows(b, exe, rows, table, 1);
	b->queries[0] = (struct lookup_query){.vaddr = TEXT, .exe = other};
	run_some(b, 0);
	assert_int_equal(b->queries[0].found, TABLE_OUTSIDE);
	assert_int_equal(memory.uses[other].frames, frames + 1);
	tables_tick(b->tables, 5 * SEC);
	assert_int_equal(tables_wanted(b->tables, 5 * SEC, &want, 1), 1);
	assert_int_equal(want.exe, other);
}

/* Numbers out of range, and missing slabs. */
static void test_nowhere(void **state)
{
	struct bench *b = *state;
	struct tables_memory memory = tablemaps_memory(b->maps);
	uint16_t exe = TABLE_EXES - 1;

	memory.exes[exe] = (struct table_exe){
		.n_blocks = 100, .table_page = 5 << 20, .n_table_pages = 10, .tail = UINT32_MAX};
	b->queries[0] = (struct lookup_query){.vaddr = 300, .exe = exe};
	run_some(b, 0);
	assert_int_equal(b->queries[0].found, TABLE_TORN);
	memory.exes[exe] = (struct table_exe){.n_blocks = 100, .tail = UINT32_MAX};
	run_some(b, 0);
	assert_int_equal(b->queries[0].found, TABLE_TORN);
	memory.exes[exe] = (struct table_exe){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verified), cmocka_unit_test(test_real),
		cmocka_unit_test(test_large),	 cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_nowhere),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
