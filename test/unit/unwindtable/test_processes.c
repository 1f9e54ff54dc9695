// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"
#include "unwindtable/processes.h"

#define TABLE_PAGES 24

/* The kernel's side in plain memory; it checks the walkers' view. */
struct kernel {
	struct process_mapping space[TABLE_PAGES][PROCESS_MAPPINGS_PER_PAGE];
	bool reserved[TABLE_PAGES];
	struct process records[16]; /* by tgid; n_mappings and first 0: none */
	bool recorded[16];
	size_t n_recorded;
	size_t max_records;
	bool refuses;
};

static int reserve(void *ctx, uint32_t n, uint32_t *ret)
{
	struct kernel *k = ctx;
	uint32_t run = 0;

	for (uint32_t i = 0; i < TABLE_PAGES; i++) {
		run = k->reserved[i] ? 0 : run + 1;
		if (run < n)
			continue;
		*ret = i + 1 - n;
		for (uint32_t e = *ret; e <= i; e++)
			k->reserved[e] = true;
		return 0;
	}
	return 1;
}

static void release(void *ctx, uint32_t first, uint32_t n)
{
	struct kernel *k = ctx;

	for (uint32_t e = first; e < first + n; e++) {
		assert_true(k->reserved[e]);
		k->reserved[e] = false;
	}
}

static struct process_mapping *table_page(void *ctx, uint32_t number)
{
	struct kernel *k = ctx;

	assert_true(number < TABLE_PAGES && k->reserved[number]);
	return k->space[number];
}

static int record(void *ctx, uint32_t tgid, const struct process *process)
{
	struct kernel *k = ctx;

	if (k->refuses)
		return -ENOMEM;
	if (!k->recorded[tgid] && k->n_recorded >= k->max_records)
		return -E2BIG;
	k->n_recorded += !k->recorded[tgid];
	k->recorded[tgid] = true;
	k->records[tgid] = *process;
	return 0;
}

static void remove_record(void *ctx, uint32_t tgid)
{
	struct kernel *k = ctx;

	assert_true(k->recorded[tgid]);
	k->recorded[tgid] = false;
	k->n_recorded--;
}

struct fixture {
	struct kernel kernel;
	struct processes *p;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct processes_kernel kernel;

	assert_non_null(f);
	f->kernel.max_records = 16;
	kernel = (struct processes_kernel){.ctx = &f->kernel,
					   .reserve = reserve,
					   .release = release,
					   .table_page = table_page,
					   .record = record,
					   .remove = remove_record};
	assert_int_equal(processes_new(&kernel, &f->p), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	processes_free(f->p);
	assert_int_equal(f->kernel.n_recorded, 0);
	for (size_t i = 0; i < TABLE_PAGES; i++)
		assert_false(f->kernel.reserved[i]);
	free(f);
	return 0;
}

/* @n mappings of variant @which. */
static struct process_mapping *make_maps(size_t n, unsigned int which)
{
	struct process_mapping *maps = calloc(n ? n : 1, sizeof(*maps));

	assert_non_null(maps);
	for (size_t i = 0; i < n; i++)
		maps[i] = (struct process_mapping){.start_pages = 0x100 + 16 * i + which,
						   .n_pages = 3,
						   .bias_pages = 0x100 + 16 * i,
						   .exe = (1 + i) & 0xff};
	return maps;
}

static int publish_exe(struct fixture *f, uint32_t tgid, uint64_t exec_id, uint64_t inode, size_t n,
		       unsigned int which, uint64_t now)
{
	struct processes_id id = {
		.tgid = tgid,
		.runtime = tgid % 4,
		.start_boottime_ns = 1000,
		.exec_id = exec_id,
		.exe = {.inode = inode},
	};
	struct process_mapping *maps = make_maps(n, which);
	int r = processes_publish(f->p, &id, maps, n, now);

	free(maps);
	return r;
}

static int publish(struct fixture *f, uint32_t tgid, uint64_t exec_id, size_t n, unsigned int which,
		   uint64_t now)
{
	return publish_exe(f, tgid, exec_id, exec_id, n, which, now);
}

/* A walker finds the published mappings. */
static void check(struct fixture *f, uint32_t tgid, uint64_t exec_id, size_t n, unsigned int which)
{
	const struct process *rec = &f->kernel.records[tgid];
	struct process_mapping *maps = make_maps(n, which);
	const struct process_mapping *all = &f->kernel.space[0][0];

	assert_true(f->kernel.recorded[tgid]);
	assert_true(rec->exec_id == exec_id && rec->start_boottime_ns == 1000);
	assert_int_equal(rec->n_mappings, n);
	assert_int_equal(rec->runtime, tgid % 4);
	assert_true(n > PROCESS_MAPPINGS_PER_PAGE
			    ? rec->first % PROCESS_MAPPINGS_PER_PAGE == 0
			    : !n || rec->first / PROCESS_MAPPINGS_PER_PAGE ==
					      (rec->first + n - 1) / PROCESS_MAPPINGS_PER_PAGE);
	assert_memory_equal(all + rec->first, maps, n * sizeof(*maps));
	free(maps);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = {0, 1, 4, 5, 8, 31, 32, 255, 256, 257, 512, 513, 4096};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(sizes); i++) {
		struct processes_stats stats;

		assert_int_equal(publish(f, 3, i, sizes[i], 1, i * PROCESSES_QUIET_NS), 0);
		check(f, 3, i, sizes[i], 1);
		stats = processes_stats(f->p);
		assert_int_equal(stats.n_records, 1);
		assert_int_equal(stats.n_tables, 1);
	}
}

static void test_too_many(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(publish(f, 3, 0, 4097, 1, 1), PROCESSES_CUT);
	check(f, 3, 0, 4096, 1);
}

static void test_shared(void **state)
{
	struct fixture *f = *state;
	struct processes_stats stats;

	for (uint32_t tgid = 1; tgid < 9; tgid++)
		assert_int_equal(publish(f, tgid, 0, 20, tgid == 8 ? 2 : 1, 1), 0);
	stats = processes_stats(f->p);
	assert_int_equal(stats.n_tables, 2);
	assert_int_equal(stats.shared, 6);
	assert_int_equal(stats.n_table_pages, 1);
	assert_true(f->kernel.records[1].first == f->kernel.records[7].first);
	for (uint32_t tgid = 1; tgid < 8; tgid++) {
		check(f, tgid, 0, 20, 1);
		processes_withdraw(f->p, tgid, 2);
	}
	check(f, 8, 0, 20, 2);
	stats = processes_stats(f->p);
	assert_int_equal(stats.n_tables, 1);
	assert_int_equal(stats.n_quiet, 1);
}

/* A freed table's place is not written before the quiet time is over. */
static void test_quiet(void **state)
{
	struct fixture *f = *state;
	uint32_t was;

	assert_int_equal(publish(f, 1, 0, 4, 1, 10), 0);
	was = f->kernel.records[1].first;
	processes_withdraw(f->p, 1, 20);
	processes_withdraw(f->p, 1, 20); /* again: nothing */
	assert_int_equal(publish(f, 2, 0, 4, 2, 20 + PROCESSES_QUIET_NS - 1), 0);
	assert_true(f->kernel.records[2].first != was);
	assert_int_equal(f->kernel.space[0][was].start_pages, 0x101);
	assert_int_equal(publish(f, 3, 0, 4, 3, 20 + PROCESSES_QUIET_NS), 0);
	assert_true(f->kernel.records[3].first == was);
	check(f, 2, 0, 4, 2);
	check(f, 3, 0, 4, 3);
	/* the last one frees the page */
	processes_withdraw(f->p, 2, 1);
	processes_withdraw(f->p, 3, 1);
	processes_sweep(f->p, 1 + PROCESSES_QUIET_NS);
	assert_int_equal(processes_stats(f->p).n_table_pages, 0);
}

static void test_exec_replaces(void **state)
{
	struct fixture *f = *state;
	struct processes_id id;

	assert_int_equal(publish(f, 1, 5, 4, 1, 10), 0);
	assert_int_equal(publish(f, 1, 6, 9, 2, 11), 0);
	check(f, 1, 6, 9, 2);
	assert_true(processes_find(f->p, 1, &id));
	assert_true(id.exec_id == 6 && id.tgid == 1 && id.start_boottime_ns == 1000);
	assert_int_equal(id.exe.inode, 6);
	assert_false(processes_find(f->p, 2, &id));
	assert_int_equal(processes_stats(f->p).n_records, 1);
}

static uint64_t exe_of(const struct fixture *f, uint32_t tgid)
{
	struct processes_id id;

	assert_true(processes_find(f->p, tgid, &id));
	return id.exe.inode;
}

/* Not each sample tells what the process executes. */
static void test_exe(void **state)
{
	static const struct {
		uint64_t exec_id, inode, want;
	} rows[] = {{5, 0, 0}, {5, 7, 7}, {5, 0, 7}, {5, 8, 8}, {6, 0, 0}, {6, 9, 9}};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		assert_int_equal(publish_exe(f, 1, rows[i].exec_id, rows[i].inode, 4, 1, 10), 0);
		assert_int_equal(exe_of(f, 1), rows[i].want);
	}
	processes_withdraw(f->p, 1, 11);
	assert_int_equal(publish_exe(f, 1, 6, 0, 4, 1, 12), 0);
	assert_int_equal(exe_of(f, 1), 0);
}

/* The mappings stay. */
static void test_set_runtime(void **state)
{
	struct fixture *f = *state;
	struct processes_id id;

	assert_int_equal(publish(f, 4, 5, 9, 2, 10), 0);
	check(f, 4, 5, 9, 2);
	assert_true(processes_set_runtime(f->p, 4, 3));
	assert_int_equal(f->kernel.records[4].runtime, 3);
	assert_true(processes_find(f->p, 4, &id));
	assert_int_equal(id.runtime, 3);
	f->kernel.refuses = true;
	assert_false(processes_set_runtime(f->p, 4, 1));
	f->kernel.refuses = false;
	assert_true(processes_find(f->p, 4, &id));
	assert_int_equal(id.runtime, 3);
	assert_true(processes_set_runtime(f->p, 4, 0));
	check(f, 4, 5, 9, 2);
	assert_false(processes_set_runtime(f->p, 5, 1));
	assert_false(f->kernel.recorded[5]);
}

/* Without room the old record stays; a new process is refused, and nothing is left of it. */
static void test_no_room(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(publish(f, 1, 0, 4, 1, 1), 0);
	assert_int_equal(publish(f, 2, 0, 4096, 2, 1), 0);
	assert_int_equal(publish(f, 1, 1, 4096, 3, 1), PROCESSES_NO_SPACE);
	check(f, 1, 0, 4, 1);
	assert_int_equal(publish(f, 3, 0, 4096, 3, 1), PROCESSES_NO_SPACE);
	assert_false(f->kernel.recorded[3]);
	assert_int_equal(processes_stats(f->p).n_records, 2);

	f->kernel.max_records = 2;
	assert_int_equal(publish(f, 4, 0, 4, 4, 1), PROCESSES_FULL);
	assert_int_equal(publish(f, 2, 1, 4, 4, 1), 0);
	check(f, 2, 1, 4, 4);
	assert_int_equal(processes_stats(f->p).outcomes[PROCESSES_FULL], 1);
	assert_int_equal(processes_stats(f->p).outcomes[PROCESSES_NO_SPACE], 2);
}

static void test_mark(void **state)
{
	struct fixture *f = *state;
	bool used[8] = {false};

	assert_int_equal(publish(f, 1, 0, 3, 1, 1), 0);
	assert_int_equal(publish(f, 2, 0, 5, 1, 1), 0);
	processes_withdraw(f->p, 2, 1);
	processes_mark(f->p, used, array_size(used));
	for (size_t i = 0; i < array_size(used); i++)
		assert_int_equal(used[i], i >= 1 && i <= 5);
	memset(used, 0, sizeof(used));
	processes_sweep(f->p, 1 + PROCESSES_QUIET_NS);
	processes_mark(f->p, used, array_size(used));
	assert_true(used[3] && !used[4]);
}

/* After any order of publications and withdrawals every record has its own mappings. */
static void test_churn(void **state)
{
	struct fixture *f = *state;
	size_t n_of[16] = {0}, seed = 1;
	unsigned int which[16] = {0};

	for (uint64_t step = 0; step < 20000; step++) {
		uint32_t tgid;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		tgid = (seed >> 33) % 16;
		if ((seed >> 40) % 3 == 0) {
			processes_withdraw(f->p, tgid, step * 100000000);
			continue;
		}
		n_of[tgid] = (seed >> 44) % 300;
		which[tgid] = (seed >> 54) % 4;
		if (publish(f, tgid, step, n_of[tgid], which[tgid], step * 100000000) == 0)
			check(f, tgid, step, n_of[tgid], which[tgid]);
	}
}

static int publish_afresh(void *ctx)
{
	struct fixture *f = ctx;
	struct processes_id id = {.tgid = 5, .start_boottime_ns = 1000};
	struct process_mapping maps[] = {{.start_pages = 1, .n_pages = 1, .exe = 1}};
	int r = processes_publish(f->p, &id, maps, 1, 1);

	assert_int_equal(f->kernel.recorded[5], r == 0);
	return r;
}

static void test_no_memory(void **state)
{
	assert_true(allocfail_each(publish_afresh, *state) >= 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_sizes),     TEST(test_too_many),	TEST(test_shared), TEST(test_quiet),
		TEST(test_no_room),   TEST(test_exec_replaces), TEST(test_mark),   TEST(test_churn),
		TEST(test_no_memory), TEST(test_set_runtime),	TEST(test_exe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
