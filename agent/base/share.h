/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SHARE_H
#define PODPROF_BASE_SHARE_H

/*
 * Fair shares of a ceiling, by dynamic threshold (Choudhury and Hahne, "Dynamic queue length
 * thresholds", 1998): an owner may hold a quarter of the free part. One greedy owner gets a fifth
 * of the whole, N get 1 / (4 + N) each, and 4 / (4 + N) stay free for the others.
 *
 * The owner of a process is its container, or its systemd unit, or else its cgroup: by the id of
 * the outermost cgroup of these (discovery_owner()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define SHARE_OF_FREE 4

/* Units that an owner with @own of all @total taken units of @max may still take. */
static inline uint64_t share_left(uint64_t max, uint64_t total, uint64_t own)
{
	const uint64_t most = total < max ? (max - total - 1) / SHARE_OF_FREE + 1 : 0;

	return own < most ? most - own : 0;
}

/* Whether this owner may take one more. */
static inline bool share_allows(uint64_t max, uint64_t total, uint64_t own)
{
	return share_left(max, total, own) > 0;
}

/* What one owner holds, in a table by id. A holder exists as long as it holds something. */
struct share_holder {
	uint64_t id;
	size_t held;
	UT_hash_handle hh;
};

/* The entry of @id in the table @holders (NULL: empty); NULL if it is not there. */
struct share_holder *share_holder_find(struct share_holder *holders, uint64_t id);
/* The entry of @id in the table *@holders, made if it is not there. NULL without
 * memory. The caller then adds to @held, or calls share_holder_put(). */
struct share_holder *share_holder_get(struct share_holder **holders, uint64_t id);
/* Removes the entry if it holds nothing. NULL is fine. */
void share_holder_put(struct share_holder **holders, struct share_holder *h);

#endif
