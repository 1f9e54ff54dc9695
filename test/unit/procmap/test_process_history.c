// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/nsec.h"
#include "procmap/process_history.h"
#include "support/allocfail.h"

static int setup(void **state)
{
	return process_history_new((struct process_history **)state);
}

static int teardown(void **state)
{
	process_history_free(*state);
	return 0;
}

static void birth(struct process_history *l, uint32_t pid, uint32_t ppid, uint64_t time)
{
	process_history_add(
		l, &(struct process_event){PROCESS_EVENT_BIRTH, pid, pid, ppid, time, {0}, ""});
}

static void exec(struct process_history *l, uint32_t pid, uint64_t time)
{
	process_history_add(
		l, &(struct process_event){PROCESS_EVENT_EXEC, pid, pid, 0, time, {0}, ""});
}

static void end(struct process_history *l, uint32_t pid, uint32_t tid, uint64_t time)
{
	process_history_add(
		l, &(struct process_event){PROCESS_EVENT_EXIT, pid, tid, 0, time, {0}, ""});
}

static void map(struct process_history *l, uint32_t pid, uint64_t time, uint64_t start,
		uint64_t limit, uint64_t inode, const char *name)
{
	struct process_event event = {PROCESS_EVENT_MAP, pid, pid, 0, time, {0}, name};

	event.map = (struct maps_entry){.start = start,
					.limit = limit,
					.offset = 0x1000,
					.device = inode ? 7 : 0,
					.inode = inode};
	process_history_add(l, &event);
}

/* "1000-3000 a, 5000-6000 [vdso]" */
static void check_maps(const struct history_record *record, uint32_t program, uint64_t since,
		       const char *want)
{
	struct maps maps = {0};
	char text[1024] = "";

	assert_non_null(record);
	assert_int_equal(history_record_add_maps(record, program, since, UINT64_MAX, &maps), 0);
	for (size_t i = 0; i < maps.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%llx-%llx+%llx %s%s",
			 i ? ", " : "", (unsigned long long)maps.items[i].start,
			 (unsigned long long)maps.items[i].limit,
			 (unsigned long long)maps.items[i].offset, maps.items[i].path,
			 maps.items[i].deleted ? "!" : "");
	assert_string_equal(text, want);
	maps_deinit(&maps);
}

static void test_programs(void **state)
{
	const struct history_record *record;
	struct process_history *l = *state;

	birth(l, 10, 9, 100);
	map(l, 10, 110, 0x1000, 0x2000, 5, "/bin/sh");
	exec(l, 10, 120);
	map(l, 10, 121, 0x4000, 0x6000, 6, "/bin/true");
	map(l, 10, 122, 0x8000, 0x9000, 7, "/lib/libc.so.6 (deleted)");
	map(l, 10, 123, 0xa000, 0xb000, 0, "[vdso]");
	end(l, 10, 10, 130);
	record = process_history_find(l, 10, 100);
	assert_non_null(record);
	assert_int_equal(history_record_program(record), 1);
	assert_int_equal(history_record_parent(record), 9);
	assert_int_equal(history_record_exit_ns(record), 130);
	assert_int_equal(history_record_changed_ns(record), 122);
	check_maps(record, 0, 0, "1000-2000+1000 /bin/sh");
	check_maps(record, 1, 0,
		   "4000-6000+1000 /bin/true, 8000-9000+1000 /lib/libc.so.6!, a000-b000+1000 "
		   "[vdso]");
	check_maps(record, 1, 121, "8000-9000+1000 /lib/libc.so.6!, a000-b000+1000 [vdso]");
	check_maps(record, 2, 0, "");
	assert_int_equal(history_record_program_at(record, 119), 0);
	assert_int_equal(history_record_program_at(record, 120), 1);
}

/* A later mapping covers the earlier one. */
static void test_covering(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 9, 1);
	exec(l, 10, 2);
	map(l, 10, 3, 0x1000, 0x9000, 1, "/a");
	map(l, 10, 4, 0x3000, 0x4000, 2, "/b"); /* in the middle */
	check_maps(process_history_find(l, 10, 1), 1, 0,
		   "1000-3000+1000 /a, 3000-4000+1000 /b, 4000-9000+4000 /a");
	map(l, 10, 5, 0x2000, 0x5000, 3, "/c"); /* over an end, a whole mapping, and a front */
	check_maps(process_history_find(l, 10, 1), 1, 0,
		   "1000-2000+1000 /a, 2000-5000+1000 /c, 5000-9000+5000 /a");
	map(l, 10, 6, 0x2000, 0x5000, 3, "/c"); /* again: no new entry */
	map(l, 10, 7, 0, 0x10000, 4, "/d");
	check_maps(process_history_find(l, 10, 1), 1, 0, "0-10000+1000 /d");
	check_maps(process_history_find(l, 10, 1), 1, 5, "0-10000+1000 /d");
}

static void test_pid_reuse(void **state)
{
	struct process_history *l = *state;

	map(l, 10, 50, 0x1000, 0x2000, 1, "/early"); /* was there before we listened */
	end(l, 10, 10, 90);
	birth(l, 10, 9, 100);
	end(l, 10, 10, 190);
	birth(l, 10, 8, 200);
	birth(l, 10, 7, 300); /* the preceding exit event was lost */

	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 5)), 0);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 90)), 0);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 99)), 100);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 100)), 100);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 199)), 200);
	assert_int_equal(history_record_exit_ns(process_history_find(l, 10, 199)), 300);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 299)), 300);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 0)), 300);
	assert_null(process_history_find(l, 10, 301)); /* the birth event was lost */
	assert_null(process_history_find(l, 11, 0));
	assert_null(process_history_find(l, 1ull << 40, 0));
}

/* A pid keeps 16 processes; the oldest is evicted. */
static void test_pid_ceiling(void **state)
{
	struct process_history *l = *state;

	for (uint64_t i = 1; i <= 16; i++)
		birth(l, 10, 9, i * NSEC_PER_SEC);
	assert_int_equal(process_history_stats(l).n, 16);
	assert_int_equal(process_history_stats(l).n_full, 0);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, NSEC_PER_SEC - 1)),
			 NSEC_PER_SEC);
	birth(l, 10, 9, 17 * NSEC_PER_SEC);
	assert_int_equal(process_history_stats(l).n, 16);
	assert_int_equal(process_history_stats(l).n_full, 1);
	assert_null(process_history_find(l, 10, NSEC_PER_SEC - 1));
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 2 * NSEC_PER_SEC - 1)),
			 2 * NSEC_PER_SEC);
}

static void test_sweep(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 1, 100);
	map(l, 10, 101, 0x1000, 0x2000, 1, "/a");
	birth(l, 11, 1, 100);
	map(l, 11, 101, 0x1000, 0x2000, 1, "/a");
	end(l, 10, 12, 150); /* a thread other than the leader */
	process_history_sweep(l, 200 + PROCESS_HISTORY_KEEP_NS);
	assert_int_equal(process_history_stats(l).n, 2);
	end(l, 10, 10, 150);
	end(l, 10, 10, 160);
	process_history_sweep(l, 150 + PROCESS_HISTORY_KEEP_NS);
	assert_non_null(process_history_find(l, 10, 0));
	process_history_sweep(l, 151 + PROCESS_HISTORY_KEEP_NS);
	assert_null(process_history_find(l, 10, 0));
	check_maps(process_history_find(l, 11, 0), 0, 0, "1000-2000+1000 /a");
	assert_int_equal(process_history_stats(l).n, 1);
}

/* A late sample of a process with a dropped record does not belong to the next process with the
 * same pid. */
static void test_swept_and_reused(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 1, 100);
	end(l, 10, 10, 110);
	birth(l, 10, 1, 200);
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 99)), 100);
	process_history_sweep(l, 111 + PROCESS_HISTORY_KEEP_NS);
	assert_null(process_history_find(l, 10, 99));
	assert_int_equal(history_record_birth_ns(process_history_find(l, 10, 199)), 200);
}

/* A thread executes: its leader's exit comes first, and the process lives. */
static void test_thread_executes(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 1, 100);
	end(l, 10, 10, 150);
	exec(l, 10, 151);
	assert_int_equal(history_record_exit_ns(process_history_find(l, 10, 0)), 0);
	process_history_sweep(l, 1000 + PROCESS_HISTORY_KEEP_NS);
	assert_int_equal(history_record_program(process_history_find(l, 10, 100)), 1);
	end(l, 10, 10, 1000);
	process_history_sweep(l, 1001 + PROCESS_HISTORY_KEEP_NS);
	assert_null(process_history_find(l, 10, 0));
}

/* Ceilings: mappings of a life, remembered programs, lives. */
static void test_ceilings(void **state)
{
	struct process_history *l = *state;
	struct maps maps = {0};

	birth(l, 10, 1, 1);
	exec(l, 10, 2);
	for (uint64_t i = 0; i < 200; i++)
		map(l, 10, 10 + i, 0x1000 * i, 0x1000 * (i + 1), i, "/a");
	assert_int_equal(
		history_record_add_maps(process_history_find(l, 10, 0), 1, 0, UINT64_MAX, &maps),
		0);
	assert_int_equal(maps.n, 128);
	assert_int_equal(maps.items[127].start, 0x1000 * 199);
	maps_deinit(&maps);
	assert_int_equal(process_history_stats(l).n_maps, 72);

	for (uint64_t i = 0; i < 4; i++)
		exec(l, 10, 1000 + i);
	check_maps(process_history_find(l, 10, 0), 1, 0, "");
	for (uint32_t pid = 1; pid < 32768; pid++)
		birth(l, 100 + pid, 1, 2000);
	assert_int_equal(process_history_stats(l).n, 32768);
	assert_int_equal(process_history_stats(l).n_full, 0);
	process_history_sweep(l, UINT64_MAX);
	assert_int_equal(process_history_stats(l).n, 32768); /* living processes */
	assert_false(process_history_add(
		l, &(struct process_event){PROCESS_EVENT_BIRTH, 99, 99, 1, 2001, {0}, ""}));
	assert_null(process_history_find(l, 99, 0));
	assert_non_null(process_history_find(l, 10, 0));
	end(l, 101, 101, 2002); /* ended ones are dropped */
	assert_true(process_history_add(
		l, &(struct process_event){PROCESS_EVENT_BIRTH, 99, 99, 1, 2003, {0}, ""}));
	assert_null(process_history_find(l, 101, 0));
	assert_int_equal(process_history_stats(l).n_full, 2);
}

static const struct history_record *find(struct process_history *l, uint32_t pid, uint64_t start_ns)
{
	return process_history_find(l, pid, start_ns);
}

/* Names of files are foreign and long: the processes with most of the memory lose mappings. */
static void test_bytes(void **state)
{
	enum { BYTES_MAX = 32 << 20, NAME = 4000, FLOODS = 400, MAPS = 128 };
	struct process_history *l = *state;
	char name[NAME + 1];

	birth(l, 1, 1, 1);
	for (uint64_t i = 1; i <= 3; i++)
		map(l, 1, 1 + i, 0x1000 * i, 0x1000 * (i + 1), i, "/a");
	memset(name, 'x', NAME);
	name[NAME] = '\0';
	for (uint32_t pid = 2; pid < 2 + FLOODS; pid++) {
		birth(l, pid, 1, 10);
		for (uint64_t i = 1; i <= MAPS; i++) {
			const uint64_t inode = (uint64_t)pid * MAPS + i;

			map(l, pid, 10 + i, 0x1000 * i, 0x1000 * (i + 1), inode, name);
			assert_true(process_history_stats(l).bytes <= BYTES_MAX);
		}
	}
	assert_true(process_history_stats(l).bytes > BYTES_MAX / 2);
	assert_in_range(process_history_stats(l).n_maps, FLOODS * MAPS / 2, FLOODS * MAPS);
	assert_in_range(process_history_stats(l).n_halved, 1, process_history_stats(l).n_maps);
	assert_int_equal(process_history_stats(l).n, 1 + FLOODS);
	check_maps(find(l, 1, 1), 0, 0, "1000-2000+1000 /a, 2000-3000+1000 /a, 3000-4000+1000 /a");
}

/* Events of up to 1,000 were lost. */
static void test_lost(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 1, 100); /* ends before */
	exec(l, 10, 110);
	end(l, 10, 10, 120);
	birth(l, 11, 1, 130); /* lives */
	birth(l, 12, 1, 140); /* ends within */
	end(l, 12, 12, 600);
	process_history_lost(l, 500, 1000);
	assert_non_null(find(l, 10, 100));
	assert_null(find(l, 11, 130));
	assert_null(find(l, 12, 140));

	/* an event of an earlier epoch arrives too late */
	birth(l, 13, 1, 999);
	exec(l, 11, 998);
	assert_null(find(l, 13, 998));
	assert_null(find(l, 11, 130));

	/* a process from before: no exec number until a sample tells */
	exec(l, 11, 1100);
	assert_false(history_record_is_counted(find(l, 11, 130)));
	assert_null(find(l, 11, 1050)); /* born after the line, and not told of */

	/* born before, with the pid of a process born after */
	birth(l, 12, 1, 1010);
	assert_non_null(find(l, 12, 1009));
	assert_null(find(l, 12, 990));

	/* ended before: the pid now belongs to another process or to a thread of another process */
	assert_true(history_record_is_past(l, find(l, 10, 100)));
	exec(l, 10, 1200);
	assert_int_equal(history_record_program(find(l, 10, 100)), 1);
	assert_true(find(l, 10, 0) != find(l, 10, 100));
	assert_ptr_equal(find(l, 10, 700), find(l, 10, 0));
	end(l, 10, 10, 1300);
	assert_int_equal(history_record_exit_ns(find(l, 10, 100)), 120);
}

/* A loss forgets all at once, and memory is freed with the next events and sweeps. */
static void test_lost_in_slices(void **state)
{
	struct process_history *l = *state;
	const uint32_t n = 1000;
	size_t bytes;

	for (uint32_t pid = 1; pid <= n; pid++) {
		birth(l, pid, 1, pid);
		map(l, pid, n + pid, 0x1000, 0x2000, 1, "/a");
	}
	bytes = process_history_stats(l).bytes;
	process_history_lost(l, 0, 3 * n);
	assert_int_equal(process_history_stats(l).n, 0);
	assert_null(process_history_find(l, 7, 0));
	assert_true(process_history_stats(l).bytes > bytes / 2);
	for (uint32_t pid = 1; pid <= n / 4; pid++)
		birth(l, pid, 1, 4 * n);
	assert_int_equal(process_history_stats(l).n, n / 4);
	assert_in_range(process_history_stats(l).bytes, bytes / 4, bytes * 3 / 4);
	for (int i = 0; i < 4; i++)
		process_history_sweep(l, 4 * n);
	assert_int_equal(process_history_stats(l).n, n / 4);
	assert_true(process_history_stats(l).bytes < bytes / 4);
}

/* The time of a sample tells the program. */
static void test_learn(void **state)
{
	struct process_history *l = *state;
	const struct history_record *record;
	uint32_t program;

	birth(l, 10, 1, 100);
	exec(l, 10, 200);
	exec(l, 10, 300);
	record = find(l, 10, 100);
	assert_false(history_record_ran_only(record, 250, UINT64_MAX, &program));
	assert_false(history_record_ran_only(record, 150, 250, &program));
	assert_true(history_record_ran_only(record, 250, 250, &program));
	assert_int_equal(program, 1);
	assert_true(history_record_ran_only(record, 300, UINT64_MAX, &program));
	assert_int_equal(program, 2);
	assert_int_equal(history_record_exec_id(record), 2);
	assert_false(history_record_is_learned(record));
	process_history_learn(l, record, 1, 5, 0); /* its parent had executed four programs */
	assert_true(history_record_is_learned(record));
	assert_int_equal(history_record_exec_id(record), 6);
	assert_true(history_record_program_of(record, 0, &program));
	assert_int_equal(program, 0);
	for (uint64_t i = 0; i < 6; i++)
		exec(l, 10, 400 + i);
	assert_false(history_record_ran_only(record, 250, 250, &program)); /* too long ago */
}

/* A birth that the caller knows: the count of programs needs no sample. */
static void test_child(void **state)
{
	const struct history_record *record;
	struct process_history *l = *state;
	uint32_t program;

	assert_true(process_history_add_child(l, 10, 9, 100));
	exec(l, 10, 200);
	exec(l, 10, 300);
	record = process_history_find(l, 10, 95);
	assert_true(record && history_record_is_learned(record));
	assert_int_equal(history_record_birth_ns(record), 100);
	assert_int_equal(history_record_parent(record), 9);
	assert_int_equal(history_record_exec_id(record), 2);
	assert_true(history_record_program_of(record, 1, &program));
	assert_int_equal(program, 1);
	process_history_lost(l, 250, 400); /* forgotten, as any other */
	assert_null(process_history_find(l, 10, 95));
	assert_true(process_history_add_child(l, 10, 9, 350)); /* before the loss: ignored */
	assert_null(process_history_find(l, 10, 350));
}

static int send_all(void *ctx)
{
	struct process_history *l;
	uint64_t lost;
	int r = process_history_new(&l);

	(void)ctx;
	if (r)
		return r;
	birth(l, 10, 1, 1);
	exec(l, 10, 2);
	map(l, 10, 3, 0x1000, 0x2000, 1, "/a");
	map(l, 10, 3, 0x3000, 0x4000, 2, "/b");
	end(l, 10, 10, 4);
	lost = process_history_stats(l).n_memory;
	process_history_free(l);
	return lost ? -ENOMEM : 0;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(allocfail_each(send_all, NULL) >= 5);
}

/* Two names of one file with the same FNV-1a hash: a hash without a secret gives both files one
 * name. */
static void test_names_of_a_file(void **state)
{
	struct process_history *l = *state;

	birth(l, 10, 9, 1);
	birth(l, 11, 9, 2);
	map(l, 10, 3, 0x1000, 0x2000, 5, "8yn0iYCKYHlIj4-BwPqk");
	map(l, 11, 4, 0x1000, 0x2000, 5, "GReLUrM4wMqfg9yzV3KQ");
	check_maps(process_history_find(l, 10, 1), 0, 0, "1000-2000+1000 8yn0iYCKYHlIj4-BwPqk");
	check_maps(process_history_find(l, 11, 2), 0, 0, "1000-2000+1000 GReLUrM4wMqfg9yzV3KQ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_programs),
		TEST(test_covering),
		TEST(test_pid_reuse),
		TEST(test_pid_ceiling),
		TEST(test_thread_executes),
		TEST(test_sweep),
		TEST(test_swept_and_reused),
		TEST(test_ceilings),
		TEST(test_no_memory),
		TEST(test_lost),
		TEST(test_learn),
		TEST(test_lost_in_slices),
		TEST(test_bytes),
		TEST(test_child),
		TEST(test_names_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
