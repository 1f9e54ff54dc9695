/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_WINDOW_BPF_H
#define PODPROF_BPF_LIB_WINDOW_BPF_H

/*
 * A window on the task's stack. In warm caches the cost of reading user memory is the call, hardly
 * the bytes (60 ns for 8 bytes, 90 for 1,024). In cold caches it is the lines, of the stack and of
 * the window itself. A walk reads upwards, so the window reads 512 bytes at once, and mostly has
 * the next frames already. Frames have some 170 bytes on average. A reader of one object fills the
 * whole window.
 */

#include "lib/types.h"

#define WINDOW_WORDS 128
#define WINDOW_BYTES (WINDOW_WORDS * 8ull)
/* Read for a word, with what follows. bench_lines counts lines and reads of a walk of 34 frames:
 * 1,024 bytes 170 and 7, 512 bytes 156 and 11, 256 bytes 147 and 19, 64 bytes 110 and 29. Of 9
 * frames: 65 and 1, 49 and 1, 46 and 2, 42 and 5. */
#define WINDOW_STEP  512ull

/* The bytes. Their address is in struct window_place, because memory written only by helpers is
 * simpler for the verifier. */
struct window {
	__u64 words[WINDOW_WORDS];
};

struct window_place {
	__u64 at;    /* address of the first byte, a multiple of 8 */
	__u64 bytes; /* number of valid bytes */
};

struct table_space;

#define WINDOW_INLINE static inline __attribute__((always_inline))

/* Bytes from an address to the next possible end of memory. Larger pages end at a multiple of 4
 * KiB, too. A reader of other memory than a task's defines the macro before the include. */
#ifndef WINDOW_TO_EDGE
#define WINDOW_TO_EDGE(space, address) (-(address)&4095)
#endif

/* Accessor: read @n bytes of the task's memory. Returns 0 if the read was complete. */
WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address);

/* Read @n bytes from @address on, a multiple of 8; @n is a constant power of two. Returns 0 if any
 * bytes are readable. */
WINDOW_INLINE int window_fill_some(const struct table_space *space, struct window *win,
				   struct window_place *place, __u64 address, __u64 n)
{
	__u64 edge = WINDOW_TO_EDGE(space, address);

	place->at = address;
	place->bytes = n;
	if (!window_read(space, win->words, n, address))
		return 0;
	/* Possibly the stack's last page, with fewer bytes. */
	place->bytes = 0;
	if (!edge || edge >= n)
		return -1;
	if (window_read(space, win->words, edge & (n - 1), address))
		return -1;
	place->bytes = edge;
	return 0;
}

/* Read @n bytes from @address on, or up to the page's end if the next page is not there: then zeros
 * follow. @n is a constant power of two below a page's size. Returns 0 if any bytes are readable.
 */
WINDOW_INLINE int window_read_some(const struct table_space *space, __u64 *to, __u64 n,
				   __u64 address)
{
	__u64 edge = WINDOW_TO_EDGE(space, address);

	if (!window_read(space, to, n, address))
		return 0;
	if (!edge || edge >= n)
		return -1;
	return window_read(space, to, edge & (n - 1), address);
}

/* The whole window from @address on, as window_fill_some(). */
WINDOW_INLINE int window_fill(const struct table_space *space, struct window *win,
			      struct window_place *place, __u64 address)
{
	return window_fill_some(space, win, place, address, WINDOW_BYTES);
}

/* Read the word at @address through the window. Returns 0, or -1 if unreadable. */
WINDOW_INLINE int window_word(const struct table_space *space, struct window *win,
			      struct window_place *place, __u64 address, __u64 *ret)
{
	__u64 off = address - place->at;

	if (address & 7)
		return -1;
	if (off >= place->bytes) {
		if (window_fill_some(space, win, place, address, WINDOW_STEP))
			return -1;
		off = 0;
	}
	*ret = win->words[(off / 8) & (WINDOW_WORDS - 1)];
	return 0;
}

#endif
