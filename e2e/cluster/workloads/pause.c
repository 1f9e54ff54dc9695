// SPDX-License-Identifier: Apache-2.0
/* What holds a pod's namespaces: waits, and ends when it is asked to, as a process 1 has to say. */
#include <signal.h>
#include <unistd.h>

static void end(int signal)
{
	(void)signal;
	_exit(0);
}

int main(void)
{
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, SIG_IGN); /* its children are nobody's */
	for (;;)
		pause();
}
