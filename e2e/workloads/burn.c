// SPDX-License-Identifier: Apache-2.0
/*
 * Burns two CPUs, a process each: 70 % of the time in burn_seventy(), 30 % in burn_thirty(), by the
 * process's CPU clock, so the shares are right at any load. Built with frame pointers, static, for
 * a container with this file only.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 10000000ull /* of CPU time, then the other function's turn */

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static inline __attribute__((always_inline)) void spin(uint64_t until)
{
	uint64_t x = sink;

	do {
		for (int i = 0; i < 200000; i++)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
		sink = x;
	} while (cpu_ns() < until);
}

__attribute__((noinline)) static void burn_seventy(uint64_t until)
{
	spin(until);
	sink++; /* no tail call: the frame has to be there */
}

__attribute__((noinline)) static void burn_thirty(uint64_t until)
{
	spin(until);
	sink--;
}

__attribute__((noinline)) static void burn_both(void)
{
	static uint64_t due;

	if (!due)
		due = cpu_ns();
	due += 7 * SLICE_NS;
	burn_seventy(due);
	due += 3 * SLICE_NS;
	burn_thirty(due);
	sink++;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3600;

	/* one process is enough if this fails; the child ends with its parent, also with a killed
	 * one */
	if (fork() == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((double)cpu_ns() < seconds * 1e9)
		burn_both();
	return 0;
}
