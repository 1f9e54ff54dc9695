/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROCMAP_MEMORY_CACHE_H
#define PODPROF_PROCMAP_MEMORY_CACHE_H

/*
 * Blocks of another memory, for readers that follow many pointers: a read of some bytes takes a
 * system call, and its neighbours are often next. What the cache has is as old as its last
 * memory_forget(), so a reader needs a proof for all of that time: the same words before and after.
 * memory_beneath() has the words of now.
 */

#include <stddef.h>
#include <stdint.h>

#include "procmap/memory.h"

/* Bytes of a block, at a multiple of it. The kernel's search of a page takes longer than the copy.
 */
#define MEMORY_CACHE_BLOCK_BYTES 256u
/* Blocks, 64 KiB. Reached: all are forgotten. */
#define MEMORY_CACHE_BLOCKS_MAX	 256u
/* A power of two, with free slots. */
#define MEMORY_CACHE_SLOTS	 1024u

/* @slots: by the hash of a block's address, the number of the block plus one; 0: free. */
struct memory_cache {
	struct memory memory;
	struct memory *of; /* borrowed */
	size_t n;	   /* blocks that are read, or in this call */
	uint16_t slots[MEMORY_CACHE_SLOTS];
	uint64_t at[MEMORY_CACHE_BLOCKS_MAX];
	uint8_t bytes[MEMORY_CACHE_BLOCKS_MAX][MEMORY_CACHE_BLOCK_BYTES];
};

/* Borrows @of. Needs no end. */
void memory_cache_init(struct memory_cache *c, struct memory *of);

#endif
