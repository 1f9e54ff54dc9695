/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_OFFPLAN_H
#define PODPROF_PROFILE_OFFPLAN_H

/* By what numbers the off-CPU program chooses among task switches (bpf/lib/event_sampler.bpf.h). */

#include <stdint.h>

#include "shared/offcpu.h"

/* Below it nothing would be seen for hours, and the numbers of a plan would not fit. */
#define OFFPLAN_SHARE_MIN 1e-6

/* Choose this share of switches, above 0 and up to 1 (below OFFPLAN_SHARE_MIN is taken for that),
 * but on each CPU no more than one in @stack_ns on average. */
void offplan_make(double share, uint64_t stack_ns, volatile struct offcpu_plan *ret);

#endif
