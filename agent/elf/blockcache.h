/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_BLOCKCACHE_H
#define PODPROF_ELF_BLOCKCACHE_H

/*
 * A small cache of a file's blocks with eviction of the least used block. It serves readers with
 * random access to a table too large to copy. Positions are the file's offsets.
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;

/* Bytes of a block. 1 to 4 KiB take the same CPU time: a smaller block costs more system calls, a
 * larger one more copying. */
#define BLOCKCACHE_BLOCK 2048u
/* Places of a block within its set; a lookup is WAYS comparisons. */
#define BLOCKCACHE_WAYS	 4u
#define BLOCKCACHE_SETS	 16u

/* Needs no release beyond blockcache_init(); @n_bytes and @n_reads are for the caller's
 * accounting. */
struct blockcache {
	const struct elffile *file;
	struct block {
		uint64_t number; /* offset / BLOCKCACHE_BLOCK */
		uint64_t used;	 /* the clock at the last use */
		size_t n;	 /* bytes; less than a block at the end of the file */
		uint8_t *data;	 /* NULL until the place is used */
	} blocks[BLOCKCACHE_SETS][BLOCKCACHE_WAYS];
	uint64_t clock;
	uint64_t n_reads; /* blocks read from the file */
	size_t n_bytes;	  /* allocated */
};

/* @file is borrowed. */
void blockcache_init(struct blockcache *bc, const struct elffile *file);
void blockcache_deinit(struct blockcache *bc);
/* Frees the blocks; the next call reads the file again. */
void blockcache_clear(struct blockcache *bc);

/**
 * blockcache_peek() - the bytes at an offset, in place
 * @off:   offset in the file
 * @ret_n: number of bytes, at least 1: to the end of the block with @off
 * @ret:   borrowed until the next call
 *
 * Return: 0, an outcome of elffile_read() (at the end of the file too), -errno.
 */
int blockcache_peek(struct blockcache *bc, uint64_t off, const uint8_t **ret, size_t *ret_n);

/* All of @n bytes from @off. Returns as blockcache_peek(). */
int blockcache_read(struct blockcache *bc, uint64_t off, void *ret, size_t n);

#endif
