/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_LINECACHE_H
#define PODPROF_SYMBOLIZE_LINECACHE_H

/*
 * Functions and lines by address, of a file. Under a ceiling: addresses that are asked for stay,
 * others are evicted. An entry takes some 150 bytes; each string is there once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"

struct symbol_line;

struct linecache_slot;
struct linecache_texts;

/**
 * struct linecache_answer - what is known of an address
 * @lines:     the @n functions, innermost first; none: the address has no name
 * @start:     of a function without a name, if @has_start
 */
struct linecache_answer {
	const struct symbol_line *lines;
	size_t n;
	uint64_t start;
	bool has_start;
};

enum linecache_outcome {
	LINECACHE_OK = 0,
	LINECACHE_FULL, /* not kept */
};

/* The entries are found by address in a table of @n_slots, a power of 2, with linear probing.
 * @memory counts the tables. */
struct linecache_generation {
	struct arena memory;
	struct linecache_slot *slots;
	size_t n_slots;
	size_t n;
	struct intern_texts strings;
};

/* Two generations. A hit in the old one copies the entry into the young one. When the young one is
 * full, the young generation becomes the old, and the old is dropped. @is_full: at the next
 * linecache_age(). @texts: of a batch; NULL: none yet */
struct linecache {
	struct linecache_generation young;
	struct linecache_generation old;
	struct linecache_texts *texts;
	bool is_batch;
	bool is_full;
};

/* @max_bytes: of both generations together. */
void linecache_init(struct linecache *cache, size_t max_bytes);
void linecache_deinit(struct linecache *cache);
size_t linecache_bytes(const struct linecache *cache);
/* Copies the @n lines, perhaps none. 0, also without room, or -ENOMEM. */
int linecache_add(struct linecache *cache, uint64_t vaddr, const struct symbol_line *lines,
		  size_t n);
/* NULL if @vaddr is not known. Borrowed until the next linecache_age() or linecache_add(). */
const struct linecache_answer *linecache_find(struct linecache *cache, uint64_t vaddr);

/* Until linecache_end() the strings of the added lines stay where they are. So most strings are
 * looked for once, however many lines have them. */
void linecache_begin(struct linecache *cache);
void linecache_end(struct linecache *cache);

/* For callers with many borrowed answers, whose answers stay while others are added: */
/* A batch of @n answers is added soon. 0 or -ENOMEM. */
int linecache_expect(struct linecache *cache, size_t n);
/* Evicts, if linecache_keep() has found no room. */
void linecache_age(struct linecache *cache);
/* The string of @n bytes at @text, in the cache for as long as an answer added now. 0,
 * LINECACHE_FULL or -ENOMEM. */
int linecache_string(struct linecache *cache, const char *text, size_t n, const char **ret);
/* Copies @answer. The strings, too, unless @has_strings: all are of linecache_string(). *@ret is as
 * of linecache_find(). 0, LINECACHE_FULL or -ENOMEM. */
int linecache_keep(struct linecache *cache, uint64_t vaddr, const struct linecache_answer *answer,
		   bool has_strings, const struct linecache_answer **ret);

#endif
