// SPDX-License-Identifier: Apache-2.0
/* What a process without rights can do, and what not. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"

static const struct sandbox_opts roomy = {
	.data_bytes = 64u << 20, .address_bytes = 1u << 30, .cpu_s = 5};

/* An open file of a page. */
static int open_fd;

static bool refused(long result)
{
	return result < 0 && errno == EPERM;
}

static bool open_is_refused(void)
{
	return refused(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0));
}

static bool socket_is_refused(void)
{
	return refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
}

static bool process_is_refused(void)
{
	return refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) &&
	       refused(syscall(SYS_execve, "/bin/true", NULL, NULL));
}

static bool signal_is_refused(void)
{
	return refused(syscall(SYS_kill, getppid(), 0)) &&
	       refused(syscall(SYS_ptrace, 16, getppid(), 0, 0));
}

static bool code_is_refused(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page != MAP_FAILED &&
	       refused(syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC)) &&
	       refused(syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static bool path_stat_is_refused(void)
{
	struct stat st;

	return refused(syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, 0));
}

static bool owner_is_refused(void)
{
	return refused(syscall(SYS_fcntl, open_fd, F_SETOWN, 1)) && fcntl(open_fd, F_GETFL) >= 0;
}

/* From outside: the process waits in a read. */
static void test_capabilities(void **state)
{
	int sockets[2], status;
	char path[64], text[4096] = "";
	pid_t pid;
	int fd;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (pid == 0) {
		int r = sandbox_enter(&roomy);

		(void)!write(sockets[1], "", 1);
		(void)!read(sockets[1], text, 1);
		_exit(r ? 2 : 0);
	}
	assert_int_equal(read(sockets[0], text, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, "CapPrm:\t0000000000000000"));
	assert_non_null(strstr(text, "CapEff:\t0000000000000000"));
	assert_non_null(strstr(text, "CapAmb:\t0000000000000000"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	assert_non_null(strstr(text, "Seccomp:\t2"));
	assert_int_equal(write(sockets[0], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(sockets[0]);
	close(sockets[1]);
}

static bool file_is_read(void)
{
	char byte;
	struct stat st;
	const char *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open_fd, 0);

	return fstat(open_fd, &st) == 0 && st.st_size == 4096 && pread(open_fd, &byte, 1, 7) == 1 &&
	       mapped != MAP_FAILED && mapped[7] == byte;
}

/* Runs @fn in a process without rights. */
static bool holds(bool (*fn)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(sandbox_enter(&roomy) ? 2 : fn() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	print_message("status %#x\n", (unsigned int)status);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_rights(void **state)
{
	static const struct row {
		const char *name;
		bool (*fn)(void);
	} rows[] = {
		{"open", open_is_refused},
		{"socket", socket_is_refused},
		{"process", process_is_refused},
		{"signal", signal_is_refused},
		{"code", code_is_refused},
		{"stat of a path", path_stat_is_refused},
		{"owner of a file", owner_is_refused},
		{"an open file", file_is_read},
	};
	char path[] = "/tmp/podprof-sandbox-XXXXXX";

	(void)state;
	open_fd = mkstemp(path);
	assert_true(open_fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(open_fd, 4096), 0);
	assert_int_equal(pwrite(open_fd, "x", 1, 7), 1);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		assert_true(holds(rows[i].fn));
	}
	close(open_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
