// SPDX-License-Identifier: Apache-2.0
#include "elf/elfwindow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "elf/elffile.h"

/* Bytes of the window after a jump: a page. */
#define JUMP_BYTES ((size_t)4096)

int elfwindow_init(struct elfwindow *w, const struct elffile *file, uint64_t off, uint64_t size,
		   size_t room)
{
	uint8_t *bytes = malloc(room);

	if (!bytes)
		return -ENOMEM;
	*w = (struct elfwindow){
		.file = file,
		.off = off,
		.size = size,
		.room = room,
		.bytes = bytes,
	};
	return 0;
}

void elfwindow_deinit(struct elfwindow *w)
{
	free(w->bytes);
	w->bytes = NULL;
	w->n = 0;
}

/* Bytes of the window from @off on. As with a disk's readahead, the window doubles while the reader
 * goes on, and is small again after a jump: a table in no order costs a small read for each entry.
 */
static size_t window_bytes(const struct elfwindow *w, uint64_t off, size_t need)
{
	bool goes_on = off >= w->first && off - w->first <= 2 * (uint64_t)w->n;
	size_t n = goes_on ? 2 * w->n : 0;

	if (n < JUMP_BYTES)
		n = JUMP_BYTES;
	if (n < need)
		n = need;
	if (n > w->room)
		n = w->room;
	return n < w->size - off ? n : (size_t)(w->size - off);
}

/* The window to begin at @off of the part, with at least @need bytes. */
static int move(struct elfwindow *w, uint64_t off, size_t need)
{
	size_t n = window_bytes(w, off, need);
	uint64_t at;
	int r;

	w->n = 0;
	if (__builtin_add_overflow(w->off, off, &at))
		return ELFFILE_MALFORMED;
	r = elffile_read(w->file, at, w->bytes, n);
	if (r)
		return r;
	w->first = off;
	w->n = n;
	return 0;
}

int elfwindow_get(struct elfwindow *w, uint64_t off, size_t n, const uint8_t **ret)
{
	if (off > w->size || n > w->size - off || n > w->room)
		return ELFFILE_MALFORMED;
	if (off < w->first || off - w->first > w->n || n > w->n - (off - w->first)) {
		int r = move(w, off, n);

		if (r)
			return r;
	}
	*ret = w->bytes + (off - w->first);
	return 0;
}
