// SPDX-License-Identifier: Apache-2.0
/*
 * The command's process exists before the first sample, so podprof can enter its pid in the pid
 * filter. The child waits for a byte and then executes its program. Before the exec it only reads,
 * so its first sample is of its own first instructions, or of the kernel loading the program.
 */
#include "cmd/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strview.h"

static _Noreturn void child_main(char **command, bool quiet, int go, int failed)
{
	char byte;
	int err;

	if (read(go, &byte, 1) != 1)
		_exit(1); /* podprof has given up */
	/* the kernel's work of loading the program counts for the program in the profile */
	(void)prctl(PR_SET_NAME, strview_after_last(strview_of(command[0]), '/').p);
	if (quiet)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(command[0], command);
	err = errno;
	(void)!write(failed, &err, sizeof(err));
	_exit(127);
}

int record_child_start(char **command, bool quiet, struct record_child *ret)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	ret->go = go[1];
	if (pipe2(failed, O_CLOEXEC) < 0) {
		close(go[0]);
		return -errno;
	}
	ret->failed = failed[0];
	ret->pid = fork();
	if (ret->pid == 0) {
		close(go[1]); /* else the child's copy would keep the pipe open after our end */
		child_main(command, quiet, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	return ret->pid < 0 ? -errno : 0;
}

int record_child_go(struct record_child *child)
{
	int err = 0;

	if (write(child->go, "g", 1) != 1)
		return -errno;
	close(take_fd(child->go));
	/* a successful exec closes the pipe without a byte */
	if (read(child->failed, &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(take_fd(child->failed));
	return -err;
}

bool record_child_ended(struct record_child *child)
{
	if (child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) == child->pid) {
		child->pid = 0;
		child->ended = true;
	}
	return child->ended;
}

void record_child_deinit(struct record_child *child)
{
	if (child->pid > 0 && child->go >= 0) {
		close(take_fd(child->go));
		(void)waitpid(child->pid, NULL, 0);
	}
	close_fdp(&child->go);
	close_fdp(&child->failed);
}
