/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_DOCTOR_H
#define PODPROF_DOCTOR_DOCTOR_H

/* Finds out the node's problems for an agent with given settings: gathers probe results and turns
 * the results into findings. */

#include "base/nsec.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"

struct discovery;
struct discovery_opts;
struct loop;
struct root;

/* Time limit for answers: two servers without an answer, one after the other. */
#define DOCTOR_WAIT_NS (12 * NSEC_PER_SEC)

/**
 * struct doctor_opts - everything is borrowed
 * @discovery: the agent's, but for loop, root and grace period
 * @metadata: the agent's options for the sources of names
 * @try_cpu:  starts CPU profiling as the agent does, ends at once, and fills in the results of the
 *            trial. Not called if cgroups are unreadable, or an agent already runs: two may exceed
 *            the memory limit of the agent's container. 0 or -ENOMEM
 */
struct doctor_opts {
	const struct config *config;
	const struct discovery_opts *discovery;
	const struct metadata_opts *metadata;
	int (*try_cpu)(const struct config *config, struct loop *loop, const struct root *proc,
		       const struct root *sys, struct discovery *discovery, struct kernelside *ret);
};

/* Blocks for a second, and up to DOCTOR_WAIT_NS longer if servers do not answer. 0 or -errno. */
int doctor_look(const struct doctor_opts *opts, struct probe_results *ret);

/* The findings in the order in which a person would fix the problems. */
void doctor_check(const struct probe_results *results, struct findings *ret);

#endif
