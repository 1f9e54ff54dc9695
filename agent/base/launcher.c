// SPDX-License-Identifier: Apache-2.0
/*
 * The new process begins with our table of descriptors (CLONE_FILES), and leaves it with
 * CLOSE_RANGE_UNSHARE: the kernel copies the part of the table below the range only. Up to Linux
 * 6.12 it copies whole groups of 64, and closes the copies above. So the first group belongs to us.
 *
 * The new process has memory of its own (no CLONE_VM). As always after a fork of a program with
 * threads, it makes system calls only.
 */
#include "base/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

struct launcher {
	int fds[LAUNCHER_RESERVED];
	size_t n;
};

DEFINE_CLEANUP(struct launcher *, launcher_freep, launcher_free);

int launcher_new(struct launcher **ret)
{
	_cleanup_(launcher_freep) struct launcher *l = calloc(1, sizeof(*l));
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (!l || fd < 0) {
		close_fdp(&fd);
		return l ? -errno : -ENOMEM;
	}
	while (fd >= 0 && fd < LAUNCHER_RESERVED) {
		l->fds[l->n++] = fd;
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (fd < 0)
		return -errno;
	close(fd);
	*ret = take_ptr(l);
	return 0;
}

void launcher_free(struct launcher *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		close(l->fds[i]);
	free(l);
}

/* A handler of ours stays set in the new process until the exec, without its threads. */
static void reset_signals(void)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int signo = 1; signo < _NSIG; signo++)
		(void)sigaction(signo, &usual, NULL); /* fails for SIGKILL and others */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the new process, which has the descriptors up to @fd. */
static void run(const char *program, char *const argv[], int fd)
{
	const unsigned int end = fd < LAUNCHER_RESERVED ? LAUNCHER_RESERVED : (unsigned int)fd + 1;
	char *const envp[] = {NULL};
	int null;

	if (syscall(SYS_close_range, end, ~0U, CLOSE_RANGE_UNSHARE) < 0)
		return;
	reset_signals();
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(fd, LAUNCHER_FD) < 0)
		return;
	for (int i = 0; i < LAUNCHER_FD; i++)
		if (dup2(null, i) < 0)
			return;
	if (syscall(SYS_close_range, LAUNCHER_FD + 1, ~0U, 0) < 0 || setpgid(0, 0) < 0)
		return;
	(void)execve(program, argv, envp);
}

/* The place reserved for the copy, or -1. */
static int place_of(const struct launcher *l)
{
	return l->n > 1 && l->fds[l->n - 1] > LAUNCHER_FD ? l->fds[l->n - 1] : -1;
}

/* A copy of @fd above LAUNCHER_FD. Negative: -errno. */
static int put(const struct launcher *l, int fd)
{
	int place = place_of(l);

	place = place >= 0 ? dup3(fd, place, O_CLOEXEC)
			   : fcntl(fd, F_DUPFD_CLOEXEC, LAUNCHER_FD + 1);
	return place < 0 ? -errno : place;
}

/* The copy is the new process's alone. */
static void take_back(const struct launcher *l, int place)
{
	if (place == place_of(l))
		(void)dup3(l->fds[0], place, O_CLOEXEC);
	else
		close(place);
}

int launcher_start(struct launcher *l, const char *program, char *const argv[], int fd, pid_t *ret)
{
	const int place = put(l, fd);
	sigset_t all, before;
	pid_t pid;
	int r = 0;

	if (place < 0)
		return place;
	/* no handler of ours runs in the new process */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	/* returns when the new process has left our table */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		run(program, argv, place);
		_exit(LAUNCHER_FAILED);
	}
	if (pid < 0)
		r = -errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	take_back(l, place);
	if (!r)
		*ret = pid;
	return r;
}
