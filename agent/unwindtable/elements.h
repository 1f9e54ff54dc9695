/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_ELEMENTS_H
#define PODPROF_UNWINDTABLE_ELEMENTS_H

/*
 * Who has which part of element space (bpf/shared/table.h): whole elements in a row, and pieces of
 * TABLE_CHUNKs in an element that is shared. Grows by one slab at a time and never shrinks. What is
 * released is free at once: whoever releases has waited until no walker reads there.
 *
 * A slab takes the kernel a long time (slabmaker.h), so one can be made while nobody waits for it
 * yet, and reserving may say that it will be possible later.
 */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

enum elements_outcome {
	ELEMENTS_OK = 0,
	ELEMENTS_FULL,	/* not so many in a row, and no more slabs */
	ELEMENTS_LATER, /* when the slab that is being made is there */
};

/**
 * struct elements_slabs - where slabs come from
 * @make:  make slab @number, all zeros, and show it to the walkers; 0, -errno, or ELEMENTS_LATER:
 *         it is being made, elements_made() tells when it is there. One at a time
 * @map:   its TABLE_SLAB_ELEMENTS elements, to be written to; NULL if that fails
 * @unmap: done with that
 */
struct elements_slabs {
	void *ctx;
	int (*make)(void *ctx, uint32_t number);
	struct table_element *(*map)(void *ctx, uint32_t number);
	void (*unmap)(void *ctx, uint32_t number, struct table_element *mem);
};

/* Each kind has slabs of its own, and blobs cannot have all that there may be. */
enum elements_kind {
	ELEMENTS_BLOBS,	   /* mapped while they are viewed, or written until elements_settle() */
	ELEMENTS_MAPPINGS, /* written all the time: stay mapped, so they count as ours */
	ELEMENTS_KIND_MAX,
};

struct elements;

/* @n_slabs: at most so many, TABLE_SLABS at most. @slabs is copied, its ctx borrowed. 0, -ENOMEM.
 */
int elements_new(const struct elements_slabs *slabs, uint32_t n_slabs, struct elements **ret);
void elements_free(struct elements *e);

/* The slab that was to be there later is (0), or cannot be made (-errno). */
void elements_made(struct elements *e, int result);
/* Have a slab made now that will be needed later, if there is none to spare. */
void elements_ahead(struct elements *e);

/* @n whole elements in a row, @n > 0. 0, ELEMENTS_FULL, ELEMENTS_LATER or -errno. */
int elements_reserve(struct elements *e, enum elements_kind kind, uint32_t n, uint32_t *ret);
void elements_release(struct elements *e, uint32_t first, uint32_t n);

/* @n chunks, less than an element, that are in one; @ret is their number counted in chunks. 0,
 * ELEMENTS_FULL, ELEMENTS_LATER or -errno. */
int elements_reserve_chunks(struct elements *e, uint32_t n, uint32_t *ret);
void elements_release_chunks(struct elements *e, uint32_t first, uint32_t n);

/* An element of ELEMENTS_MAPPINGS; stays there. NULL if its slab cannot be mapped. */
struct table_element *elements_at(struct elements *e, uint32_t number);

/* Write @n bytes at @address of element space, in bytes, to elements of ELEMENTS_BLOBS. 0 or
 * -errno. */
int elements_write(struct elements *e, uint64_t address, const void *data, size_t n);

/* An element as walkers see it, to be read, until elements_unview(). NULL if there is no such one,
 * or its slab cannot be mapped. */
const struct table_element *elements_view(struct elements *e, uint32_t number);
void elements_unview(struct elements *e);

/* Nothing more is to be written for a while: what is mapped for that is not any more. */
void elements_settle(struct elements *e);

/* Bytes of all slabs, and of what is reserved in them. */
size_t elements_bytes(const struct elements *e);
size_t elements_reserved_bytes(const struct elements *e);
/* Bytes that the largest blob could have for which there is room: in whole elements, and if it is
 * less than one. */
struct elements_room {
	size_t whole_bytes;
	size_t piece_bytes;
};
struct elements_room elements_room(const struct elements *e);

#endif
