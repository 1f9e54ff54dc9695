/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_BPF_H
#define PODPROF_BPF_LIB_REGS_BPF_H

/* The places of the registers: of the interrupted context, and of a task inside the kernel. */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "lib/regs_arch.bpf.h"

/* The context of a perf_event program (struct bpf_perf_event_data). */
struct regs_event {
	struct regs regs;
	__u64 sample_period;
	__u64 addr;
};

/* Address of @task's user registers, saved at the entry into the kernel. */
static __always_inline __u64 regs_of_task(struct task_struct *task)
{
	/* Since 5.15 (dd6e10fbd9fb). */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (__u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	/* Goes when 5.10 is no longer the floor. */
	return (__u64)BPF_CORE_READ(task, stack) + REGS_KERNEL_STACK_BYTES - REGS_ABOVE_BYTES -
	       sizeof(struct regs);
}

#endif
