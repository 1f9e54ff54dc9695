/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_RECORD_WARM_H
#define PODPROF_CMD_RECORD_WARM_H

/*
 * When a recording begins. Before, samples are taken but not recorded, until the last drains in a
 * row had all that their stacks need. A new table leads to the next caller, whose table may be
 * missing in turn. Drains count and not time: on a busy node samples and tables are late.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/nsec.h"

struct root;

/* Consecutive drains without anything missing. */
#define RECORD_WARM_DRAINS	4
/* The longest wait for tables. All tables of a busy node together take 0.3 s of CPU time, and a
 * node with 150 runnable processes on two CPUs gives podprof that in 10 s. Reached: the recording
 * begins, and the summary has the number of missing tables. */
#define RECORD_WARM_MAX_NS	(15 * NSEC_PER_SEC)
/* The longest wait for the walk of a language runtime: half a second of CPU time on a thread of low
 * priority, once. Reached: the recording begins, and the summary says so. */
#define RECORD_WARM_LOAD_MAX_NS (60 * NSEC_PER_SEC)
/* Threads of a process that are looked at. Reached: the others count as waiting. */
#define RECORD_WARM_THREADS_MAX 256

/* What a recording needs before it begins. */
enum record_need {
	RECORD_NEEDS_TABLES,  /* unwind tables to make, and files to open for them */
	RECORD_NEEDS_WALKS,   /* walks of language runtimes to load */
	RECORD_NEEDS_READS,   /* processes and names of language runtimes to read */
	RECORD_NEEDS_SAMPLES, /* of a target that wants the CPU and has none yet */
	RECORD_NEEDS_MAX,
};

/**
 * struct record_look - the state at one moment
 * @ns:        since the beginning of the wait
 * @n_drains:  so far
 * @n_missing: of each need
 */
struct record_look {
	uint64_t ns;
	uint64_t n_drains;
	size_t n_missing[RECORD_NEEDS_MAX];
};

/**
 * struct record_warm - a wait
 * @n_ready:    drains
 * @missing_ns: time in which a need was missing
 */
struct record_warm {
	struct record_look last;
	unsigned int n_ready;
	uint64_t missing_ns[RECORD_NEEDS_MAX];
};

/* Whether the recording begins now. {0} is the beginning. */
bool record_warm_is_over(struct record_warm *w, const struct record_look *look);

/* One line: how long the wait was, for what, and what is missing at its end. */
void record_warm_show(const struct record_warm *w, FILE *to);

/* Whether a thread of the process runs or wants to. */
bool record_warm_runs(const struct root *proc, pid_t pid);

#endif
