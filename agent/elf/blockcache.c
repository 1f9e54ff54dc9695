// SPDX-License-Identifier: Apache-2.0
/*
 * A set-associative cache, as in a CPU. The block's number selects a set of four places, and the
 * least recently used place is evicted. Memory is allocated at the first use of a place, so a table
 * with a handful of lookups costs a handful of blocks.
 */
#include "elf/blockcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"

void blockcache_init(struct blockcache *bc, const struct elffile *file)
{
	*bc = (struct blockcache){.file = file};
}

void blockcache_clear(struct blockcache *bc)
{
	for (size_t set = 0; bc->n_bytes && set < BLOCKCACHE_SETS; set++)
		for (size_t way = 0; way < BLOCKCACHE_WAYS; way++) {
			free(bc->blocks[set][way].data);
			bc->blocks[set][way] = (struct block){0};
		}
	bc->n_bytes = 0;
}

void blockcache_deinit(struct blockcache *bc)
{
	blockcache_clear(bc);
	*bc = (struct blockcache){0};
}

/* The place of block @number, or the place for loading it: n is then 0. */
static int blockcache_place(struct blockcache *bc, uint64_t number, struct block **ret)
{
	struct block *set = bc->blocks[number % BLOCKCACHE_SETS];
	struct block *oldest = &set[0];

	for (size_t way = 0; way < BLOCKCACHE_WAYS; way++) {
		struct block *b = &set[way];

		if (b->n && b->number == number) {
			*ret = b;
			return 0;
		}
		if (b->used < oldest->used)
			oldest = b;
	}
	if (!oldest->data) {
		oldest->data = malloc(BLOCKCACHE_BLOCK);
		if (!oldest->data)
			return -ENOMEM;
		bc->n_bytes += BLOCKCACHE_BLOCK;
	}
	oldest->n = 0;
	oldest->number = number;
	*ret = oldest;
	return 0;
}

static int blockcache_fill(struct blockcache *bc, struct block *b)
{
	uint64_t off = b->number * BLOCKCACHE_BLOCK, size = elffile_size(bc->file);
	size_t n = BLOCKCACHE_BLOCK;
	int r;

	if (off >= size)
		return ELFFILE_TRUNCATED;
	if (n > size - off)
		n = (size_t)(size - off);
	r = elffile_read(bc->file, off, b->data, n);
	if (r)
		return r;
	bc->n_reads++;
	b->n = n;
	return 0;
}

int blockcache_peek(struct blockcache *bc, uint64_t off, const uint8_t **ret, size_t *ret_n)
{
	size_t in_block = off % BLOCKCACHE_BLOCK;
	struct block *b;
	int r = blockcache_place(bc, off / BLOCKCACHE_BLOCK, &b);

	if (!r && !b->n)
		r = blockcache_fill(bc, b);
	if (r)
		return r;
	if (in_block >= b->n)
		return ELFFILE_TRUNCATED;
	b->used = ++bc->clock;
	*ret = b->data + in_block;
	*ret_n = b->n - in_block;
	return 0;
}

int blockcache_read(struct blockcache *bc, uint64_t off, void *ret, size_t n)
{
	uint8_t *to = ret;

	while (n > 0) {
		const uint8_t *from;
		size_t got;
		int r = blockcache_peek(bc, off, &from, &got);

		if (r)
			return r;
		if (got > n)
			got = n;
		memcpy(to, from, got);
		to += got;
		n -= got;
		if (n && __builtin_add_overflow(off, got, &off))
			return ELFFILE_TRUNCATED;
	}
	return 0;
}
