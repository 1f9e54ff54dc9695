// SPDX-License-Identifier: Apache-2.0
/*
 * work NAME [SECONDS]: uses a twentieth of a CPU in work_NAME(), for SECONDS or without an end. The
 * function in the stacks identifies the container. Built without frame pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS  5000000ull /* of CPU time */
#define PERIOD_US 100000     /* between two */

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static inline __attribute__((always_inline)) void spin(void)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + SLICE_NS;

	do {
		for (int i = 0; i < 20000; i++)
			sink = sink * 6364136223846793005ull + 1442695040888963407ull;
	} while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until);
}

#define ALL(X)         \
	X(deployment)  \
	X(daemonset)   \
	X(statefulset) \
	X(job)         \
	X(cronjob)     \
	X(static)      \
	X(init)        \
	X(sidecar)     \
	X(main)        \
	X(ephemeral)   \
	X(left)        \
	X(right)       \
	X(annotated)   \
	X(labelled)    \
	X(restarting)  \
	X(optedout)    \
	X(short)

/* Each function stores a different value last, so the compiler does not merge the functions. */
#define DEFINE(name)                                            \
	__attribute__((noinline)) static void work_##name(void) \
	{                                                       \
		spin();                                         \
		sink = __COUNTER__;                             \
	}
ALL(DEFINE)

#define ROW(name) {#name, work_##name},
static const struct {
	const char *name;
	void (*work)(void);
} rows[] = {ALL(ROW)};

int main(int argc, char **argv)
{
	uint64_t end_ns =
		argc > 2 ? clock_ns(CLOCK_MONOTONIC) + strtoull(argv[2], NULL, 10) * 1000000000ull
			 : UINT64_MAX;
	void (*work)(void) = NULL;

	for (size_t i = 0; argc > 1 && i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(rows[i].name, argv[1]) == 0)
			work = rows[i].work;
	if (!work) {
		fprintf(stderr, "work: what?\n");
		return 2;
	}
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		work();
		usleep(PERIOD_US);
	}
	return 0;
}
