/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_SHARE_H
#define PODPROF_PROCMAP_SHARE_H

/*
 * Fair shares of a ceiling, by dynamic threshold (Choudhury and Hahne, "Dynamic queue length
 * thresholds", 1998): an owner may hold a quarter of the free part. One greedy owner gets a fifth
 * of the whole, N get 1 / (4 + N) each, and 4 / (4 + N) stay free for the others.
 *
 * The owner of a process is its cgroup, by id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_OF_FREE 4

/* Whether an owner with @own of all @total taken units of @max may take one more. */
static inline bool share_allows(size_t max, size_t total, size_t own)
{
	return total < max && own < (max - total + SHARE_OF_FREE - 1) / SHARE_OF_FREE;
}

#endif
