/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_KERNELSIDE_H
#define PODPROF_DOCTOR_KERNELSIDE_H

/* The kernel's features for CPU profiles, and the result of a trial start. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/bpfobj_why.h"

struct findings;
struct probe_results;
struct root;

/**
 * struct kernelside
 * @known:    the features in the agent's own form
 * @paranoid: kernel.perf_event_paranoid; -1 for any value below 0; -2 if it does not exist
 * @tried:    the profiler was started and ended
 * @result:   of the trial: 0, or -errno with @why
 * @has_loop: the stack walk uses a single BPF loop
 * @lacks_dumps: the kernel gives no stack dumps
 * @n_refused: language runtimes with a program that the kernel refuses; @runtime_why is the
 *            verifier's message about the last of them
 * @load_ns:  verification time of the programs
 * @n_cpus:   CPUs with a clock; @cpu_why is the failure of the last CPU without, "" if there is
 *            none
 * @events:   result of opening the sideband: 0 or -errno
 */
struct kernelside {
	struct bpfobj_facts known;
	int paranoid;
	bool tried;
	int result;
	struct bpfobj_why why;
	bool has_loop;
	bool lacks_dumps;
	size_t n_refused;
	char runtime_why[128];
	uint64_t load_ns;
	size_t n_cpus;
	char cpu_why[512];
	int events;
};

/* All probes but the trial, which needs the profiler and is the caller's. */
void kernelside_look(const struct root *proc, const struct root *sys, struct kernelside *ret);

void kernelside_check(const struct probe_results *results, struct findings *ret);

#endif
