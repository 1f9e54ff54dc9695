// SPDX-License-Identifier: Apache-2.0
/*
 * The command is a process of its own before anything is sampled, so that it can be entered among
 * those who are wanted; it waits for a byte and then executes its program. What it does in between
 * is a read: its first sample is of its own first instructions, or of the kernel's at loading it.
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
	/* what the kernel does to load the program is the program's in the profile, too */
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
		close(go[1]); /* else it would never see us go */
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
	/* nothing comes, and its end is closed, when the program is executed */
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
