// SPDX-License-Identifier: Apache-2.0
#include "base/slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The scheduler's slice, ns: the smallest that Linux accepts. Its usual slice is 3 ms. */
#define SLICE_NS 100000

/* The kernel's struct sched_attr in its first size. Older C libraries have none, and the kernel's
 * header does not go with theirs. */
struct slice_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

_Static_assert(sizeof(struct slice_attr) == 48, "SCHED_ATTR_SIZE_VER0");

void slice_ask_short(void)
{
	struct slice_attr attr;

	/* the thread keeps its policy and nice value; older kernels ignore the slice */
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 || attr.policy != SCHED_OTHER)
		return;
	attr.runtime_ns = SLICE_NS;
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* A kernel with RT_GROUP_SCHED refuses it in a cgroup without real-time budget. */
void slice_ask_first(void)
{
	const struct sched_param lowest = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0)
		slice_ask_short();
}
