/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_KERNELS_ENTITIES_H
#define PODPROF_TEST_KERNELS_ENTITIES_H

/* Checks that samples go to the right containers, on any cgroup trees. */

#include <stdbool.h>
#include <stdint.h>

#include "discovery/hierarchy.h"

struct root;

/**
 * struct entities_seen - the result
 * @failed: NULL, or the error
 * @v2, @v1: the trees found
 */
struct entities_seen {
	const char *failed;
	bool v2;
	enum controller v1;
	uint64_t right;
	uint64_t unknown;
	uint64_t wrong;
};

/* Processes burn in containers with paths of both drivers, made before and after the start of
 * discovery; one container is removed before the read of its last samples. */
void entities_check(const struct root *proc, const struct root *sys, struct entities_seen *ret);

/* Replaces the mounts on /sys/fs/cgroup by a single hierarchy of version 1. False on a kernel
 * without one. */
bool entities_mount_v1(void);

#endif
