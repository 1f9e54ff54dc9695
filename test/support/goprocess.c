// SPDX-License-Identifier: Apache-2.0
#include "support/goprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define ARGS_MAX 16

/* The words of a test that fails because the program has closed its output. */
static void fail_ended(const struct goprocess *p, ssize_t got)
{
	const int err = got < 0 ? errno : 0;
	int status = -1;

	for (int i = 0; i < 100 && waitpid((pid_t)p->id.pid, &status, WNOHANG) == 0; i++)
		usleep(10000);
	fail_msg("the Go program has ended: errno %d, status 0x%x", err, (unsigned int)status);
}

static void wait_ready(struct goprocess *p)
{
	char line[64];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		ssize_t got = read(p->from, line + n, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fail_ended(p, got);
		if (line[n++] != '\n')
			continue;
		line[n - 1] = '\0';
		assert_string_equal(line, "ready");
		return;
	}
	fail_msg("the Go program talks too much");
}

static void set_env(const char *env)
{
	char *words = env ? strdup(env) : NULL, *rest;

	for (char *word = words ? strtok_r(words, ";", &rest) : NULL; word;
	     word = strtok_r(NULL, ";", &rest))
		putenv(word);
}

static void run_child(const char *path, const char *const *args, const char *env, int in, int out)
{
	char *argv[ARGS_MAX + 2] = {(char *)path};

	for (size_t i = 0; i < ARGS_MAX && args[i]; i++)
		argv[i + 1] = (char *)args[i];
	/* a test that fails leaves no program behind, and Java's would run for ever */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* the leak checker's and the fuzzer's settings are no business of a Go program */
	unsetenv("GODEBUG");
	unsetenv("GOGC");
	set_env(env);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execvp(path, argv);
	_exit(127);
}

/* A child with this process number, or any for 0; -1 if somebody has it. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = pid ? 1 : 0,
	};
	pid_t child = pid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();

	assert_true(child >= 0 || (pid && errno == EEXIST));
	return child;
}

bool goprocess_start_as(struct goprocess *p, pid_t pid, const char *path, const char *const *args,
			const char *env)
{
	int in[2], out[2];

	*p = (struct goprocess){.proc = ROOT_INIT, .to = -1, .from = -1};
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork_as(pid);
	if (pid == 0)
		run_child(path, args, env, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	p->to = in[1];
	p->from = out[0];
	if (pid < 0) {
		close(p->to);
		close(p->from);
		p->to = p->from = -1;
		return false;
	}
	p->id.pid = (uint64_t)pid;
	assert_int_equal(root_open("/proc", &p->proc), 0);
	wait_ready(p);
	assert_int_equal(pid_read(&p->proc, pid, &p->id), 0);
	return true;
}

void goprocess_start(struct goprocess *p, const char *path, const char *const *args,
		     const char *env)
{
	assert_true(goprocess_start_as(p, 0, path, args, env));
}

void goprocess_order(struct goprocess *p, const char *line)
{
	char order[4096]; /* an order may contain a path */
	int n = snprintf(order, sizeof(order), "%s\n", line);

	assert_true(n > 0 && n < (int)sizeof(order));
	assert_int_equal(write(p->to, order, (size_t)n), n);
	wait_ready(p);
}

void goprocess_wait(struct goprocess *p)
{
	wait_ready(p);
}

void goprocess_stop(struct goprocess *p)
{
	if (p->to < 0)
		return;
	kill((pid_t)p->id.pid, SIGKILL);
	waitpid((pid_t)p->id.pid, NULL, 0);
	close(p->to);
	close(p->from);
	root_deinit(&p->proc);
	p->to = -1;
}
