// SPDX-License-Identifier: Apache-2.0
/*
 * Burns CPU time in known functions: victim_leaf() below thirteen calls of victim_down() below
 * main().
 *
 *	victim PERCENT    so much of one CPU
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>

#define DEPTH	 12
#define SLICE_NS 5000000ull

static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static uint64_t victim_leaf(uint64_t x)
{
	for (int i = 0; i < 2000000; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

__attribute__((noinline)) static uint64_t victim_down(int depth, uint64_t x)
{
	volatile uint64_t kept = x; /* no tail call */

	return kept + (depth ? victim_down(depth - 1, x + 1) : victim_leaf(x));
}

int main(int argc, char **argv)
{
	uint64_t percent = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		uint64_t begun = now_ns(CLOCK_PROCESS_CPUTIME_ID), used = 0;
		struct timespec rest;

		while (used < SLICE_NS) {
			sink += victim_down(DEPTH, sink);
			used = now_ns(CLOCK_PROCESS_CPUTIME_ID) - begun;
		}
		rest = (struct timespec){.tv_nsec = (long)(used * (100 - percent) / percent)};
		if (rest.tv_nsec)
			nanosleep(&rest, NULL);
	}
}
