/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HEAPSAVED_H
#define PODPROF_TEST_SUPPORT_HEAPSAVED_H

/*
 * What the readers of a Go runtime have read of a process, as one piece of bytes: numbers of eight
 * bytes as the machine has them.
 *
 *	the release's second number, a word for who uses it (0), HEAPSAVED_PLACES places
 *	then pieces of memory until the end: address, number of bytes, the bytes; of a piece whose
 *	number has its highest bit set all are zero, and are not there
 */

#include <stddef.h>
#include <stdint.h>

#include "goheap/goruntime.h"
#include "goheap/memory.h"

struct buf;

/* The variables, then the other places that struct goruntime_file has. */
#define HEAPSAVED_PLACES     (GORUNTIME_VAR_MAX + 9)
#define HEAPSAVED_PIECES_MAX 4096
#define HEAPSAVED_ZERO	     (1ull << 63)

/**
 * struct heapsaved - such bytes as a process's memory; {0} is empty
 * @runtime: as it would be found there
 * @word:    the one for who uses it
 * @on_read: called before each read, with its number from 1; a process that changes
 */
struct heapsaved {
	struct memory memory;
	struct goruntime runtime;
	uint64_t word;
	struct heapsaved_piece {
		uint64_t addr;
		uint64_t n;
		uint8_t *bytes; /* borrowed; NULL: all zero */
	} pieces[HEAPSAVED_PIECES_MAX];
	size_t n_pieces;
	void (*on_read)(struct heapsaved *saved, uint64_t n);
};

/* Borrows the bytes, which may be anything; what makes no sense is left out. */
void heapsaved_open(struct heapsaved *saved, uint8_t *bytes, size_t n);

/**
 * struct heaprecorder - memory that notes which pages of another one are read
 */
struct heaprecorder {
	struct memory memory;
	struct memory *from; /* borrowed */
	uint64_t *pages;     /* addresses; owned */
	size_t n_pages;
	size_t cap;
};

void heaprecorder_init(struct heaprecorder *r, struct memory *from);
void heaprecorder_deinit(struct heaprecorder *r);
/* What they hold now. 0 or -errno. */
int heaprecorder_save(struct heaprecorder *r, const struct goruntime *rt, struct buf *ret);

#endif
