/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HEAPSAVED_H
#define PODPROF_TEST_SUPPORT_HEAPSAVED_H

/*
 * The memory read from a process by the readers of a Go runtime, as one piece of bytes. Numbers
 * have eight bytes in the machine's byte order.
 *
 *	the release's second number, a word for the caller (0), HEAPSAVED_PLACES places
 *	then pieces of memory until the end: address, number of bytes, the bytes
 *
 * If the highest bit of a piece's number is set, all bytes are zero and omitted.
 */

#include <stddef.h>
#include <stdint.h>

#include "goheap/goruntime.h"
#include "procmap/memory.h"

struct buf;

/* The variables, then the other addresses of struct goruntime_file. */
#define HEAPSAVED_PLACES     (GORUNTIME_VAR_MAX + 9)
#define HEAPSAVED_PIECES_MAX 4096
#define HEAPSAVED_ZERO	     (1ull << 63)

/**
 * struct heapsaved - saved bytes as a process's memory; {0} is empty
 * @runtime: the result of a search in the memory
 * @word:    for the caller
 * @on_read: called before each read, with the read's number from 1; simulates a changing process
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

/* Borrows the bytes. Any bytes are valid; invalid parts are skipped. */
void heapsaved_open(struct heapsaved *saved, uint8_t *bytes, size_t n);

/*
 * struct heaprecorder - memory that records the pages read from another memory
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
/* Save the present contents of the recorded pages. 0 or -errno. */
int heaprecorder_save(struct heaprecorder *r, const struct goruntime *rt, struct buf *ret);

#endif
