/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_KERNELS_ENTITIES_H
#define PODPROF_TEST_KERNELS_ENTITIES_H

/* Whether samples come to the containers that they were taken in, on whatever cgroup trees there
 * are. */

#include <stdbool.h>
#include <stdint.h>

#include "discovery/hierarchy.h"

struct root;

/**
 * struct entities_seen - what came of it
 * @failed: NULL, or what went wrong
 * @v2, @v1: which trees were found
 */
struct entities_seen {
	const char *failed;
	bool v2;
	enum controller v1;
	uint64_t right;
	uint64_t unknown;
	uint64_t wrong;
};

/* Processes burn in containers with paths of both drivers, made before and after discovery has
 * begun; one container goes before its last samples are read. */
void entities_check(const struct root *proc, const struct root *sys, struct entities_seen *ret);

/* Instead of what is mounted on /sys/fs/cgroup: one hierarchy of version 1, and nothing else.
 * False where this kernel has none. */
bool entities_mount_v1(void);

#endif
