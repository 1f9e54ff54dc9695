// SPDX-License-Identifier: Apache-2.0
/* C with frame pointers, in the main thread and in another. See workloads.py. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;
static uint64_t burst_ns;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static uint64_t leaf(uint64_t until)
{
	uint64_t x = until;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005u + 1;
	return x;
}

/* NOLINTNEXTLINE(misc-no-recursion): it is to be deep */
__attribute__((noinline)) static uint64_t down(unsigned int depth, uint64_t until)
{
	return (depth ? down(depth - 1, until) : leaf(until)) + depth;
}

static void *burn(void *unused)
{
	uint64_t next = now_ns(CLOCK_MONOTONIC);

	for (;;) {
		struct timespec at;

		sink += down(12, now_ns(CLOCK_THREAD_CPUTIME_ID) + burst_ns);
		next += 20000000;
		at = (struct timespec){(time_t)(next / 1000000000), (long)(next % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const double share = argc > 1 ? strtod(argv[1], NULL) : 0.2;
	pthread_t thread;

	burst_ns = (uint64_t)(share / 2 * 20000000);
	if (pthread_create(&thread, NULL, burn, NULL))
		return 1;
	burn(NULL);
	return 0;
}
