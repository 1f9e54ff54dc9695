/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_INTERN_H
#define PODPROF_PPROF_INTERN_H

/* Maps equal bytes to one entry with one number. Keys are copied into an arena and never move, so a
 * table may use the copies as its own storage. */

#include <stddef.h>
#include <stdint.h>

struct arena;
struct intern_entry;

/* {0} is empty. */
struct intern {
	struct intern_entry *entries;
};

/* 0 if there is none: numbers given to intern_add() start at 1. */
uint32_t intern_find(const struct intern *in, const void *key, size_t n);
/* Enter @n bytes, which must be new. @ret borrows the copy, aligned to 8, with a NUL behind the
 * last byte. 0, ARENA_FULL, -ENOMEM. */
int intern_add(struct intern *in, struct arena *arena, const void *key, size_t n, uint32_t number,
	       const void **ret) __attribute__((warn_unused_result));
/* Frees the table; the arena owns the entries. */
void intern_deinit(struct intern *in);

#endif
