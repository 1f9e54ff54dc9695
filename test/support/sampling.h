/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SAMPLING_H
#define PODPROF_TEST_SUPPORT_SAMPLING_H

/* A sampler with what it stands on: a loop, /proc and /sys. */

#include "base/root.h"
#include "cpu/sampler.h"

struct loop;

struct sampling {
	struct root proc;
	struct root sys;
	struct loop *loop;
	struct cpu_sampler *sampler; /* NULL until it is started */
};

/* All but the sampler. 0, or other than that: for setup functions. */
int sampling_open(struct sampling *s);
/* Also of one that is half open. */
void sampling_close(struct sampling *s);
/* Starts to sample; @opts is completed with the loop and the roots. Fails the test if it cannot. */
void sampling_start(struct sampling *s, struct cpu_sampler_opts opts);
/* Whose samples are wanted, where opts.scope says that only some are. */
void sampling_want(struct sampling *s, pid_t pid);

#endif
