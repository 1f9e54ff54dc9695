// SPDX-License-Identifier: Apache-2.0
#include "plain.h"

#include <time.h>

#include "base/nsec.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline)) /* prevents clones */
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

uint64_t plain_inner(uint64_t cpu_ns);
uint64_t plain_middle(uint64_t cpu_ns);

/* Work after each call prevents a tail call. */
NOINLINE uint64_t plain_inner(uint64_t cpu_ns)
{
	volatile uint64_t sum = 1;

	while (nsec_read(CLOCK_PROCESS_CPUTIME_ID) < cpu_ns)
		for (int i = 0; i < 100000; i++)
			sum = sum * 3 + 1;
	return sum;
}

NOINLINE uint64_t plain_middle(uint64_t cpu_ns)
{
	volatile uint64_t room[20]; /* a frame larger than a return address */

	room[7] = plain_inner(cpu_ns);
	return room[7] + 1;
}

NOINLINE uint64_t plain_outer(uint64_t cpu_ns)
{
	return plain_middle(cpu_ns) + 1;
}
