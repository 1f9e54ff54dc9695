// SPDX-License-Identifier: Apache-2.0
/*
 * The generic cell rate algorithm (ITU-T I.371): one time instead of a level and the time of its
 * last change, so a compare-and-swap suffices between threads. A full bucket is paid since
 * burst * parts; a charge moves the time forward by its cost.
 */
#include "base/cpu_share.h"

#include <stdatomic.h>

#include "base/nsec.h"

void cpu_share_charge(struct cpu_share *s, uint64_t now_ns, uint64_t cpu_ns)
{
	uint64_t burst = s->burst_ns * s->parts;
	uint64_t full = now_ns > burst ? now_ns - burst : 0;
	uint64_t old = atomic_load(&s->paid_ns), fresh;

	do
		fresh = (old > full ? old : full) + cpu_ns * s->parts;
	while (!atomic_compare_exchange_weak(&s->paid_ns, &old, fresh));
}

uint64_t cpu_share_wait_ns(const struct cpu_share *s, uint64_t now_ns)
{
	uint64_t paid = atomic_load(&s->paid_ns);

	return paid > now_ns ? paid - now_ns : 0;
}

uint64_t cpu_share_thread_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}
