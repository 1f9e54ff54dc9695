// SPDX-License-Identifier: Apache-2.0
/*
 * Element space is handed out first fit, by a bit for each element and, in elements that are shared
 * by the ends of blobs, a bit for each chunk. A search looks at all bits, a few thousand words when
 * a node is full of tables; that happens once for each executable that is loaded.
 *
 * Slabs are numbered in the order in which they are made. The first of them belong to a kind, the
 * others are spare. One slab holds 60 tables of the usual size.
 */
#include "unwindtable/elements.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* One slab and such a part of all are kept for mapping tables: without them no blob is found. */
#define KEEP_PART 16

#define WORDS  (TABLE_SLAB_ELEMENTS / 64)
#define CHUNKS (TABLE_ELEMENT / TABLE_CHUNK)
_Static_assert(CHUNKS == 64, "an element's chunks are one word of bits");

struct slab {
	enum elements_kind kind;
	struct table_element *mem; /* once it was asked for; ELEMENTS_BLOBS: for a view */
	uint64_t used[WORDS];
	uint64_t *chunks; /* of shared elements, by element; NULL if there never was one here */
};

/* One that is being written to. */
struct open_slab {
	uint32_t number;
	struct table_element *mem; /* NULL: none */
};

struct elements {
	struct elements_slabs source;
	struct slab *slabs;
	struct open_slab open[2]; /* a blob's, and that of its end; the last one used first */
	uint32_t n, n_spare, max;
	bool making;
	uint32_t n_of[ELEMENTS_KIND_MAX], max_of[ELEMENTS_KIND_MAX];
	size_t reserved_bytes[ELEMENTS_KIND_MAX];
};

DEFINE_CLEANUP(struct elements *, elements_freep, elements_free);

int elements_new(const struct elements_slabs *slabs, uint32_t n_slabs, struct elements **ret)
{
	_cleanup_(elements_freep) struct elements *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->source = *slabs;
	e->max = n_slabs < TABLE_SLABS ? n_slabs : TABLE_SLABS;
	e->max_of[ELEMENTS_BLOBS] = e->max > 1 ? e->max - 1 - e->max / KEEP_PART : e->max;
	e->max_of[ELEMENTS_MAPPINGS] = e->max;
	e->slabs = calloc(e->max + 1, sizeof(*e->slabs));
	if (!e->slabs)
		return -ENOMEM;
	*ret = take_ptr(e);
	return 0;
}

void elements_free(struct elements *e)
{
	if (!e)
		return;
	elements_settle(e);
	for (uint32_t i = 0; i < e->n; i++) {
		if (e->slabs[i].mem)
			e->source.unmap(e->source.ctx, i, e->slabs[i].mem);
		free(e->slabs[i].chunks);
	}
	free(e->slabs);
	free(e);
}

/* ---------------------------------------------------------------- whole ones */

static bool is_used(const struct elements *e, uint32_t number)
{
	const struct slab *slab = &e->slabs[number / TABLE_SLAB_ELEMENTS];

	return slab->used[number % TABLE_SLAB_ELEMENTS / 64] >> number % 64 & 1;
}

static void mark(struct elements *e, uint32_t first, uint32_t n, bool used)
{
	for (uint32_t number = first; number < first + n; number++) {
		struct slab *slab = &e->slabs[number / TABLE_SLAB_ELEMENTS];
		uint64_t *word = &slab->used[number % TABLE_SLAB_ELEMENTS / 64];

		*word = used ? *word | 1ull << number % 64 : *word & ~(1ull << number % 64);
	}
}

/* Slabs of that kind that can still be added. */
static uint32_t slabs_left(const struct elements *e, enum elements_kind kind)
{
	uint32_t of_kind = e->max_of[kind] - e->n_of[kind], of_all = e->max - e->n;

	return of_kind < of_all ? of_kind : of_all;
}

static int make_slab(struct elements *e)
{
	int r = e->making ? ELEMENTS_LATER : e->source.make(e->source.ctx, e->n + e->n_spare);

	if (!r)
		e->n_spare++;
	else if (r == ELEMENTS_LATER)
		e->making = true;
	return r;
}

void elements_made(struct elements *e, int result)
{
	e->making = false;
	if (!result)
		e->n_spare++;
}

void elements_ahead(struct elements *e)
{
	if (!e->n_spare && e->n < e->max)
		(void)make_slab(e); /* what fails is tried again when it is needed */
}

/* @n slabs more are of that kind; so many may be. */
static int add_slabs(struct elements *e, enum elements_kind kind, uint32_t n)
{
	int r = 0;

	while (!r && e->n_spare < n)
		r = make_slab(e);
	if (r)
		return r;
	for (uint32_t i = 0; i < n; i++)
		e->slabs[e->n + i].kind = kind;
	e->n += n;
	e->n_spare -= n;
	e->n_of[kind] += n;
	return 0;
}

/* So many that elements up to @limit are there. 0 if they are now. */
static int grow(struct elements *e, enum elements_kind kind, uint64_t limit)
{
	uint64_t n = (limit + TABLE_SLAB_ELEMENTS - 1) / TABLE_SLAB_ELEMENTS - e->n;

	return n > slabs_left(e, kind) ? ELEMENTS_FULL : add_slabs(e, kind, (uint32_t)n);
}

/* The first @n free ones in a row: true; or how many there are at the end of all, in *@ret_end. */
static bool find_run(const struct elements *e, enum elements_kind kind, uint32_t n, uint32_t *ret,
		     uint32_t *ret_end)
{
	uint32_t number = 0, run = 0;

	while (number < e->n * TABLE_SLAB_ELEMENTS) {
		const struct slab *slab = &e->slabs[number / TABLE_SLAB_ELEMENTS];

		if (slab->kind != kind) {
			run = 0;
			number += TABLE_SLAB_ELEMENTS;
			continue;
		}
		run = is_used(e, number++) ? 0 : run + 1;
		if (run == n) {
			*ret = number - n;
			return true;
		}
	}
	*ret_end = run;
	return false;
}

int elements_reserve(struct elements *e, enum elements_kind kind, uint32_t n, uint32_t *ret)
{
	uint32_t first, end;
	int r = 0;

	if (!find_run(e, kind, n, &first, &end)) {
		first = e->n * TABLE_SLAB_ELEMENTS - end;
		r = grow(e, kind, (uint64_t)first + n);
	}
	if (r)
		return r;
	mark(e, first, n, true);
	e->reserved_bytes[kind] += (size_t)n * TABLE_ELEMENT;
	*ret = first;
	return 0;
}

void elements_release(struct elements *e, uint32_t first, uint32_t n)
{
	mark(e, first, n, false);
	e->reserved_bytes[e->slabs[first / TABLE_SLAB_ELEMENTS].kind] -= (size_t)n * TABLE_ELEMENT;
}

/* ---------------------------------------------------------------- pieces */

/* @n ones from bit @at on; n is below 64. */
static uint64_t bits(uint32_t at, uint32_t n)
{
	return ((1ull << n) - 1) << at;
}

/* Where in @used @n bits in a row are free; CHUNKS if nowhere. */
static uint32_t find_bits(uint64_t used, uint32_t n)
{
	for (uint32_t at = 0; at + n <= CHUNKS; at++)
		if (!(used & bits(at, n)))
			return at;
	return CHUNKS;
}

static void take_chunks(struct elements *e, uint32_t number, uint32_t at, uint32_t n, uint32_t *ret)
{
	e->slabs[number / TABLE_SLAB_ELEMENTS].chunks[number % TABLE_SLAB_ELEMENTS] |= bits(at, n);
	e->reserved_bytes[ELEMENTS_BLOBS] += (size_t)n * TABLE_CHUNK;
	*ret = number * CHUNKS + at;
}

/* In an element that others share already. */
static bool join_chunks(struct elements *e, uint32_t n, uint32_t *ret)
{
	for (uint32_t number = 0; number < e->n * TABLE_SLAB_ELEMENTS; number++) {
		const uint64_t *chunks = e->slabs[number / TABLE_SLAB_ELEMENTS].chunks;
		uint64_t used = chunks ? chunks[number % TABLE_SLAB_ELEMENTS] : 0;
		uint32_t at = used ? find_bits(used, n) : CHUNKS;

		if (at == CHUNKS)
			continue;
		take_chunks(e, number, at, n, ret);
		return true;
	}
	return false;
}

int elements_reserve_chunks(struct elements *e, uint32_t n, uint32_t *ret)
{
	struct slab *slab;
	uint32_t number;
	int r;

	if (join_chunks(e, n, ret))
		return 0;
	r = elements_reserve(e, ELEMENTS_BLOBS, 1, &number);
	if (r)
		return r;
	e->reserved_bytes[ELEMENTS_BLOBS] -= TABLE_ELEMENT;
	slab = &e->slabs[number / TABLE_SLAB_ELEMENTS];
	if (!slab->chunks)
		slab->chunks = calloc(TABLE_SLAB_ELEMENTS, sizeof(*slab->chunks));
	if (!slab->chunks) {
		mark(e, number, 1, false);
		return -ENOMEM;
	}
	take_chunks(e, number, 0, n, ret);
	return 0;
}

void elements_release_chunks(struct elements *e, uint32_t first, uint32_t n)
{
	uint32_t number = first / CHUNKS;
	uint64_t *used =
		&e->slabs[number / TABLE_SLAB_ELEMENTS].chunks[number % TABLE_SLAB_ELEMENTS];

	*used &= ~bits(first % CHUNKS, n);
	e->reserved_bytes[ELEMENTS_BLOBS] -= (size_t)n * TABLE_CHUNK;
	if (!*used)
		mark(e, number, 1, false);
}

/* ---------------------------------------------------------------- memory */

struct table_element *elements_at(struct elements *e, uint32_t number)
{
	struct slab *slab = &e->slabs[number / TABLE_SLAB_ELEMENTS];

	if (!slab->mem)
		slab->mem = e->source.map(e->source.ctx, number / TABLE_SLAB_ELEMENTS);
	return slab->mem ? &slab->mem[number % TABLE_SLAB_ELEMENTS] : NULL;
}

const struct table_element *elements_view(struct elements *e, uint32_t number)
{
	return number / TABLE_SLAB_ELEMENTS < e->n ? elements_at(e, number) : NULL;
}

void elements_unview(struct elements *e)
{
	for (uint32_t i = 0; i < e->n; i++) {
		struct slab *slab = &e->slabs[i];

		if (!slab->mem || slab->kind != ELEMENTS_BLOBS)
			continue;
		e->source.unmap(e->source.ctx, i, slab->mem);
		slab->mem = NULL;
	}
}

/* Slabs that are written one table after the other stay mapped meanwhile: the kernel maps all pages
 * of one at once, which takes longer than writing to some of them. */
static struct table_element *open_slab(struct elements *e, uint32_t number)
{
	struct open_slab *o = &e->open[0];

	if (o->mem && o->number != number) {
		struct open_slab other = e->open[1];

		e->open[1] = *o;
		*o = other;
	}
	if (o->mem && o->number == number)
		return o->mem;
	if (o->mem)
		e->source.unmap(e->source.ctx, o->number, o->mem);
	o->number = number;
	o->mem = e->source.map(e->source.ctx, number);
	return o->mem;
}

void elements_settle(struct elements *e)
{
	for (size_t i = 0; i < array_size(e->open); i++) {
		if (e->open[i].mem)
			e->source.unmap(e->source.ctx, e->open[i].number, e->open[i].mem);
		e->open[i].mem = NULL;
	}
}

int elements_write(struct elements *e, uint64_t address, const void *data, size_t n)
{
	const size_t slab_bytes = (size_t)TABLE_SLAB_ELEMENTS * TABLE_ELEMENT;
	const uint8_t *from = data;

	while (n) {
		uint32_t number = (uint32_t)(address / slab_bytes);
		size_t off = address % slab_bytes;
		size_t here = n < slab_bytes - off ? n : slab_bytes - off;
		struct table_element *mem = open_slab(e, number);

		if (!mem)
			return -ENOMEM;
		memcpy((uint8_t *)mem + off, from, here);
		address += here;
		from += here;
		n -= here;
	}
	return 0;
}

size_t elements_bytes(const struct elements *e)
{
	return ((size_t)e->n + e->n_spare) * TABLE_SLAB_ELEMENTS * TABLE_ELEMENT;
}

size_t elements_reserved_bytes(const struct elements *e)
{
	return e->reserved_bytes[ELEMENTS_BLOBS] + e->reserved_bytes[ELEMENTS_MAPPINGS];
}

/* The longest row of free elements, with the slabs that can still be had behind the last one. */
static size_t longest_run(const struct elements *e)
{
	size_t longest = 0, run = 0;

	for (uint32_t number = 0; number < e->n * TABLE_SLAB_ELEMENTS; number++) {
		bool ours = e->slabs[number / TABLE_SLAB_ELEMENTS].kind == ELEMENTS_BLOBS;

		run = ours && !is_used(e, number) ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	run += (size_t)slabs_left(e, ELEMENTS_BLOBS) * TABLE_SLAB_ELEMENTS;
	return run > longest ? run : longest;
}

/* The longest row of free chunks in elements that are shared. */
static uint32_t longest_piece(const struct elements *e)
{
	uint32_t n = 0;

	for (uint32_t number = 0; number < e->n * TABLE_SLAB_ELEMENTS; number++) {
		const uint64_t *chunks = e->slabs[number / TABLE_SLAB_ELEMENTS].chunks;
		uint64_t used = chunks ? chunks[number % TABLE_SLAB_ELEMENTS] : 0;

		while (used && n + 1 < CHUNKS && find_bits(used, n + 1) < CHUNKS)
			n++;
	}
	return n;
}

struct elements_room elements_room(const struct elements *e)
{
	size_t run = longest_run(e);

	return (struct elements_room){
		.whole_bytes = run * TABLE_ELEMENT,
		.piece_bytes = run ? TABLE_ELEMENT : longest_piece(e) * TABLE_CHUNK,
	};
}
