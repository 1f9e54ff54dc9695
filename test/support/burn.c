// SPDX-License-Identifier: Apache-2.0
#include "support/burn.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each function has its own section, and the linker provides the bounds. */
#define BURN_FUNCTION(name) __attribute__((noinline, section(#name "_text"))) void name

#define BURN_RANGE(name)                                          \
	extern const char __start_##name##_text[];                \
	extern const char __stop_##name##_text[];                 \
	struct burn_range name##_range(void)                      \
	{                                                         \
		return (struct burn_range){                       \
			.start = (uint64_t)__start_##name##_text, \
			.limit = (uint64_t)__stop_##name##_text,  \
		};                                                \
	}

#define BURN_DEPTH	 600
#define BURN_USUAL_DEPTH 24

static volatile uint64_t sink;
static volatile bool stop; /* never set; but the compiler must assume that the calls return */

static BURN_FUNCTION(burn_inner)(enum burn_kind kind)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	while (!stop) {
		if (kind == BURN_KERNEL)
			syscall(SYS_getppid);
		else if (kind == BURN_SLEEP)
			syscall(SYS_nanosleep, &nap, NULL);
		else
			sink = sink * 3 + 1;
	}
}

static BURN_FUNCTION(burn_right)(unsigned int path, int depth);

/* Left or right by each bit of the path: so many bits, so many different stacks. */
static BURN_FUNCTION(burn_left)(unsigned int path, int depth)
{
	if (depth && path & 1)
		burn_left(path >> 1, depth - 1);
	else if (depth)
		burn_right(path >> 1, depth - 1);
	for (int i = 0; i < 100 && !depth; i++)
		sink = sink * 3 + 1;
	sink++;
}

static BURN_FUNCTION(burn_right)(unsigned int path, int depth)
{
	if (depth && path & 1)
		burn_left(path >> 1, depth - 1);
	else if (depth)
		burn_right(path >> 1, depth - 1);
	for (int i = 0; i < 100 && !depth; i++)
		sink = sink * 5 + 1;
	sink++;
}

static void burn_many(void)
{
	for (unsigned int path = 0; !stop; path++)
		burn_left(path, 20);
}

static BURN_FUNCTION(burn_middle)(enum burn_kind kind)
{
	burn_inner(kind);
	sink++; /* a call in tail position might become a jump */
}

static BURN_FUNCTION(burn_deeper)(enum burn_kind kind, int depth)
{
	if (depth)
		burn_deeper(kind, depth - 1);
	else
		burn_middle(kind);
	sink++;
}

static BURN_FUNCTION(burn_outer)(enum burn_kind kind)
{
	if (kind == BURN_DEEP)
		burn_deeper(kind, BURN_DEPTH);
	else if (kind == BURN_USUAL)
		burn_deeper(kind, BURN_USUAL_DEPTH);
	else
		burn_middle(kind);
	sink++;
}

BURN_RANGE(burn_inner)
BURN_RANGE(burn_middle)
BURN_RANGE(burn_deeper)
BURN_RANGE(burn_outer)

static void burn_child(enum burn_kind kind)
{
	raise(SIGSTOP);
	if (kind == BURN_MANY)
		burn_many();
	else
		burn_outer(kind);
	_exit(0);
}

pid_t burn_start(enum burn_kind kind)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0) {
		waitpid(pid, NULL, WUNTRACED);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		burn_child(kind);
	_exit(1);
}

pid_t burn_start_pidns(enum burn_kind kind)
{
	struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	burn_outer(kind);
	_exit(1);
}

void burn_go(pid_t pid)
{
	kill(pid, SIGCONT);
}

uint64_t burn_end(pid_t pid)
{
	struct rusage usage;
	int status;

	kill(pid, SIGKILL);
	if (wait4(pid, &status, 0, &usage) != pid)
		return 0;
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000 +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}
