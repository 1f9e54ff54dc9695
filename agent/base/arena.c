// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One call of malloc for some hundred pieces, and fewer in the first blocks. A larger piece has its
 * own block. */
#define ARENA_BLOCK_BYTES_MIN (4u << 10)
#define ARENA_BLOCK_BYTES     (32u << 10)

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	_Alignas(8) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){.max = max};
}

void arena_deinit(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
	a->bytes = 0;
}

/* As large as all blocks before, within the two bounds. */
static size_t block_size(const struct arena *a, size_t n)
{
	size_t size = a->bytes < ARENA_BLOCK_BYTES_MIN ? ARENA_BLOCK_BYTES_MIN : a->bytes;

	if (size > ARENA_BLOCK_BYTES)
		size = ARENA_BLOCK_BYTES;
	return size > n ? size : n;
}

static int arena_add_block(struct arena *a, size_t n)
{
	size_t size = block_size(a, n);
	size_t left = a->max - a->bytes;
	struct arena_block *block;

	if (left < sizeof(*block) || left - sizeof(*block) < n)
		return ARENA_FULL;
	if (size > left - sizeof(*block))
		size = left - sizeof(*block);
	block = malloc(sizeof(*block) + size);
	if (!block)
		return -ENOMEM;
	block->used = 0;
	block->size = size;
	block->next = a->blocks;
	a->blocks = block;
	a->bytes += sizeof(*block) + size;
	return 0;
}

int arena_bytes(struct arena *a, size_t n, void *ret_piece)
{
	struct arena_block *block;
	void *piece;
	int r;

	if (n > SIZE_MAX - 7)
		return ARENA_FULL;
	n = (n + 7) & ~(size_t)7;
	if (!a->blocks || a->blocks->size - a->blocks->used < n) {
		r = arena_add_block(a, n);
		if (r)
			return r;
	}
	block = a->blocks;
	piece = block->bytes + block->used;
	block->used += n;
	memcpy(ret_piece, &piece, sizeof(piece));
	return 0;
}

int arena_alloc(struct arena *a, size_t n, void *ret_piece)
{
	void *piece;
	int r = arena_bytes(a, n, &piece);

	if (r)
		return r;
	memset(piece, 0, n);
	memcpy(ret_piece, &piece, sizeof(piece));
	return 0;
}

int arena_array(struct arena *a, size_t n, size_t size, void *ret_piece)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return ARENA_FULL;
	return arena_alloc(a, bytes, ret_piece);
}

int arena_charge(struct arena *a, size_t n)
{
	if (n > a->max - a->bytes)
		return ARENA_FULL;
	a->bytes += n;
	return 0;
}
