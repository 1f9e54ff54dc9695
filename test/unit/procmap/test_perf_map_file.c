// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/perf_map_file.h"
#include "support/tree.h"

/* The process 70 of a container, which is its process 7, since a second after the system began. */
#define STAT  "70 (node) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 99\n"
#define OWN   1000
#define OTHER 1001
#define MAP   "root/tmp/perf-7.map"

struct row {
	const char *name;
	void (*make)(int fd);
	int outcome;
	uint64_t began_ns; /* the program; 0: with the process */
};

static void make_file(int fd)
{
	tree_write(fd, MAP, "1000 10 f\n");
}

static void make_owned(int fd, uid_t uid)
{
	make_file(fd);
	assert_int_equal(fchownat(fd, MAP, uid, uid, 0), 0);
}

static void make_own(int fd)
{
	make_owned(fd, OWN);
}

static void make_others(int fd)
{
	make_owned(fd, OTHER);
}

static void make_nothing(int fd)
{
	(void)fd;
}

/* By the pid that the agent sees. */
static void make_outer(int fd)
{
	tree_write(fd, "root/tmp/perf-70.map", "1000 10 f\n");
}

static void make_fifo(int fd)
{
	assert_int_equal(mkfifoat(fd, MAP, 0600), 0);
}

static void make_directory(int fd)
{
	(void)tree_mkdir(fd, MAP);
}

static void make_device(int fd)
{
	assert_int_equal(mknodat(fd, MAP, S_IFCHR | 0600, makedev(1, 3)), 0);
}

static void make_link_inside(int fd)
{
	tree_write(fd, "root/tmp/other", "1000 10 f\n");
	assert_int_equal(symlinkat("/tmp/other", fd, MAP), 0);
}

/* The agent could read the file, which is not below the root. */
static void make_link_outside(int fd)
{
	tree_write(fd, "outside", "1000 10 f\n");
	assert_int_equal(symlinkat("../../outside", fd, MAP), 0);
}

static void make_directory_link(int fd)
{
	(void)tree_mkdir(fd, "outside");
	tree_write(fd, "outside/perf-7.map", "1000 10 f\n");
	assert_int_equal(unlinkat(fd, "root/tmp", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("../outside", fd, "root/tmp"), 0);
}

static void make_loop(int fd)
{
	assert_int_equal(symlinkat("perf-7.map", fd, MAP), 0);
}

/* Written at so many seconds of the boot clock. */
static void make_written(int fd, int64_t boot_s)
{
	int64_t wall_s = ((int64_t)nsec_wall() - (int64_t)nsec_boot()) / (int64_t)NSEC_PER_SEC;
	struct timespec times[2] = {{.tv_sec = wall_s + boot_s}, {.tv_sec = wall_s + boot_s}};

	make_file(fd);
	assert_int_equal(utimensat(fd, MAP, times, 0), 0);
}

static void make_old(int fd)
{
	make_written(fd, -2);
}

static void make_young(int fd)
{
	make_written(fd, 2);
}

static const struct row rows[] = {
	{"root's", make_file, 0, 0},
	{"the process's user's", make_own, 0, 0},
	{"another user's", make_others, PERF_MAP_FILE_FOREIGN, 0},
	{"none", make_nothing, PERF_MAP_FILE_ABSENT, 0},
	{"with the outer pid", make_outer, PERF_MAP_FILE_ABSENT, 0},
	{"FIFO", make_fifo, PERF_MAP_FILE_ODD, 0},
	{"directory", make_directory, PERF_MAP_FILE_ODD, 0},
	{"device", make_device, PERF_MAP_FILE_ODD, 0},
	{"a link inside the root", make_link_inside, 0, 0},
	{"a link out of the root", make_link_outside, PERF_MAP_FILE_ABSENT, 0},
	{"/tmp is a link out of the root", make_directory_link, PERF_MAP_FILE_ABSENT, 0},
	{"a link to itself", make_loop, PERF_MAP_FILE_ODD, 0},
	{"written before the process began", make_old, PERF_MAP_FILE_OLD, 0},
	{"written after it began", make_young, 0, 0},
	{"before its program began", make_young, PERF_MAP_FILE_OLD, 4 * NSEC_PER_SEC},
	{"after its program began", make_young, 0, 2 * NSEC_PER_SEC},
};

static const struct pid_id process = {.pid = 70, .start_ticks = 100};

static void make_process(struct tree *tree)
{
	tree_init(tree);
	(void)tree_mkdir(tree->fd, "70");
	(void)tree_mkdir(tree->fd, "root/tmp");
	tree_write(tree->fd, "70/stat", STAT);
	tree_write(tree->fd, "70/status",
		   "Name:\tnode\nUid:\t0\t1000\t0\t0\nNSpid:\t70\t7\nThreads:\t1\n");
	assert_int_equal(symlinkat("../root", tree->fd, "70/root"), 0);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct root proc;
		struct tree tree;
		char byte;
		int fd = -1;

		row_begin(rows[i].name);
		make_process(&tree);
		rows[i].make(tree.fd);
		proc.fd = tree.fd;
		assert_int_equal(perf_map_file_open(&proc, &process, rows[i].began_ns, &fd),
				 rows[i].outcome);
		if (!rows[i].outcome) {
			assert_int_equal(read(fd, &byte, 1), 1);
			close(fd);
		}
		tree_deinit(&tree);
	}
}

struct status_row {
	const char *name;
	const char *status;
	int outcome;
};

static const struct status_row status_rows[] = {
	{"one namespace", "Uid:\t0\t0\t0\t0\nNSpid:\t7\n", 0},
	{"three", "Uid:\t0\t0\t0\t0\nNSpid:\t70\t9\t7\n", 0},
	{"without pids", "Uid:\t0\t0\t0\t0\n", PERF_MAP_FILE_ABSENT},
	{"empty", "", PERF_MAP_FILE_ABSENT},
	{"no pid", "Uid:\t0\t0\t0\t0\nNSpid:\t\n", PERF_MAP_FILE_ABSENT},
	{"words", "Uid:\t0\t0\t0\t0\nNSpid:\t70\tx\n", PERF_MAP_FILE_ABSENT},
	{"one user", "Uid:\t0\nNSpid:\t7\n", PERF_MAP_FILE_ABSENT},
};

static void test_status(void **state)
{
	struct root proc;
	struct tree tree;

	(void)state;
	make_process(&tree);
	make_file(tree.fd);
	proc.fd = tree.fd;
	for (size_t i = 0; i < array_size(status_rows); i++) {
		const struct pid_id later = {.pid = 70, .start_ticks = 101};
		int fd = -1;

		row_begin(status_rows[i].name);
		tree_write(tree.fd, "70/status", status_rows[i].status);
		assert_int_equal(perf_map_file_open(&proc, &process, 0, &fd),
				 status_rows[i].outcome);
		close(fd);
		/* another process has this pid */
		assert_int_equal(perf_map_file_open(&proc, &later, 0, &fd), PERF_MAP_FILE_ABSENT);
	}
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
