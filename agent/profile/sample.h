/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SAMPLE_H
#define PODPROF_PROFILE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"

/**
 * struct sample - one distinct stack of one process and how often it was seen since the last drain
 * @pid:          identity of the process (thread group)
 * @cgroup_id:    of the sampled task, in the unified hierarchy
 * @cgroup_v1_id: of the same task in the version 1 hierarchy that discovery walks; 0 if there is
 * none
 * @comm:         of the group's leader when this stack was first seen; any bytes but NUL
 * @count:        samples
 * @end:          enum sample_end (bpf/shared/sample.h): how the user part of the walk ended
 * @user, @kernel: pcs, innermost first; [0] is where the task was, the others are return addresses
 *
 * Borrowed by the callee for the length of the call.
 */
struct sample {
	struct pid_id pid;
	uint64_t cgroup_id;
	uint64_t cgroup_v1_id;
	char comm[PID_COMM_MAX];
	uint64_t count;
	uint32_t end;
	size_t n_user;
	size_t n_kernel;
	const uint64_t *user;
	const uint64_t *kernel;
};

typedef void (*sample_fn)(void *ctx, const struct sample *sample);

#endif
