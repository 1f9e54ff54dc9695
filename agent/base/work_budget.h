/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WORK_BUDGET_H
#define PODPROF_BASE_WORK_BUDGET_H

/*
 * A ceiling on the work that one file of a container may cause, and a way to abandon that work. The
 * reader of the file charges each read, and long loops charge their steps. When the budget ends,
 * every further charge fails, so the parsers end as on a truncated file.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"

/* Units of one read, besides its bytes: a system call. */
#define WORK_READ_COST 512u

/* Why a budget ended. */
enum work_end {
	WORK_GOING = 0,
	WORK_SPENT,    /* all units are spent */
	WORK_TOO_LONG, /* the thread's CPU time is over: units do not describe this work */
	WORK_STOPPED,  /* the owner wants the thread back */
	WORK_END_MAX,
};

/**
 * struct work_budget - one job's budget, for one thread
 * @left:   units: a byte read, or work of about a nanosecond
 * @spent:  units so far
 * @look:   value of @spent at the next look at the clock
 * @cpu_ns: end on CLOCK_THREAD_CPUTIME_ID
 * @stop:   set by another thread; borrowed, may be NULL
 * @outer:  budget of the job that this one is a part of: charged too, and its end is this one's;
 *          borrowed, may be NULL
 */
struct work_budget {
	uint64_t left;
	uint64_t spent;
	uint64_t look;
	uint64_t cpu_ns;
	const atomic_bool *stop;
	struct work_budget *outer;
	enum work_end end;
};

/* @cpu_ns: from now on, of the calling thread's CPU time. */
void work_budget_init(struct work_budget *b, uint64_t units, uint64_t cpu_ns,
		      const atomic_bool *stop);
/* False if the budget has ended, now or earlier. */
bool work_budget_spend(struct work_budget *b, uint64_t units);
/* More units, for one more request. An ended budget stays ended. */
void work_budget_add(struct work_budget *b, uint64_t units);

/* Files remembered at once. Reached: the oldest is forgotten, and may use up another budget. */
#define WORK_REFUSED_MAX 256

/* Files that used up a budget, by inode: a file is not tried again because it was touched. */
struct work_refused {
	struct work_refused_file {
		struct file_id file;
		uint64_t until_ns;
	} items[WORK_REFUSED_MAX];
	size_t next;
};

/* No further attempt for WORK_REFUSED_NS. */
void work_refused_add(struct work_refused *r, const struct file_id *file, uint64_t now_ns);
bool work_refused_has(const struct work_refused *r, const struct file_id *file, uint64_t now_ns);

#endif
