// SPDX-License-Identifier: Apache-2.0
/*
 * Burns CPU time in a function named after the container: PLACE, given to the compiler.
 *
 *	places           all the time
 *	places short     in processes of 5 ms, 200 a second
 *	places nested    as the first process of a new pid namespace
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURN_NS 5000000ull

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static void PLACE(void)
{
	const uint64_t until = cpu_ns() + BURN_NS;

	while (cpu_ns() < until)
		for (int i = 0; i < 20000; i++)
			sink = sink * 3 + 1;
	sink++; /* no tail call, to keep the frame */
}

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = BURN_NS};

	nanosleep(&ts, NULL);
}

static void burn_short(void)
{
	if (fork() == 0) {
		PLACE();
		_exit(0);
	}
	nap();
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "nested") == 0) {
		if (unshare(CLONE_NEWPID))
			return 1;
		if (fork()) {
			wait(NULL);
			return 2;
		}
	}
	for (;;) {
		if (strcmp(how, "short") == 0) {
			burn_short();
		} else {
			PLACE();
			nap();
		}
	}
}
