// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "base/wall.h"
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
};

/* A map written at @written_ns of the boot clock, when the wall clock was @write_step_ns ahead of
 * the present one; podprof saw the program when it was @seen_step_ns ahead. */
struct age_row {
	const char *name;
	int64_t written_ns;
	uint64_t began_ns;
	int64_t write_step_ns;
	int64_t seen_step_ns;
	int outcome;
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

/* Last written at this time of the wall clock. */
static void make_written(int fd, int64_t wall_ns)
{
	const int64_t second_ns = (int64_t)NSEC_PER_SEC;
	const struct timespec time = {.tv_sec = wall_ns / second_ns,
				      .tv_nsec = wall_ns % second_ns};
	const struct timespec times[2] = {time, time};

	make_file(fd);
	assert_int_equal(utimensat(fd, MAP, times, 0), 0);
}

static const struct row rows[] = {
	{"root's", make_file, 0},
	{"the process's user's", make_own, 0},
	{"another user's", make_others, PERF_MAP_FILE_FOREIGN},
	{"none", make_nothing, PERF_MAP_FILE_ABSENT},
	{"with the outer pid", make_outer, PERF_MAP_FILE_ABSENT},
	{"FIFO", make_fifo, PERF_MAP_FILE_ODD},
	{"directory", make_directory, PERF_MAP_FILE_ODD},
	{"device", make_device, PERF_MAP_FILE_ODD},
	{"a link inside the root", make_link_inside, 0},
	{"a link out of the root", make_link_outside, PERF_MAP_FILE_ABSENT},
	{"/tmp is a link out of the root", make_directory_link, PERF_MAP_FILE_ABSENT},
	{"a link to itself", make_loop, PERF_MAP_FILE_ODD},
};

#define S   ((int64_t)NSEC_PER_SEC)
#define MS  ((int64_t)NSEC_PER_MSEC)
#define DAY (86400 * S)

static const struct age_row age_rows[] = {
	{"before the process", 1 * S - 100 * MS, 0, 0, 0, PERF_MAP_FILE_OLD},
	{"in the last tick before the process", 1 * S - 5 * MS, 0, 0, 0, 0},
	{"after it began", 1 * S + 1, 0, 0, 0, 0},
	{"before an exec", 4 * S - 100 * MS, 4 * S, 0, 0, PERF_MAP_FILE_OLD},
	{"in the last tick before an exec", 4 * S - 5 * MS, 4 * S, 0, 0, 0},
	{"after an exec", 4 * S + 1, 4 * S, 0, 0, 0},
	{"a step forward after the write", 5 * S, 4 * S, -DAY, -DAY, 0},
	{"a step forward before the write", 5 * S, 4 * S, 0, -DAY, 0},
	{"a step forward after an old write", 3 * S, 4 * S, -DAY, -DAY, PERF_MAP_FILE_OLD},
	{"a step forward before an exec", 3 * S, 4 * S, -DAY, 0, PERF_MAP_FILE_OLD},
	{"a step back after the write", 5 * S, 4 * S, DAY, DAY, 0},
	{"a step back before the write", 5 * S, 4 * S, 0, DAY, 0},
	{"a step back after a write a day before", 3 * S - 2 * DAY, 4 * S, DAY, DAY,
	 PERF_MAP_FILE_OLD},
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
		assert_int_equal(perf_map_file_open(&proc, &process, 0, 0, &fd), rows[i].outcome);
		if (!rows[i].outcome) {
			assert_int_equal(read(fd, &byte, 1), 1);
			close(fd);
		}
		tree_deinit(&tree);
	}
}

static void test_ages(void **state)
{
	const int64_t at_boot_ns = (int64_t)wall_at_boot();

	(void)state;
	for (size_t i = 0; i < array_size(age_rows); i++) {
		const struct age_row *row = &age_rows[i];
		struct root proc;
		struct tree tree;
		int fd = -1;

		row_begin(row->name);
		make_process(&tree);
		make_written(tree.fd, at_boot_ns + row->write_step_ns + row->written_ns);
		proc.fd = tree.fd;
		assert_int_equal(perf_map_file_open(&proc, &process, row->began_ns,
						    (uint64_t)(at_boot_ns + row->seen_step_ns),
						    &fd),
				 row->outcome);
		close(fd);
		tree_deinit(&tree);
	}
}

/* Some file systems keep whole seconds. */
static void test_whole_seconds(void **state)
{
	const int64_t at_boot_ns = (int64_t)wall_at_boot();
	const int64_t written_ns = (at_boot_ns / S + 1000) * S;
	const uint64_t began_ns = (uint64_t)(written_ns - at_boot_ns);
	struct root proc;
	struct tree tree;
	int fd = -1;

	(void)state;
	make_process(&tree);
	make_written(tree.fd, written_ns);
	proc.fd = tree.fd;
	assert_int_equal(
		perf_map_file_open(&proc, &process, began_ns + 900 * NSEC_PER_MSEC, 0, &fd), 0);
	close(fd);
	assert_int_equal(
		perf_map_file_open(&proc, &process, began_ns + 1100 * NSEC_PER_MSEC, 0, &fd),
		PERF_MAP_FILE_OLD);
	tree_deinit(&tree);
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
		assert_int_equal(perf_map_file_open(&proc, &process, 0, 0, &fd),
				 status_rows[i].outcome);
		close(fd);
		/* another process has this pid */
		assert_int_equal(perf_map_file_open(&proc, &later, 0, 0, &fd),
				 PERF_MAP_FILE_ABSENT);
	}
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_whole_seconds),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
