/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_DOCTOR_H
#define PODPROF_DOCTOR_DOCTOR_H

/* What this node lacks for an agent with given settings: probe results are gathered, then told as
 * findings. */

#include "doctor/finding.h"
#include "doctor/probe_results.h"

struct discovery;
struct loop;
struct root;

/**
 * struct doctor_opts - everything is borrowed
 * @metadata: whom to ask for names, as the agent does
 * @try_cpu:  begins with CPU profiles as the agent does, ends at once, and fills in what is known
 * by a trial. Not called where cgroups cannot be read, or an agent runs already: two would be more
 * than the memory of its container may have. 0 or -ENOMEM
 */
struct doctor_opts {
	const struct config *config;
	const struct metadata_opts *metadata;
	int (*try_cpu)(const struct config *config, struct loop *loop, const struct root *proc,
		       const struct root *sys, struct discovery *discovery, struct kernelside *ret);
};

/* Takes some seconds where servers do not answer, never more than half a minute. 0 or -errno. */
int doctor_look(const struct doctor_opts *opts, struct probe_results *ret);

/* In the order in which a person would mend things. */
void doctor_check(const struct probe_results *results, struct findings *ret);

#endif
