// SPDX-License-Identifier: Apache-2.0
/* A file whose table exceeds the work budget; the kernel is an array here. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/work_budget.h"
#include "procmap/image.h"
#include "support/elfmake.h"
#include "support/fixture.h"
#include "support/metrics.h"
#include "unwindtable/compile.h"
#include "unwindtable/table_builder.h"
#include "unwindtable/tables.h"

#define TEXT 0x100000u

/* ---------------------------------------------------------------- a file with much work */

#define GO_FUNCS  4096u
#define GO_STEPS  65000u /* of a function */
#define GO_HEADER 72u
#define GO_PCS	  96u
#define GO_RECORD 44u

/* Go's tables: all functions share the longest possible table, with a single row for each function.
 */
static void make_costly(struct elfmake *m)
{
	const uint64_t n_code = (uint64_t)GO_FUNCS * GO_STEPS;
	const size_t n_pcs = 2 * GO_STEPS + 8, funcs = GO_PCS + n_pcs;
	const size_t records = 8 * (GO_FUNCS + 1);
	const size_t size = funcs + records + (size_t)GO_FUNCS * GO_RECORD + 64;
	const uint64_t words[] = {GO_FUNCS, 1, TEXT, GO_HEADER, 80, 88, GO_PCS, funcs};
	size_t off;
	uint8_t *t;

	elfmake_init(m, ET_EXEC, size);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, TEXT, 0, 0);
	m->ph[0].p_memsz = n_code;
	off = elfmake_bytes(m, NULL, size);
	elfmake_section(m, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x40000000, off, size);
	elfmake_segment(m, PT_LOAD, PF_R, 0x40000000, off, size);
	t = m->data + off;
	memcpy(t, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	memcpy(t + 8, words, sizeof(words));
	memcpy(t + GO_HEADER, "f", 2);
	for (uint32_t i = 0; i < GO_STEPS; i++) {
		t[GO_PCS + 1 + 2 * i] = i % 2 ? 6 : 5; /* - 3, + 3, ...: below the entry's place */
		t[GO_PCS + 2 + 2 * i] = 1;
	}
	for (uint32_t i = 0; i <= GO_FUNCS; i++) {
		uint32_t record = (uint32_t)(records + i * GO_RECORD);
		uint32_t fields[11] = {i * GO_STEPS, 0, 0, 0, 1};
		uint32_t entry[2] = {fields[0], record};

		memcpy(t + funcs + 8 * (size_t)i, entry, i < GO_FUNCS ? 8 : 4);
		if (i < GO_FUNCS)
			memcpy(t + funcs + record, fields, sizeof(fields));
	}
	elfmake_finish(m);
}

static void write_costly(char path[])
{
	struct elfmake m;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	make_costly(&m);
	assert_int_equal(write(fd, m.data, m.n), m.n);
	close(fd);
	elfmake_deinit(&m);
}

/* ---------------------------------------------------------------- the builder */

struct setup {
	struct table_exe exes[TABLE_EXES];
	struct table_use uses[TABLE_EXES];
	struct unwind_rule rules[TABLE_RULES];
	struct table_rule_run rule_runs[TABLE_RULE_RUNS];
	struct table_page pages[TABLE_SLAB_PAGES];
	struct tables *tables;
	struct loop *loop;
	struct table_builder *builder;
};

static int make_slab(void *ctx, uint32_t number)
{
	(void)ctx;
	return number ? -ENOMEM : 0;
}

static struct table_page *map_slab(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct setup *s = ctx;

	(void)number;
	(void)n;
	return s->pages + first;
}

static void unmap_slab(void *ctx, struct table_page *mem, uint32_t n)
{
	(void)ctx;
	(void)mem;
	(void)n;
}

static struct setup *setup_new(void)
{
	struct setup *s = calloc(1, sizeof(*s));
	struct tables_opts tables = {.budget_bytes = sizeof(s->pages)};
	struct table_builder_opts opts = {0};

	assert_non_null(s);
	tables.memory = (struct tables_memory){
		s->exes, s->uses, s->rules, s->rule_runs, {s, make_slab, map_slab, unmap_slab}};
	assert_int_equal(tables_new(&tables, &s->tables), 0);
	assert_int_equal(loop_new(&s->loop), 0);
	opts.loop = s->loop;
	opts.tables = s->tables;
	assert_int_equal(table_builder_new(&opts, &s->builder), 0);
	return s;
}

static void setup_free(struct setup *s)
{
	table_builder_free(s->builder);
	tables_free(s->tables);
	loop_free(s->loop);
	free(s);
}

/* Requests the table and waits for the result. Returns whether there was a job. */
static bool build(struct setup *s, struct image *image)
{
	bool any;

	assert_int_not_equal(table_builder_number(s->builder, image), 0);
	table_builder_want(s->builder, image);
	any = table_builder_pending(s->builder);
	while (table_builder_pending(s->builder))
		(void)table_builder_wait(s->builder, NSEC_PER_SEC);
	return any;
}

static void forget_numbers(struct setup *s)
{
	static const bool used[TABLE_EXES];

	table_builder_sweep(s->builder, used, TABLE_EXES);
}

static void test_abandoned(void **state)
{
	char path[] = "/tmp/podprof-test-XXXXXX", plain[FIXTURE_PATH_MAX];
	struct setup *s = setup_new();
	struct image *image, *other = fixture_image_at(fixture_path("plain-pie", plain));

	(void)state;
	write_costly(path);
	image = fixture_image_at(path);
	assert_true(build(s, image));
	assert_int_equal(metrics_get(table_builder_collect, s->builder, "podprof_unwind_compiled",
				     "abandoned"),
			 1);
	/* not at once again */
	assert_false(build(s, image));
	/* nor when processes of the file start and end */
	forget_numbers(s);
	image_unref(image);
	image = fixture_image_at(path);
	assert_false(build(s, image));
	/* others are not concerned */
	assert_true(build(s, other));
	assert_true(tables_live(s->tables, table_builder_number(s->builder, other)));
	image_unref(image);
	image_unref(other);
	unlink(path);
	setup_free(s);
}

/* The job in progress ends with the builder. */
static void test_end(void **state)
{
	char path[] = "/tmp/podprof-test-XXXXXX";
	struct setup *s = setup_new();
	struct image *image;

	(void)state;
	write_costly(path);
	image = fixture_image_at(path);
	assert_int_not_equal(table_builder_number(s->builder, image), 0);
	table_builder_want(s->builder, image);
	setup_free(s);
	image_unref(image);
	unlink(path);
}

/* ---------------------------------------------------------------- any budget */

/* Compile with @units; returns the spent units. */
static uint64_t compile_with(const struct elffile *file, uint64_t units, const atomic_bool *stop,
			     enum work_end *ret)
{
	struct elffile *budgeted;
	struct ehframe_stats stats;
	struct rows *rows = NULL;
	struct work_budget b;
	int r;

	work_budget_init(&b, units, 100 * NSEC_PER_SEC, stop);
	assert_int_equal(elffile_budgeted(file, &b, &budgeted), 0);
	r = compile_image(budgeted, &stats, &rows);
	assert_true(!r || b.end);
	rows_free(rows);
	elffile_free(budgeted);
	*ret = b.end;
	return b.spent;
}

/* Wherever the budget ends, the parsers end. */
static void check_budgets(const struct elffile *file)
{
	atomic_bool stop = true;
	enum work_end end;
	uint64_t all = compile_with(file, UINT64_MAX, NULL, &end);

	assert_int_equal(end, WORK_GOING);
	for (uint64_t i = 0; i < 16; i++) {
		uint64_t units = all / 16 * i, spent = compile_with(file, units, NULL, &end);

		assert_int_equal(end, WORK_SPENT);
		assert_true(spent <= units);
	}
	assert_int_equal(compile_with(file, all, NULL, &end), all);
	assert_int_equal(end, WORK_GOING);
	assert_int_equal(compile_with(file, all, &stop, &end), 0);
	assert_int_equal(end, WORK_STOPPED);
}

static void test_budgets(void **state)
{
	static const char *const names[] = {"plain-pie", "zoo-static", "zoo-nocfi", "asm"};
	char path[FIXTURE_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		struct image *image = fixture_image_at(fixture_path(names[i], path));

		row_begin(names[i]);
		check_budgets(image->file);
		image_unref(image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_budgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
