/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_ARENA_H
#define PODPROF_BASE_ARENA_H

#include <stddef.h>

/**
 * struct arena - many small pieces of memory, freed together
 * @blocks: the newest first
 * @bytes:  taken from malloc so far, and counted by arena_charge()
 * @max:    ceiling for @bytes
 *
 * Pieces never move, so pointers into the arena stay valid while the arena lives.
 */
struct arena {
	struct arena_block *blocks;
	size_t bytes;
	size_t max;
};

enum arena_outcome {
	ARENA_OK = 0,
	ARENA_FULL, /* the ceiling would be exceeded */
};

void arena_init(struct arena *a, size_t max);
void arena_deinit(struct arena *a);

/* @n zeroed bytes, aligned to 8; @ret_piece is the address of a pointer of any type. 0, ARENA_FULL,
 * -ENOMEM. */
int arena_alloc(struct arena *a, size_t n, void *ret_piece) __attribute__((warn_unused_result));
/* The same, but not zeroed: for bytes that the caller sets. */
int arena_bytes(struct arena *a, size_t n, void *ret_piece) __attribute__((warn_unused_result));
/* Count @n bytes that the owner takes from malloc itself. 0 or ARENA_FULL. */
int arena_charge(struct arena *a, size_t n) __attribute__((warn_unused_result));
/* Zeroed, for @n items of @size bytes; a product that overflows is ARENA_FULL. */
int arena_array(struct arena *a, size_t n, size_t size, void *ret_piece)
	__attribute__((warn_unused_result));

#endif
