// SPDX-License-Identifier: Apache-2.0
/* Descriptors of started programs. File systems without an answer are in test/hostile. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/launcher.h"

/* What the shell's @script writes into the descriptor, up to the end. */
static void run(struct launcher *l, char *script, char *ret, size_t n)
{
	char name[] = "sh", option[] = "-c";
	char *const argv[] = {name, option, script, NULL};
	int fds[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(launcher_start(l, "/bin/sh", argv, fds[1], &pid), 0);
	close(fds[1]);
	/* the end comes: no other process has a copy, nor have we */
	while ((got = read(fds[0], ret + len, n - 1 - len)) > 0)
		len += (size_t)got;
	ret[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The fifth is the directory that the shell lists. */
static void check(struct launcher *l)
{
	static char fds[] = "cd /proc/self/fd && echo * >&3; readlink 0 2 >&3";
	static char environment[] = "tr '\\0' ' ' </proc/$$/environ >&3";
	static char group[] = "cut -d' ' -f5 /proc/self/stat >&3; echo $$ >&3";
	char text[256], *second;

	run(l, fds, text, sizeof(text));
	assert_string_equal(text, "0 1 2 3 4\n/dev/null\n/dev/null\n");
	run(l, environment, text, sizeof(text));
	assert_string_equal(text, "");
	run(l, group, text, sizeof(text));
	second = strchr(text, '\n') + 1;
	assert_true(strlen(second) * 2 == strlen(text));
	assert_memory_equal(text, second, strlen(second));
}

static void test_start(void **state)
{
	const int foreign = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), n_copies = 200;
	struct launcher *l, *second;
	int fd, first;

	(void)state;
	assert_int_equal(launcher_new(&l), 0);
	first = fcntl(foreign, F_DUPFD, 0);
	assert_true(first >= 64);
	for (int i = 0; i < n_copies; i++)
		assert_true(fcntl(foreign, F_DUPFD, 0) > first);
	check(l);
	check(l);
	assert_int_equal(launcher_new(&second), 0);
	check(second);
	launcher_free(second);
	launcher_free(l);
	for (fd = first; fd <= first + n_copies; fd++)
		close(fd);
	close(foreign);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd < 64); /* all are free again */
	close(fd);
}

/* Blocked signals and handlers stay ours. */
static void test_signals(void **state)
{
	static char script[] = "kill -INT $$; echo no >&3";
	char name[] = "sh", option[] = "-c";
	char *const argv[] = {name, option, script, NULL};
	struct launcher *l;
	sigset_t all, none;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(launcher_new(&l), 0);
	assert_true(signal(SIGINT, SIG_IGN) != SIG_ERR);
	sigfillset(&all);
	assert_int_equal(sigprocmask(SIG_SETMASK, &all, &none), 0);
	assert_int_equal(launcher_start(l, "/bin/sh", argv, STDERR_FILENO, &pid), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &none, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	assert_true(signal(SIGINT, SIG_DFL) == SIG_IGN);
	launcher_free(l);
}

static void test_no_program(void **state)
{
	char name[] = "absent";
	char *const argv[] = {name, NULL};
	struct launcher *l;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(launcher_new(&l), 0);
	assert_int_equal(launcher_start(l, "/absent", argv, STDERR_FILENO, &pid), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == LAUNCHER_FAILED);
	launcher_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
