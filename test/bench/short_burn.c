// SPDX-License-Identifier: Apache-2.0
/*
 * Short-lived processes, for test/bench/workloads.py. Burns CPU for the given number of
 * milliseconds three calls deep, sleeps there for the second number, and ends. With a third number,
 * its stack has a frame of 31 KiB. With "spawn RATE
 * SECONDS PROGRAM..." it starts the programs in turns, RATE a second. Prints their CPU time in ns
 * at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long sleep_ms;

static unsigned long long now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000ull + (unsigned long long)ts.tv_nsec;
}

__attribute__((noipa)) static void short_inner(unsigned long long until)
{
	static volatile unsigned long sink;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		for (unsigned int i = 0; i < 20000; i++)
			sink += i * sink + 1;
	if (sleep_ms)
		nanosleep(&(struct timespec){.tv_nsec = sleep_ms * 1000000}, NULL);
}

__attribute__((noipa)) static int short_middle(unsigned long long until)
{
	short_inner(until);
	return (int)(until & 1);
}

__attribute__((noipa)) static int short_outer(unsigned long long ns)
{
	return short_middle(now_ns(CLOCK_PROCESS_CPUTIME_ID) + ns) + 1;
}

/* All pages of the frame are present. */
__attribute__((noipa)) static int short_deep(unsigned long long ns)
{
	volatile char room[31 << 10];

	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[i] = 0;
	return short_outer(ns) + room[0];
}

static void start(const char *program)
{
	char *argv[] = {(char *)program, (char *)"2", NULL};
	pid_t pid;

	if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0)
		exit(1);
}

static void spawn(int rate, int seconds, char **programs, int n)
{
	unsigned long long period = 1000000000ull / (unsigned int)rate, next;
	struct rusage usage;

	next = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < rate * seconds; i++) {
		struct timespec at;

		start(programs[i % n]);
		next += period;
		at = (struct timespec){(time_t)(next / 1000000000ull),
				       (long)(next % 1000000000ull)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("%lld\n", (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ll +
				 (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ll);
}

int main(int argc, char **argv)
{
	unsigned long long ns;

	if (argc > 4 && strcmp(argv[1], "spawn") == 0) {
		spawn(atoi(argv[2]), atoi(argv[3]), argv + 4, argc - 4);
		return 0;
	}
	sleep_ms = argc > 2 ? atol(argv[2]) : 0;
	ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) * 1000000;
	return (argc > 3 ? short_deep(ns) : short_outer(ns)) == 3;
}
