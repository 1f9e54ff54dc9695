/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_KERNELSIDE_H
#define PODPROF_DOCTOR_KERNELSIDE_H

/* What the kernel has for CPU profiles, and how it went to begin with them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj.h"

struct findings;
struct probe_results;
struct root;

/**
 * struct kernelside
 * @known:    as the agent knows it
 * @paranoid: kernel.perf_event_paranoid; -1 for what is below 0; -2 where there is none
 * @tried:    the profiler was begun with, and ended again
 * @result:   of that: 0, or -errno with @why
 * @has_loop: stacks are walked in one go
 * @load_ns:  what the kernel took to check the programs
 * @n_cpus:   CPUs that had a clock, and of the last that had none @cpu_why; "" if all had one
 * @events:   of following processes: 0 or -errno
 */
struct kernelside {
	struct bpfobj_facts known;
	int paranoid;
	bool tried;
	int result;
	struct bpfobj_why why;
	bool has_loop;
	uint64_t load_ns;
	size_t n_cpus;
	char cpu_why[512];
	int events;
};

/* All but the trial, which is the profiler's, and so the caller's. */
void kernelside_look(const struct root *proc, const struct root *sys, struct kernelside *ret);

void kernelside_check(const struct probe_results *results, struct findings *ret);

#endif
