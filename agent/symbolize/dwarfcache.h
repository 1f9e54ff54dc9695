/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFCACHE_H
#define PODPROF_SYMBOLIZE_DWARFCACHE_H

/*
 * Functions and lines by address, of a file. Under a ceiling: addresses that are asked for stay,
 * others are evicted. An entry takes some 200 bytes; each string is there once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct symbol_line;

struct dwarfcache_entry;
struct dwarfcache_string;

struct dwarfcache_generation {
	struct arena memory;
	struct dwarfcache_entry *entries;
	struct dwarfcache_string *strings;
};

/* Two generations. A hit in the old one copies the entry into the young one. When the young one is
 * full, the young generation becomes the old, and the old is dropped. */
struct dwarfcache {
	struct dwarfcache_generation young;
	struct dwarfcache_generation old;
};

/* @max_bytes: of both generations together. */
void dwarfcache_init(struct dwarfcache *cache, size_t max_bytes);
void dwarfcache_deinit(struct dwarfcache *cache);
size_t dwarfcache_bytes(const struct dwarfcache *cache);
/* Copies the @n lines, perhaps none. 0, also without room, or -ENOMEM. */
int dwarfcache_add(struct dwarfcache *cache, uint64_t vaddr, const struct symbol_line *lines,
		   size_t n);
/* False if @vaddr is not known. @ret is borrowed until the next call. */
bool dwarfcache_get(struct dwarfcache *cache, uint64_t vaddr, const struct symbol_line **ret,
		    size_t *ret_n);

#endif
