/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_NAMES_CACHE_H
#define PODPROF_SYMBOLIZE_NAMES_CACHE_H

/*
 * The names of files between two lookups, by image. Above the ceiling the least used are evicted. A
 * file's names hold a reference to the image, so the file stays open.
 */

#include <stddef.h>
#include <stdint.h>

struct file_names;
struct image;
struct names_entry;

/**
 * struct names_cache - {0} with @max_bytes is empty
 * @bytes: of all names
 * @max_bytes: ceiling for @bytes; one file's names stay in any case
 * @tick: of the last use
 */
struct names_cache {
	struct names_entry *entries;
	size_t bytes;
	size_t max_bytes;
	uint64_t tick;
};

void names_cache_deinit(struct names_cache *cache);
/* Takes @names, which must not be in the cache. 0 or -ENOMEM. */
int names_cache_put(struct names_cache *cache, const struct image *image, struct file_names *names);
/* Out of the cache, for the caller. NULL if there are none. */
struct file_names *names_cache_take(struct names_cache *cache, const struct image *image);
/* Borrowed until the next call. NULL if there are none. */
const struct file_names *names_cache_peek(const struct names_cache *cache,
					  const struct image *image);
/* The same, as a use. The caller may let the names grow, and says so to names_cache_weigh(). */
const struct file_names *names_cache_use(struct names_cache *cache, const struct image *image);
void names_cache_weigh(struct names_cache *cache, const struct image *image);
/* Evict down to the ceiling. */
void names_cache_trim(struct names_cache *cache);
/* Bytes of the names and of the cache itself. */
size_t names_cache_bytes(const struct names_cache *cache);

#endif
