// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "export/lockdir.h"
#include "support/allocfail.h"

#define DEV makedev(0xfd, 0x1)
#define INO 12345

static void test_line(void **state)
{
	static const struct {
		const char *line;
		pid_t pid; /* 0: another lock */
	} rows[] = {
		{"3: FLOCK  ADVISORY  WRITE 4711 fd:01:12345 0 EOF", 4711},
		{"30: FLOCK  ADVISORY  READ  2147483647 fd:01:12345 0 EOF", 2147483647},
		{"3: FLOCK  ADVISORY  WRITE 4711 fd:01:12345", 4711},
		{"3: -> FLOCK  ADVISORY  WRITE 4711 fd:01:12345 0 EOF", 0},
		{"3: POSIX  ADVISORY  WRITE 4711 fd:01:12345 0 EOF", 0},
		{"3: OFDLCK ADVISORY  WRITE -1 fd:01:12345 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE -1 fd:01:12345 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 2147483648 fd:01:12345 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711 fd:01:12346 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711 fd:02:12345 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711 fc:01:12345 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711 <none>:0 0 EOF", 0},
		{"3: FLOCK  ADVISORY  WRITE 4711", 0},
		{"3: FLOCK", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		pid_t pid = 0;

		row_begin(rows[i].line);
		assert_int_equal(lockdir_line(strview_of(rows[i].line), DEV, INO, &pid),
				 rows[i].pid != 0);
		assert_int_equal(pid, rows[i].pid);
	}
}

/* A process that has the lock until the pipe closes. */
static pid_t hold(const char *path, int *ret_end)
{
	int ready[2], end[2], fd = -1;
	pid_t pid, holder = 0;
	char byte = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(end[1]);
		if (lockdir_open(path, 0700, &fd, &holder) || write(ready[1], &byte, 1) != 1)
			_exit(1);
		_exit((int)read(end[0], &byte, 1));
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(end[0]);
	*ret_end = end[1];
	return pid;
}

static int open_busy(void *ctx)
{
	pid_t holder = 0;
	int fd = -1, r = lockdir_open(ctx, 0700, &fd, &holder);

	assert_true(r == LOCKDIR_BUSY || r == -ENOMEM);
	return r == LOCKDIR_BUSY ? 0 : r;
}

static void test_open(void **state)
{
	char root[] = "/tmp/test_lockdir.XXXXXX", path[64], parent[64];
	int fd = -1, other = -1, end, status;
	pid_t holder = 0, pid;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(parent, sizeof(parent), "%s/deep", root);
	snprintf(path, sizeof(path), "%s/deep/locked", root);
	assert_int_equal(lockdir_open(path, 0700, &fd, &holder), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(holder, 0);

	row_begin("this process has the lock");
	assert_int_equal(lockdir_open(path, 0700, &other, &holder), LOCKDIR_BUSY);
	assert_int_equal(other, -1);
	assert_int_equal(holder, getpid());
	assert_int_equal(lockdir_holder(path), getpid());
	close(fd);
	assert_int_equal(lockdir_holder(path), 0);

	row_begin("another process has the lock");
	pid = hold(path, &end);
	assert_int_equal(lockdir_open(path, 0700, &other, &holder), LOCKDIR_BUSY);
	assert_int_equal(holder, pid);
	assert_int_equal(lockdir_holder(path), pid);
	/* without memory the process is unknown, and nothing else changes */
	assert_true(allocfail_survive(open_busy, path) > 1);
	close(end);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(lockdir_open(path, 0700, &fd, &holder), 0);
	close(fd);

	row_begin("no directory");
	assert_int_equal(lockdir_holder("/proc/none/locked"), 0);
	assert_int_equal(lockdir_open("/proc/none/locked", 0700, &other, &holder), -ENOENT);
	assert_int_equal(lockdir_open("/dev/null", 0700, &other, &holder), -ENOTDIR);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(parent), 0);
	assert_int_equal(rmdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
