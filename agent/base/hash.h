/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_HASH_H
#define PODPROF_BASE_HASH_H

/*
 * uthash, told not to abort without memory. A function that adds declares the flag that tells:
 *
 *	bool hash_oom = false;
 *
 *	HASH_ADD(hh, table, key, sizeof(item->key), item);
 *	if (hash_oom)
 *		return -ENOMEM;      (the item is not in the table)
 *
 * A key is compared as bytes: its padding must be spelled out and set.
 */

#include <stdbool.h>

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) (hash_oom = true)

#ifdef __clang_analyzer__
/* It does not follow a struct's bytes and would call each key's garbage. */
#define HASH_FUNCTION(key, n, ret) ((ret) = (unsigned int)(n))
#endif

#include <uthash.h>

#endif
