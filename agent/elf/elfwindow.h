/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFWINDOW_H
#define PODPROF_ELF_ELFWINDOW_H

/*
 * Sequential reading of a part of a file, with small steps back and gaps. A window of bytes moves
 * forward, so reading a table entry by entry costs a copy and few system calls. The window grows to
 * its maximum as long as the reader goes forward, and shrinks to a page after a jump. Bytes outside
 * the window are read again.
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;

/**
 * struct elfwindow - the window
 * @file:  borrowed
 * @off:   of the part in the file
 * @size:  of the part
 * @room:  maximum of bytes in the window
 * @bytes: of the window, owned
 * @first: offset of the window, counted from @off
 * @n:     bytes in the window
 */
struct elfwindow {
	const struct elffile *file;
	uint64_t off;
	uint64_t size;
	size_t room;
	uint8_t *bytes;
	uint64_t first;
	size_t n;
};

/* 0 or -ENOMEM. */
int elfwindow_init(struct elfwindow *w, const struct elffile *file, uint64_t off, uint64_t size,
		   size_t room);
/* A window of zeros needs no deinit. */
void elfwindow_deinit(struct elfwindow *w);

/* Makes @n bytes at offset @off of the part addressable, until the next call. 0; ELFFILE_MALFORMED
 * if the part or the window is too small; ELFFILE_TRUNCATED; -errno. */
int elfwindow_get(struct elfwindow *w, uint64_t off, size_t n, const uint8_t **ret);

#endif
