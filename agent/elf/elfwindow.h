/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFWINDOW_H
#define PODPROF_ELF_ELFWINDOW_H

/*
 * A part of a file that is read once from its beginning to its end, with small steps back and
 * gaps: a window of bytes that moves forward, so that reading a table entry by entry costs a copy
 * and few system calls. What is outside of the window is read again.
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;

/**
 * struct elfwindow - the window
 * @file:  borrowed
 * @off:   of the part in the file
 * @size:  of the part
 * @room:  bytes that the window has at most
 * @bytes: of the window, owned
 * @first: of them, counted from @off
 * @n:     of them
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
/* Nothing to do for one that is all zeros. */
void elfwindow_deinit(struct elfwindow *w);

/* Make @n bytes from offset @off of the part addressable, until the next call. 0;
 * ELFFILE_MALFORMED if the part has not that many, or the window no room; ELFFILE_TRUNCATED;
 * -errno. */
int elfwindow_get(struct elfwindow *w, uint64_t off, size_t n, const uint8_t **ret);

#endif
