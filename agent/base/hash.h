/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_HASH_H
#define PODPROF_BASE_HASH_H

/*
 * Hashes that nobody outside can predict: keys are foreign, and a table of colliding keys is a
 * list. uthash is configured for such hashes, and not to abort without memory. A function that adds
 * an item declares the error flag:
 *
 *	bool hash_oom = false;
 *
 *	HASH_ADD(hh, table, key, sizeof(item->key), item);
 *	if (hash_oom)
 *		return -ENOMEM;      (the item is not in the table)
 *
 * Keys are compared as bytes, so padding must be an explicit, initialised member.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Differ from one process to the next. */
uint64_t hash_words(uint64_t a, uint64_t b);
uint64_t hash_bytes(const void *bytes, size_t n);

/* A weak hash, of the ends of a text, for the place in a table in which each place has one item:
 * colliding keys cost no more than others there. */
static inline uint64_t hash_ends(const char *text, size_t n)
{
	uint64_t first = 0, last = 0;

	if (n < sizeof(first)) {
		memcpy(&first, text, n);
	} else {
		memcpy(&first, text, sizeof(first));
		memcpy(&last, text + n - sizeof(last), sizeof(last));
	}
	return ((first ^ n) * 0x9e3779b97f4a7c15ull + last * 0xe7037ed1a0b428dbull) >> 40;
}

#define HASH_NONFATAL_OOM	 1
#define uthash_nonfatal_oom(elt) (hash_oom = true)

#ifdef __clang_analyzer__
/* The static analyser does not follow a struct's bytes and would report each key as garbage. */
#define HASH_FUNCTION(key, n, ret) ((ret) = (unsigned int)(n))
#else
#define HASH_FUNCTION(key, n, ret) ((ret) = (unsigned int)hash_bytes(key, n))
#endif

#include <uthash.h>

#endif
