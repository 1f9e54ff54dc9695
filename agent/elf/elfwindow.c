// SPDX-License-Identifier: Apache-2.0
#include "elf/elfwindow.h"

#include <errno.h>
#include <stdlib.h>

#include "elf/elffile.h"

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

/* The window to begin at @off of the part. */
static int move(struct elfwindow *w, uint64_t off)
{
	uint64_t left = w->size - off;
	size_t n = left < w->room ? (size_t)left : w->room;
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
		int r = move(w, off);

		if (r)
			return r;
	}
	*ret = w->bytes + (off - w->first);
	return 0;
}
