/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_OWNSPACE_H
#define PODPROF_TEST_SUPPORT_OWNSPACE_H

#include <stdint.h>

struct address_space;
struct address_space_cache;

/* This process's own mappings, as those of a process of @owner. The cache owns them. */
struct address_space *ownspace(struct address_space_cache *spaces, uint64_t owner);

#endif
