/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SAMPLING_H
#define PODPROF_TEST_SUPPORT_SAMPLING_H

/* A sampler with its prerequisites: a loop, /proc and /sys. */

#include "base/root.h"
#include "cpu/sampler.h"

struct loop;

struct sampling {
	struct root proc;
	struct root sys;
	struct loop *loop;
	struct cpu_sampler *sampler; /* NULL before the start */
	uint64_t gone_ns; /* sampling_forgot(): the process is seen to be gone since then */
};

/* Everything except the sampler. Returns 0 on success, for setup functions. */
int sampling_open(struct sampling *s);
/* Also after a partial open. */
void sampling_close(struct sampling *s);
/* Starts to sample; @opts is completed with the loop and the roots. Fails the test if it cannot. */
void sampling_start(struct sampling *s, struct cpu_sampler_opts opts);
/* Load the walk of a runtime now, so that no sample comes before it. */
void sampling_load(struct sampling *s, uint32_t runtime);
/* Select a process, if opts.scope selects processes. */
void sampling_want(struct sampling *s, pid_t pid);
/* Whether the walker has no record of the process's @runtime (enum frame_runtime). A busy node can
 * lose the event of the process's end: if the record stays, sweeps as the agent does at the end of
 * a window. */
bool sampling_forgot(struct sampling *s, uint32_t runtime, pid_t pid);

#endif
