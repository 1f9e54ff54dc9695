/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_IDS_H
#define PODPROF_PPROF_IDS_H

/* The map from ids to rows, since writers choose the ids of mappings, functions and locations
 * freely. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct ids_entry {
	uint64_t id;
	uint32_t number; /* row + 1 */
};

/**
 * struct ids - filled in the order of rows, then looked up
 * @entries: in the order of rows, or by id after ids_finish()
 * @dense:   entry i has id i + 1, as from nearly every writer
 *
 * Borrows its memory from an arena.
 */
struct ids {
	struct ids_entry *entries;
	size_t n;
	bool dense;
};

enum ids_outcome {
	IDS_OK = 0,
	IDS_TWICE, /* two rows have the same id */
};

/* Make room for @n ids. 0, ARENA_FULL, -ENOMEM. */
int ids_init(struct ids *ids, struct arena *arena, size_t n) __attribute__((warn_unused_result));
/* The next row's id. */
void ids_add(struct ids *ids, uint64_t id);
/* Ends the filling. 0 or IDS_TWICE. */
int ids_finish(struct ids *ids) __attribute__((warn_unused_result));
/* The number, 0 if there is none. Only after ids_finish(). */
uint32_t ids_find(const struct ids *ids, uint64_t id);

#endif
