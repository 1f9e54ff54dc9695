/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_WINDOW_BPF_H
#define PODPROF_BPF_LIB_WINDOW_BPF_H

/*
 * A window on the task's stack. Reading user memory costs the call and hardly the bytes (60 ns for
 * 8, 90 for 1,024), and a walk reads upwards, so a piece is read at once and the next frames are
 * mostly in it. Frames have some 170 bytes on average.
 */

#include "lib/types.h"

#define WINDOW_WORDS 128
#define WINDOW_BYTES (WINDOW_WORDS * 8ull)

/* The bytes; where they are from is in struct window_place, because the verifier has to be told
 * less about memory that only helpers write to. */
struct window {
	__u64 words[WINDOW_WORDS];
};

struct window_place {
	__u64 at;    /* address of the first byte, a multiple of 8 */
	__u64 bytes; /* how many are there */
};

struct table_space;

#define WINDOW_INLINE static inline __attribute__((always_inline))

/* Bytes from an address to the next place where memory may end. Pages may be larger than 4 KiB, but
 * end at such a multiple, too. Who reads something else than a task's memory defines it before. */
#ifndef WINDOW_TO_EDGE
#define WINDOW_TO_EDGE(space, address) (-(address)&4095)
#endif

/* Accessor: read the task's memory; 0 if all of it could be read. */
WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address);

/* Read what is at @address, a multiple of 8, and behind. 0 if there is anything. */
WINDOW_INLINE int window_fill(const struct table_space *space, struct window *win,
			      struct window_place *place, __u64 address)
{
	__u64 edge = WINDOW_TO_EDGE(space, address);

	place->at = address;
	place->bytes = WINDOW_BYTES;
	if (!window_read(space, win->words, WINDOW_BYTES, address))
		return 0;
	/* The stack's last page, maybe: then there is less. */
	place->bytes = 0;
	if (!edge || edge >= WINDOW_BYTES)
		return -1;
	if (window_read(space, win->words, edge & (WINDOW_BYTES - 1), address))
		return -1;
	place->bytes = edge;
	return 0;
}

/* The word at @address, through the window. 0 if it could be read. */
WINDOW_INLINE int window_word(const struct table_space *space, struct window *win,
			      struct window_place *place, __u64 address, __u64 *ret)
{
	__u64 off = address - place->at;

	if (address & 7)
		return -1;
	if (off >= place->bytes) {
		if (window_fill(space, win, place, address))
			return -1;
		off = 0;
	}
	*ret = win->words[(off / 8) & (WINDOW_WORDS - 1)];
	return 0;
}

#endif
