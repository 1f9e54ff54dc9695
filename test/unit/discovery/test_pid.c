// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/nsec.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "support/tree.h"

/* Fields 3 to 21, then starttime and one more. */
#define TAIL(start) " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " start " 99\n"

struct stat_row {
	const char *name;
	const char *stat;
	int outcome;
	uint64_t pid;
	uint64_t start;
	const char *comm;
};

static const struct stat_row stat_rows[] = {
	{"plain", "7 (sh)" TAIL("4711"), 0, 7, 4711, "sh"},
	{"no name", "7 ()" TAIL("4711"), 0, 7, 4711, ""},
	{"fifteen characters", "7 (abcdefghijklmno)" TAIL("1"), 0, 7, 1, "abcdefghijklmno"},
	{"sixteen", "7 (abcdefghijklmnop)" TAIL("1"), PID_ODD, 0, 0, NULL},
	{"closes itself", "7 (a) S 1 1)" TAIL("5"), 0, 7, 5, "a) S 1 1"},
	{"opens twice", "7 ((sd-pam))" TAIL("5"), 0, 7, 5, "(sd-pam)"},
	{"newline", "7 (a\nb)" TAIL("5"), 0, 7, 5, "a\nb"},
	{"largest time", "7 (a)" TAIL("18446744073709551615"), 0, 7, UINT64_MAX, "a"},
	{"time too large", "7 (a)" TAIL("18446744073709551616"), PID_ODD, 0, 0, NULL},
	{"negative time", "7 (a)" TAIL("-1"), PID_ODD, 0, 0, NULL},
	{"cut before the time", "7 (a) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0", PID_ODD, 0,
	 0, NULL},
	{"cut in the name", "7 (abc", PID_ODD, 0, 0, NULL},
	{"cut before the name", "7 (", PID_ODD, 0, 0, NULL},
	{"no number", "(a)" TAIL("5"), PID_ODD, 0, 0, NULL},
	{"empty", "", PID_ODD, 0, 0, NULL},
};

static void test_parse_stat(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(stat_rows); i++) {
		const struct stat_row *row = &stat_rows[i];
		struct pid_id id = {.pid = 42, .start_ticks = 43};
		char comm[PID_COMM_MAX] = "untouched";
		int r;

		row_begin(row->name);
		r = pid_parse_stat(row->stat, strlen(row->stat), &id, comm);
		assert_int_equal(r, row->outcome);
		assert_int_equal(id.pid, r ? 42 : row->pid);
		assert_true(id.start_ticks == (r ? 43 : row->start));
		assert_string_equal(comm, r ? "untouched" : row->comm);
	}
}

static int proc_open(void **state)
{
	static struct root proc;

	*state = &proc;
	return root_open("/proc", &proc);
}

static int proc_close(void **state)
{
	root_deinit(*state);
	return 0;
}

static void test_self(void **state)
{
	const struct root *proc = *state;
	char comm[PID_COMM_MAX];
	struct pid_id id, other;

	assert_int_equal(pid_read(proc, getpid(), &id), 0);
	assert_int_equal(id.pid, getpid());
	assert_true(id.start_ticks <= pid_ticks_of_ns(nsec_boot()));
	assert_int_equal(pid_check(proc, &id), 0);

	/* the same number at another time is another process */
	other = id;
	other.start_ticks++;
	assert_int_equal(pid_check(proc, &other), PID_GONE);

	assert_int_equal(prctl(PR_SET_NAME, "odd) name\n ("), 0);
	assert_int_equal(pid_read_comm(proc, &id, comm), 0);
	assert_string_equal(comm, "odd) name\n (");
	assert_int_equal(pid_read_comm(proc, &other, comm), PID_GONE);
	assert_int_equal(pid_check(proc, &id), 0);
}

static void test_start_time_follows_the_boot_clock(void **state)
{
	const struct root *proc = *state;
	uint64_t before = pid_ticks_of_ns(nsec_boot()), after;
	struct pid_id id;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	after = pid_ticks_of_ns(nsec_boot());
	assert_int_equal(pid_read(proc, child, &id), 0);
	assert_in_range(id.start_ticks, before, after);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(pid_check(proc, &id), PID_GONE);
	assert_int_equal(pid_read(proc, child, &id), PID_GONE);
}

static void test_impossible_numbers(void **state)
{
	struct pid_id id = {.pid = 1};

	assert_int_equal(pid_read(*state, 0, &id), PID_GONE);
	assert_int_equal(pid_read(*state, -1, &id), PID_GONE);
	assert_int_equal(id.pid, 1);
}

/* A tree other than procfs: wrong number, FIFO, too long, not a stat line. */
static void test_false_proc(void **state)
{
	char dir[] = "/tmp/podprof-pid-XXXXXX", path[64];
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct pid_id id;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);

	assert_int_equal(mkdirat(proc.fd, "5", 0700), 0);
	assert_int_equal(pid_read(&proc, 5, &id), PID_GONE);
	assert_int_equal(mkfifoat(proc.fd, "5/stat", 0600), 0);
	assert_int_equal(pid_read(&proc, 5, &id), PID_ODD);
	assert_int_equal(unlinkat(proc.fd, "5/stat", 0), 0);

	fd = openat(proc.fd, "5/stat", O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "6 (x)" TAIL("1")), strlen("6 (x)" TAIL("1")));
	assert_int_equal(pid_read(&proc, 5, &id), PID_ODD);
	assert_int_equal(ftruncate(fd, 4097), 0);
	assert_int_equal(pid_read(&proc, 5, &id), PID_ODD);
	close(fd);

	snprintf(path, sizeof(path), "%s/5/stat", dir);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/5", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static int find_self(void *ctx, pid_t pid)
{
	size_t *n = ctx;

	(*n)++;
	return pid == getpid() ? 77 : 0;
}

static int count(void *ctx, pid_t pid)
{
	size_t *n = ctx;

	assert_true(pid > 0);
	(*n)++;
	return 0;
}

struct same {
	const struct root *proc;
	size_t n;
	bool self;
};

/* A process that has ended since has no inode any more. */
static int check_inode(void *ctx, pid_t pid, uint64_t inode)
{
	struct same *same = ctx;
	const uint64_t own = pid_inode(same->proc, pid);

	same->n += own == inode;
	same->self |= pid == getpid() && own == inode;
	return 0;
}

/* A listing agrees with single lookups. For other processes the kernel may drop the inode in
 * between. */
static void test_inodes(void **state)
{
	struct same same = {.proc = *state};

	assert_true(pid_inode(*state, getpid()) > 0);
	assert_int_equal(pid_for_each_inode(*state, check_inode, &same), 0);
	assert_true(same.self);
	assert_true(same.n > 1);
}

/* While the directory is the same, stat is not read. */
static void test_check_by_inode(void **state)
{
	_cleanup_(tree_deinit) struct tree tree;
	const struct pid_id id = {.pid = 7, .start_ticks = 4711};
	struct root proc;
	uint64_t inode = 0;

	(void)state;
	tree_init(&tree);
	proc = (struct root){.fd = tree.fd};
	assert_int_equal(pid_check_inode(&proc, &id, &inode), PID_GONE);
	assert_int_equal(inode, 0);
	assert_int_equal(mkdirat(tree.fd, "7", 0700), 0);
	tree_write(tree.fd, "7/stat", "7 (sh)" TAIL("4711"));
	assert_int_equal(pid_check_inode(&proc, &id, &inode), 0);
	assert_true(inode == pid_inode(&proc, 7));
	tree_write(tree.fd, "7/stat", "7 (sh)" TAIL("4712"));
	assert_int_equal(pid_check_inode(&proc, &id, &inode), 0);
	inode++;
	assert_int_equal(pid_check_inode(&proc, &id, &inode), PID_GONE);
	assert_int_equal(inode, 0);
}

static void test_for_each(void **state)
{
	size_t until_self = 0, all = 0;

	assert_int_equal(pid_for_each(*state, find_self, &until_self), 77);
	assert_int_equal(pid_for_each(*state, count, &all), 0);
	assert_in_range(until_self, 1, all);
	assert_true(all >= 2);
}

static void *sleeps(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void test_threads(void **state)
{
	const struct root *proc = *state;
	pid_t child = fork();
	siginfo_t info;

	if (child == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sleeps, NULL))
			_exit(1);
		pthread_exit(NULL); /* the leader is dead */
	}
	assert_true(child > 0);
	while (pid_n_threads(proc, child) < 2)
		usleep(1000);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(pid_n_threads(proc, child), 1);
	waitpid(child, NULL, 0);
	assert_int_equal(pid_n_threads(proc, child), 0);
	assert_int_equal(pid_n_threads(proc, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_stat),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_start_time_follows_the_boot_clock),
		cmocka_unit_test(test_impossible_numbers),
		cmocka_unit_test(test_false_proc),
		cmocka_unit_test(test_for_each),
		cmocka_unit_test(test_inodes),
		cmocka_unit_test(test_check_by_inode),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, proc_open, proc_close);
}
