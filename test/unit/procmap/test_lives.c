// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "procmap/lives.h"
#include "support/allocfail.h"

static int setup(void **state)
{
	return lives_new((struct lives **)state);
}

static int teardown(void **state)
{
	lives_free(*state);
	return 0;
}

static void birth(struct lives *l, uint32_t pid, uint32_t ppid, uint64_t time)
{
	lives_tell(l, &(struct lives_event){LIVES_BIRTH, pid, pid, ppid, time, {0}, ""});
}

static void exec(struct lives *l, uint32_t pid, uint64_t time)
{
	lives_tell(l, &(struct lives_event){LIVES_EXEC, pid, pid, 0, time, {0}, ""});
}

static void end(struct lives *l, uint32_t pid, uint32_t tid, uint64_t time)
{
	lives_tell(l, &(struct lives_event){LIVES_EXIT, pid, tid, 0, time, {0}, ""});
}

static void map(struct lives *l, uint32_t pid, uint64_t time, uint64_t start, uint64_t limit,
		uint64_t inode, const char *name)
{
	struct lives_event event = {LIVES_MAP, pid, pid, 0, time, {0}, name};

	event.map = (struct maps_entry){.start = start,
					.limit = limit,
					.offset = 0x1000,
					.device = inode ? 7 : 0,
					.inode = inode};
	lives_tell(l, &event);
}

/* "1000-3000 a, 5000-6000 [vdso]" */
static void check_maps(const struct life *life, uint32_t program, uint64_t since, const char *want)
{
	struct maps maps = {0};
	char text[1024] = "";

	assert_non_null(life);
	assert_int_equal(life_add_maps(life, program, since, &maps), 0);
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
	const struct life *life;
	struct lives *l = *state;

	birth(l, 10, 9, 100);
	map(l, 10, 110, 0x1000, 0x2000, 5, "/bin/sh");
	exec(l, 10, 120);
	map(l, 10, 121, 0x4000, 0x6000, 6, "/bin/true");
	map(l, 10, 122, 0x8000, 0x9000, 7, "/lib/libc.so.6 (deleted)");
	map(l, 10, 123, 0xa000, 0xb000, 0, "[vdso]");
	end(l, 10, 10, 130);
	life = lives_find(l, 10, 100);
	assert_non_null(life);
	assert_int_equal(life_program(life), 1);
	assert_int_equal(life_parent(life), 9);
	assert_int_equal(life_exit_ns(life), 130);
	assert_int_equal(life_changed_ns(life), 122);
	assert_false(life_is_whole(life, 0));
	assert_true(life_is_whole(life, 1));
	check_maps(life, 0, 0, "1000-2000+1000 /bin/sh");
	check_maps(life, 1, 0,
		   "4000-6000+1000 /bin/true, 8000-9000+1000 /lib/libc.so.6!, a000-b000+1000 "
		   "[vdso]");
	check_maps(life, 1, 121, "8000-9000+1000 /lib/libc.so.6!, a000-b000+1000 [vdso]");
	check_maps(life, 2, 0, "");
	assert_int_equal(life_program_at(life, 119), 0);
	assert_int_equal(life_program_at(life, 120), 1);
}

/* What was mapped later lies over what was there. */
static void test_covering(void **state)
{
	struct lives *l = *state;

	birth(l, 10, 9, 1);
	exec(l, 10, 2);
	map(l, 10, 3, 0x1000, 0x9000, 1, "/a");
	map(l, 10, 4, 0x3000, 0x4000, 2, "/b"); /* in the middle */
	check_maps(lives_find(l, 10, 1), 1, 0,
		   "1000-3000+1000 /a, 3000-4000+1000 /b, 4000-9000+4000 /a");
	map(l, 10, 5, 0x2000, 0x5000, 3, "/c"); /* over an end, one whole, and a front */
	check_maps(lives_find(l, 10, 1), 1, 0,
		   "1000-2000+1000 /a, 2000-5000+1000 /c, 5000-9000+5000 /a");
	map(l, 10, 6, 0x2000, 0x5000, 3, "/c"); /* again: no new entry */
	map(l, 10, 7, 0, 0x10000, 4, "/d");
	check_maps(lives_find(l, 10, 1), 1, 0, "0-10000+1000 /d");
	check_maps(lives_find(l, 10, 1), 1, 5, "0-10000+1000 /d");
}

static void test_pid_reuse(void **state)
{
	struct lives *l = *state;

	map(l, 10, 50, 0x1000, 0x2000, 1, "/early"); /* was there before we listened */
	end(l, 10, 10, 90);
	birth(l, 10, 9, 100);
	end(l, 10, 10, 190);
	birth(l, 10, 8, 200);
	birth(l, 10, 7, 300); /* the exit before it was lost */

	assert_int_equal(life_birth_ns(lives_find(l, 10, 5)), 0);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 90)), 0);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 99)), 100);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 100)), 100);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 199)), 200);
	assert_int_equal(life_exit_ns(lives_find(l, 10, 199)), 300);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 299)), 300);
	assert_int_equal(life_birth_ns(lives_find(l, 10, 0)), 300);
	assert_null(lives_find(l, 10, 301)); /* its birth was lost */
	assert_null(lives_find(l, 11, 0));
	assert_null(lives_find(l, 1ull << 40, 0));
}

static void test_sweep(void **state)
{
	struct lives *l = *state;

	birth(l, 10, 1, 100);
	map(l, 10, 101, 0x1000, 0x2000, 1, "/a");
	birth(l, 11, 1, 100);
	map(l, 11, 101, 0x1000, 0x2000, 1, "/a");
	end(l, 10, 12, 150); /* a thread that is not the leader */
	lives_sweep(l, 200 + LIVES_KEEP_NS);
	assert_int_equal(lives_stats(l).n, 2);
	end(l, 10, 10, 150);
	end(l, 10, 10, 160);
	lives_sweep(l, 150 + LIVES_KEEP_NS);
	assert_non_null(lives_find(l, 10, 0));
	lives_sweep(l, 151 + LIVES_KEEP_NS);
	assert_null(lives_find(l, 10, 0));
	check_maps(lives_find(l, 11, 0), 0, 0, "1000-2000+1000 /a");
	assert_int_equal(lives_stats(l).n, 1);
}

/* A thread executes: its leader's exit comes first, and the process lives. */
static void test_thread_executes(void **state)
{
	struct lives *l = *state;

	birth(l, 10, 1, 100);
	end(l, 10, 10, 150);
	exec(l, 10, 151);
	assert_int_equal(life_exit_ns(lives_find(l, 10, 0)), 0);
	lives_sweep(l, 1000 + LIVES_KEEP_NS);
	assert_int_equal(life_program(lives_find(l, 10, 100)), 1);
	end(l, 10, 10, 1000);
	lives_sweep(l, 1001 + LIVES_KEEP_NS);
	assert_null(lives_find(l, 10, 0));
}

/* Ceilings: of one life's mappings, of programs that are remembered, of lives. */
static void test_ceilings(void **state)
{
	struct lives *l = *state;
	struct maps maps = {0};

	birth(l, 10, 1, 1);
	exec(l, 10, 2);
	for (uint64_t i = 0; i < 200; i++)
		map(l, 10, 10 + i, 0x1000 * i, 0x1000 * (i + 1), i, "/a");
	assert_int_equal(life_add_maps(lives_find(l, 10, 0), 1, 0, &maps), 0);
	assert_int_equal(maps.n, 128);
	assert_int_equal(maps.items[127].start, 0x1000 * 199);
	maps_deinit(&maps);
	assert_false(life_is_whole(lives_find(l, 10, 0), 1));
	assert_int_equal(lives_stats(l).n_maps, 72);

	for (uint64_t i = 0; i < 4; i++)
		exec(l, 10, 1000 + i);
	check_maps(lives_find(l, 10, 0), 1, 0, "");
	for (uint32_t pid = 0; pid < 40000; pid++)
		birth(l, 100 + pid, 1, 2000);
	assert_int_equal(lives_stats(l).n, 32768);
	assert_true(lives_stats(l).n_full > 0);
	assert_null(lives_find(l, 10, 0));
	lives_sweep(l, UINT64_MAX);
	assert_int_equal(lives_stats(l).n, 32768); /* they live */
}

static int tell_all(void *ctx)
{
	struct lives *l;
	uint64_t lost;
	int r = lives_new(&l);

	(void)ctx;
	if (r)
		return r;
	birth(l, 10, 1, 1);
	exec(l, 10, 2);
	map(l, 10, 3, 0x1000, 0x2000, 1, "/a");
	map(l, 10, 3, 0x3000, 0x4000, 2, "/b");
	end(l, 10, 10, 4);
	lost = lives_stats(l).n_memory;
	lives_free(l);
	return lost ? -ENOMEM : 0;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(allocfail_each(tell_all, NULL) >= 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_programs),	    TEST(test_covering), TEST(test_pid_reuse),
		TEST(test_thread_executes), TEST(test_sweep),	 TEST(test_ceilings),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
