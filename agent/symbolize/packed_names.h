/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_PACKED_NAMES_H
#define PODPROF_SYMBOLIZE_PACKED_NAMES_H

/* Names of functions in a third of their bytes: each word of the names is kept once. */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/**
 * struct packed_names - names, by their places
 * @codes:     of each name the numbers of its words, from 1 on, and a 0
 * @text:      the words, each with a NUL
 * @words:     of each word its offset in @text
 * @slots:     hash table of word numbers, 0: free. NULL once complete
 */
struct packed_names {
	struct buf codes;
	struct buf text;
	uint32_t *words;
	size_t n_words;
	size_t words_cap;
	uint32_t *slots;
	size_t n_slots;
};

/* @max: bytes of all codes, and of all words. */
void packed_names_init(struct packed_names *p, size_t max);
void packed_names_deinit(struct packed_names *p);

/* Adds a name; *@ret is its place. 0, BUF_FULL, or -ENOMEM. Not after packed_names_complete(). */
int packed_names_add(struct packed_names *p, const char *name, uint32_t *ret);
/* Releases unused room and the table that adds names. */
void packed_names_complete(struct packed_names *p);

/* The name at @place, cut to @size bytes with its NUL. */
void packed_names_get(const struct packed_names *p, uint32_t place, char *ret, size_t size);
size_t packed_names_bytes(const struct packed_names *p);

#endif
