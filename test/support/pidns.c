// SPDX-License-Identifier: Apache-2.0
#include "support/pidns.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status of @pid; also reaps other children. */
static int wait_for(pid_t pid)
{
	pid_t ended;
	int status;

	do {
		ended = wait(&status);
	} while (ended > 0 && ended != pid);
	return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Three processes: the parent, whose children are in a new pid namespace; the idle first process of
 * the namespace; and the tests, with a /proc of the namespace. */
int pidns_run(int (*run)(void))
{
	pid_t pid = fork();

	if (pid)
		return wait_for(pid);
	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		_exit(1);
	pid = fork();
	if (pid)
		_exit(wait_for(pid));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		_exit(1);
	pid = fork();
	if (pid)
		_exit(wait_for(pid));
	exit(run());
}
