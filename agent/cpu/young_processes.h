/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_YOUNG_PROCESSES_H
#define PODPROF_CPU_YOUNG_PROCESSES_H

/*
 * The processes whose runtime was found a moment ago, and whose names are in their memory alone. A
 * program that has just begun has new functions in each sample, and may end before they are read:
 * meanwhile drains follow one another soon (drain_set_soon()). Times are monotonic.
 */

#include <stddef.h>
#include <stdint.h>

/* Processes of a second that cause the shortest times between drains, and those of one owner. Each
 * causes some ten drains more. Further ones cause drains after DRAIN_SOON_LAST_NS. */
#define YOUNG_PROCESSES_PER_SECOND 4
#define YOUNG_PROCESSES_PER_OWNER  2
/* Young processes, 24 bytes each. A node starts a few in five seconds. Reached: the oldest is
 * forgotten, and functions that it shows later may be `gone`. */
#define YOUNG_PROCESSES_MAX	   64

struct young_process {
	uint64_t pid;
	uint64_t since_ns; /* for drain_set_soon() */
};

/* Zeros are an empty list. */
struct young_processes {
	struct young_process items[YOUNG_PROCESSES_MAX]; /* the oldest first */
	size_t n;
	uint64_t second_ns; /* begin of the second of @quick */
	size_t n_quick;
	uint64_t quick[YOUNG_PROCESSES_PER_SECOND]; /* owners */
};

/* The runtime of a process of @owner was found. */
void young_processes_add(struct young_processes *young, uint64_t pid, uint64_t owner,
			 uint64_t now_ns);
/* The process has ended. */
void young_processes_end(struct young_processes *young, uint64_t pid);
/* For drain_set_soon(). */
uint64_t young_processes_since_ns(struct young_processes *young, uint64_t now_ns);

#endif
