// SPDX-License-Identifier: Apache-2.0
#include "support/debugserver.h"

#include "support/test.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "support/fixture.h"
#include "support/tree.h"

/* Bytes of a fixture with debug information, far above each. */
#define DEBUG_BYTES_MAX (64u << 20)

void debugserver_own_network(void)
{
	_cleanup_(close_fdp) int fd = -1;
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
}

void debugserver_put(const struct tree *files, const char *fixture)
{
	char path[FIXTURE_PATH_MAX];
	_cleanup_(close_fdp) int fd = open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_deinit) struct buf bytes;

	buf_init(&bytes, DEBUG_BYTES_MAX);
	assert_true(fd >= 0);
	assert_int_equal(root_read_fd(fd, &bytes), 0);
	assert_int_equal(atomic_file_write(files->fd, fixture, 0600, bytes.data, bytes.len), 0);
}

pid_t debugserver_start(const struct tree *files)
{
	char program[FIXTURE_PATH_MAX];
	pid_t pid;

	fixture_path("debuginfod", program);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		(void)setenv("HOME", files->path, 1);
		(void)setenv("DEBUGINFOD_URLS", "", 1);
		execl(program, program, "-p", "8002", "-d", ":memory:", "-t", "1", "-F",
		      files->path, NULL);
		_exit(127);
	}
	return pid;
}

void debugserver_check(pid_t server)
{
	int status;

	assert_int_equal(waitpid(server, &status, WNOHANG), 0);
}

void debugserver_kill(pid_t server)
{
	int status;

	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, &status, 0), server);
}
