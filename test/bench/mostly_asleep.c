// SPDX-License-Identifier: Apache-2.0
/* One of a hundred: uses about 1 % of a CPU and sleeps for the rest, until it is killed. NUMBER
 * makes each program another file. */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink = NUMBER;

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 300000; i++)
		sink = sink * 6364136223846793005ull + NUMBER;
}

int main(void)
{
	const struct timespec pause = {.tv_nsec = 50000000 + NUMBER * 100003};

	for (;;) {
		work();
		nanosleep(&pause, NULL);
	}
}
