// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!r && name)
		(void)pthread_setname_np(*ret, name);
	return -r;
}

void thread_read_file(pid_t pid, pid_t tid, const char *file, char *ret, size_t size)
{
	_cleanup_(close_fdp) int fd = -1;
	char process[16] = "self", path[96];
	ssize_t n;

	if (pid)
		snprintf(process, sizeof(process), "%d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%s/task/%d/%s", process, (int)tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
}

bool thread_is_runnable(pid_t pid, pid_t tid)
{
	const char *name_end;
	char text[96]; /* the state is behind the pid and the name */

	thread_read_file(pid, tid, "stat", text, sizeof(text));
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") R", 3) == 0;
}
