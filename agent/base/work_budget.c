// SPDX-License-Identifier: Apache-2.0
/*
 * Units are deterministic: a file needs the same number on each machine, under any load. They are
 * an estimate of the work, so the thread's CPU time is the last resort against an estimate that is
 * wrong for one file. CPU time does not pass while the thread waits for a busy CPU or a slow disk.
 * A look at this clock is a system call, so there is one for each WORK_LOOK units.
 */
#include "base/work_budget.h"

#include "base/nsec.h"

/* Units between two looks at the clock, about a millisecond. */
#define WORK_LOOK	((uint64_t)1 << 20)
/* How long a file is not tried again. An attempt takes seconds of one thread at most: less than one
 * percent of the thread's time. */
#define WORK_REFUSED_NS (1800 * NSEC_PER_SEC)

void work_budget_init(struct work_budget *b, uint64_t units, uint64_t cpu_ns,
		      const atomic_bool *stop)
{
	*b = (struct work_budget){
		.left = units,
		.look = WORK_LOOK,
		.cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) + cpu_ns,
		.stop = stop,
	};
}

bool work_budget_spend(struct work_budget *b, uint64_t units)
{
	if (b->end)
		return false;
	if (b->stop && atomic_load_explicit(b->stop, memory_order_relaxed)) {
		b->end = WORK_STOPPED;
	} else if (b->outer && !work_budget_spend(b->outer, units)) {
		b->end = b->outer->end;
	} else if (units > b->left) {
		b->end = WORK_SPENT;
	} else {
		b->left -= units;
		b->spent += units;
		if (b->spent >= b->look) {
			b->look = b->spent + WORK_LOOK;
			if (nsec_read(CLOCK_THREAD_CPUTIME_ID) > b->cpu_ns)
				b->end = WORK_TOO_LONG;
		}
	}
	return !b->end;
}

void work_budget_add(struct work_budget *b, uint64_t units)
{
	if (__builtin_add_overflow(b->left, units, &b->left))
		b->left = UINT64_MAX;
}

void work_refused_add(struct work_refused *r, const struct file_id *file, uint64_t now_ns)
{
	r->items[r->next] = (struct work_refused_file){*file, now_ns + WORK_REFUSED_NS};
	r->next = (r->next + 1) % WORK_REFUSED_MAX;
}

bool work_refused_has(const struct work_refused *r, const struct file_id *file, uint64_t now_ns)
{
	for (size_t i = 0; i < WORK_REFUSED_MAX; i++)
		if (now_ns < r->items[i].until_ns && file_id_same_inode(&r->items[i].file, file))
			return true;
	return false;
}
