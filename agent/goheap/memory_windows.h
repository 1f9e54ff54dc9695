/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_MEMORY_WINDOWS_H
#define PODPROF_GOHEAP_MEMORY_WINDOWS_H

/*
 * A read cache: serves many small, adjacent reads of a process's memory from few large reads.
 */

#include <stddef.h>
#include <stdint.h>

struct memory;

/* Bytes of a window: 30,000 records need about a hundred system calls. */
#define MEMORY_WINDOW_BYTES 131072
/* Windows kept, 16 MiB. A process allocates records in one chunk for each processor, and the
 * list runs through all chunks at once. Reached: the least recently used window is reused. */
#define MEMORY_WINDOWS_MAX  128
/* Evicted windows remembered, to detect repeated requests. Reached: the oldest is forgotten. */
#define MEMORY_GHOSTS_MAX   256

/**
 * struct memory_windows - copies of pieces of a process's memory
 *
 * Repeated reads return the same bytes while their window is kept.
 */
struct memory_windows {
	struct memory *memory;
	struct memory_window {
		uint64_t start;
		size_t n; /* 0: not used */
		uint64_t last_use;
		uint8_t *data; /* owned; NULL before the first use */
	} windows[MEMORY_WINDOWS_MAX];
	size_t limit; /* windows in use, at most */
	uint64_t clock;
	uint8_t hints[MEMORY_GHOSTS_MAX]; /* by address: the window of the last hit */
	uint64_t ghosts[MEMORY_GHOSTS_MAX];
	size_t n_ghosts; /* total; the array holds the newest */
};

/* @memory is borrowed. */
void memory_windows_init(struct memory_windows *w, struct memory *memory);
void memory_windows_deinit(struct memory_windows *w);
/* Discard all windows, so that later reads see the present memory. */
void memory_windows_forget(struct memory_windows *w);
/* View @n bytes in place, or copied to @room across two windows. *@ret is valid until two
 * other windows have been used. Returns as memory_read(). */
int memory_windows_view(struct memory_windows *w, uint64_t addr, size_t n, void *room,
			const void **ret);
/* Copy @n bytes (at most MEMORY_WINDOW_BYTES). Returns as memory_read(). */
int memory_windows_read(struct memory_windows *w, uint64_t addr, void *ret, size_t n);

#endif
