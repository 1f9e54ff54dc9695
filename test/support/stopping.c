// SPDX-License-Identifier: Apache-2.0
#include "support/stopping.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "support/hostwalk.h"

/* A step may enter a long system call. After the first number of looks the call is interrupted,
 * after the second number the step is abandoned. A look takes LOOK_NS plus the scheduler's delay.
 */
#define LOOK_NS		  20000
#define LOOKS_PATIENT	  100
#define LOOKS_MOST	  100000
#define DEPTH_OF_FAMILIES 8

/* ---------------------------------------------------------------- running threads */

/* Whether the thread runs or is ready to run. */
static bool is_running(pid_t pid, pid_t tid)
{
	char path[64], line[512] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	state = strrchr(line, ')');
	return state && state[2] == 'R';
}

static size_t add_running(pid_t pid, int depth, pid_t ret[STOPPING_THREADS_MAX], size_t n);

static size_t add_children(pid_t pid, pid_t tid, int depth, pid_t ret[STOPPING_THREADS_MAX],
			   size_t n)
{
	char path[64];
	int child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		n = add_running(child, depth - 1, ret, n);
	if (f)
		fclose(f);
	return n;
}

static size_t add_running(pid_t pid, int depth, pid_t ret[STOPPING_THREADS_MAX], size_t n)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid > 0 && n < STOPPING_THREADS_MAX && is_running(pid, tid))
			ret[n++] = tid;
		if (tid > 0 && depth > 0)
			n = add_children(pid, tid, depth, ret, n);
	}
	if (dir)
		closedir(dir);
	return n;
}

size_t stopping_running(pid_t pid, bool family, pid_t ret[STOPPING_THREADS_MAX])
{
	return add_running(pid, family ? DEPTH_OF_FAMILIES : 0, ret, 0);
}

/* ---------------------------------------------------------------- stopping */

/* Wait for the stop. */
static bool wait_stop(struct stopping *s)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	int status;

	for (int i = 0; i < LOOKS_MOST; i++) {
		pid_t got = waitpid(s->tid, &status, __WALL | WNOHANG);

		if (got == s->tid && WIFSTOPPED(status)) {
			/* a ptrace stop, or a stop before a signal's delivery */
			s->sig = status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
			return true;
		}
		if (got != 0)
			return false;
		if (i == LOOKS_PATIENT && ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) != 0)
			return false;
		nanosleep(&look, NULL);
	}
	return false;
}

bool stopping_begin(struct stopping *s, pid_t tid)
{
	*s = (struct stopping){.tid = tid};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_stop(s))
		return true;
	stopping_end(s);
	return false;
}

/* Whether the next instruction would store the trap flag. The program would restore the flag later,
 * without a tracer. */
static bool stores_flags(pid_t tid)
{
#if defined(__x86_64__)
	struct hostwalk_regs regs;
	long word;

	if (hostwalk_regs(tid, &regs) < 0)
		return true;
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)regs.pc, NULL);
	return errno || (word & 0xff) == 0x9c; /* pushf */
#else
	(void)tid;
	return false;
#endif
}

bool stopping_step(struct stopping *s)
{
	if (stores_flags(s->tid))
		return false;
	if (ptrace(PTRACE_SINGLESTEP, s->tid, NULL, (void *)(intptr_t)s->sig) != 0)
		return false;
	s->sig = 0;
	return wait_stop(s);
}

/* Whether a step's trap is pending. */
static bool has_trap(pid_t tid)
{
	char path[64], line[128];
	unsigned long long pending = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "SigPnd:", 7) == 0)
			pending = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return pending & 1ull << (SIGTRAP - 1);
}

/* An interrupted step may already be done with its trap pending; the trap would then hit the
 * program. */
void stopping_end(struct stopping *s)
{
	while (has_trap(s->tid)) {
		if (ptrace(PTRACE_CONT, s->tid, NULL, NULL) != 0 || !wait_stop(s))
			break;
	}
	(void)ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->sig);
}
