/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_INTERN_H
#define PODPROF_BASE_INTERN_H

/*
 * Maps equal bytes to one entry. The entries are in the caller's arena, which counts the table's
 * bytes, too. They never move, so a caller may use the copies as its own storage.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

struct arena;

/* Texts found last: most texts are those of the frames before. */
#define INTERN_RECENT 64

/**
 * struct interned - an entry
 * @n:      bytes of the key
 * @number: the caller's
 * @hash:   of the key
 * @key:    aligned to 8, with a NUL behind the last byte
 */
struct interned {
	uint32_t n;
	uint32_t number;
	uint32_t hash;
	_Alignas(8) char key[];
};

/* {0} is empty. Open addressing with linear probing; @n_slots is a power of 2, at least twice @n.
 */
struct intern {
	struct interned **slots; /* NULL: free */
	size_t n_slots;
	size_t n;
};

/* The same for texts, which have numbers from 0 on. {0} is empty. */
struct intern_texts {
	struct intern table;
	struct interned *recent[INTERN_RECENT]; /* by hash_ends() */
};

/* 0 if there is none: numbers given to intern_add() start at 1. */
uint32_t intern_find(const struct intern *in, const void *key, size_t n);
/* Enter @n bytes, which must be new. @ret borrows the copy. 0, ARENA_FULL, -ENOMEM. */
int intern_add(struct intern *in, struct arena *arena, const void *key, size_t n, uint32_t number,
	       const void **ret) __attribute__((warn_unused_result));
/* Behind intern_text(). */
int intern_text_slowly(struct intern_texts *texts, struct arena *arena, const char *text, size_t n,
		       const struct interned **ret) __attribute__((warn_unused_result));

/* The entry of a text of @n bytes, a new one if there is none. 0, ARENA_FULL, -ENOMEM. */
static inline __attribute__((warn_unused_result)) int intern_text(struct intern_texts *texts,
								  struct arena *arena,
								  const char *text, size_t n,
								  const struct interned **ret)
{
	const struct interned *recent = texts->recent[hash_ends(text, n) % INTERN_RECENT];

	if (!recent || recent->n != n || memcmp(recent->key, text, n) != 0)
		return intern_text_slowly(texts, arena, text, n, ret);
	*ret = recent;
	return 0;
}

/* Empty again; the arena owns the entries, and counts the table to its own end. */
void intern_deinit(struct intern *in);
void intern_texts_deinit(struct intern_texts *texts);

#endif
