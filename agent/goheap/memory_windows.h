/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_MEMORY_WINDOWS_H
#define PODPROF_GOHEAP_MEMORY_WINDOWS_H

/*
 * Many small reads of a process's memory that are near to each other, served from few large ones.
 */

#include <stddef.h>
#include <stdint.h>

struct memory;

/* Bytes of one window: 30,000 records make some hundred system calls. */
#define MEMORY_WINDOW_BYTES 131072
/* Windows kept, 16 MiB; beyond, the one that was used least makes room. A process allocates records
 * in one chunk for each processor, and the list runs through all of them at once. Reached: the one
 * used least is used again. */
#define MEMORY_WINDOWS_MAX  128
/* Windows that were given up and are remembered, so that those who are asked for again show.
 * Reached: the oldest is forgotten. */
#define MEMORY_GHOSTS_MAX   256

/**
 * struct memory_windows - copies of pieces of a process's memory
 *
 * What is read twice has the same bytes, while its window is kept.
 */
struct memory_windows {
	struct memory *memory;
	struct memory_window {
		uint64_t start;
		size_t n; /* 0: not used */
		uint64_t last_use;
		uint8_t *data; /* owned; NULL until it is used for the first time */
	} windows[MEMORY_WINDOWS_MAX];
	size_t limit; /* windows in use, at most */
	uint64_t clock;
	uint8_t hints[MEMORY_GHOSTS_MAX]; /* by address: the window it was found in last */
	uint64_t ghosts[MEMORY_GHOSTS_MAX];
	size_t n_ghosts; /* ever; the newest ones are there */
};

/* @memory is borrowed. */
void memory_windows_init(struct memory_windows *w, struct memory *memory);
void memory_windows_deinit(struct memory_windows *w);
/* What is read from now on is read anew. */
void memory_windows_forget(struct memory_windows *w);
/* @n bytes without copying them, or, where they are in two windows, copied to @room. *@ret is good
 * until two other windows have been used. As memory_read(). */
int memory_windows_view(struct memory_windows *w, uint64_t addr, size_t n, void *room,
			const void **ret);
/* Copy @n bytes (at most MEMORY_WINDOW_BYTES). As memory_read(). */
int memory_windows_read(struct memory_windows *w, uint64_t addr, void *ret, size_t n);

#endif
