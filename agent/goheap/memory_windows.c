// SPDX-License-Identifier: Apache-2.0
/*
 * Consecutively allocated objects are adjacent, so reads of 128 KiB turn 30,000 small reads into
 * about a hundred system calls. A window may extend beyond the end of a mapping; the available part
 * is used. If the first page of the window is missing, but not the requested page, the window is
 * read again from the requested page on.
 *
 * The necessary number of windows is the number of places read in turn: 1 for a program with a
 * single processor, 100 for a program with 100. The cache begins with a few windows. A request for
 * a recently evicted window doubles the number.
 *
 * The position of the copy matters. With the destination 16 bytes further into its page than the
 * source, as malloc() places large blocks, the kernel's copying took three to four times as long
 * (measured on an AMD EPYC, `rep movsb`); 64 bytes further was best.
 */
#include "goheap/memory_windows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "procmap/memory.h"

/* At least three: viewed data must outlive the use of two other windows. */
#define WINDOWS_FIRST 4

void memory_windows_init(struct memory_windows *w, struct memory *memory)
{
	*w = (struct memory_windows){.memory = memory, .limit = WINDOWS_FIRST};
}

void memory_windows_deinit(struct memory_windows *w)
{
	for (size_t i = 0; i < MEMORY_WINDOWS_MAX; i++) {
		free(w->windows[i].data);
		w->windows[i] = (struct memory_window){0};
	}
}

void memory_windows_forget(struct memory_windows *w)
{
	for (size_t i = 0; i < MEMORY_WINDOWS_MAX; i++)
		w->windows[i].n = 0;
}

/* The bytes of the window from @addr on; 0 without @addr. */
static size_t window_has(const struct memory_window *window, uint64_t addr)
{
	uint64_t skip = addr - window->start;

	return addr >= window->start && skip < window->n ? window->n - skip : 0;
}

static struct memory_window *window_find(struct memory_windows *w, uint64_t addr)
{
	uint8_t *hint = &w->hints[addr / MEMORY_WINDOW_BYTES % MEMORY_GHOSTS_MAX];

	if (window_has(&w->windows[*hint], addr))
		return &w->windows[*hint];
	for (size_t i = 0; i < w->limit; i++)
		if (window_has(&w->windows[i], addr)) {
			*hint = (uint8_t)i;
			return &w->windows[i];
		}
	return NULL;
}

static struct memory_window *window_oldest(struct memory_windows *w)
{
	struct memory_window *oldest = &w->windows[0];

	for (size_t i = 1; i < w->limit; i++)
		if (w->windows[i].last_use < oldest->last_use)
			oldest = &w->windows[i];
	return oldest;
}

static bool is_ghost(const struct memory_windows *w, uint64_t number)
{
	size_t n = w->n_ghosts < MEMORY_GHOSTS_MAX ? w->n_ghosts : MEMORY_GHOSTS_MAX;

	for (size_t i = 0; i < n; i++)
		if (w->ghosts[i] == number)
			return true;
	return false;
}

/* Choose the window to load @addr into. */
static struct memory_window *window_choose(struct memory_windows *w, uint64_t addr)
{
	struct memory_window *window;

	if (is_ghost(w, addr / MEMORY_WINDOW_BYTES) && w->limit < MEMORY_WINDOWS_MAX)
		w->limit *= 2;
	window = window_oldest(w);
	if (window->n)
		w->ghosts[w->n_ghosts++ % MEMORY_GHOSTS_MAX] = window->start / MEMORY_WINDOW_BYTES;
	window->n = 0;
	return window;
}

/* Fill the window from @start to the next multiple of the window size. */
static int window_fill(struct memory_windows *w, struct memory_window *window, uint64_t start)
{
	size_t n = MEMORY_WINDOW_BYTES - (size_t)(start % MEMORY_WINDOW_BYTES), got = 0;
	int r;

	r = memory_read_some(w->memory, start, window->data + MEMORY_SKEW_BYTES, n, &got);
	if (r)
		return r;
	window->start = start;
	window->n = got;
	return 0;
}

static int window_alloc(struct memory_window *window)
{
	const size_t n = MEMORY_WINDOW_BYTES + MEMORY_PAGE_BYTES;

	window->data = aligned_alloc(MEMORY_PAGE_BYTES, n);
	if (!window->data)
		return -ENOMEM;
	prefault(window->data, n);
	return 0;
}

static int window_load(struct memory_windows *w, uint64_t addr, struct memory_window **ret)
{
	uint64_t aligned = addr - addr % MEMORY_WINDOW_BYTES;
	uint64_t page = addr - addr % MEMORY_PAGE_BYTES;
	struct memory_window *window = window_choose(w, addr);
	int r;

	if (!window->data && window_alloc(window))
		return -ENOMEM;
	r = window_fill(w, window, aligned);
	if (r == 0 && !window_has(window, addr))
		r = MEMORY_UNMAPPED; /* a hole between the window's start and @addr */
	if (r == MEMORY_UNMAPPED && page != aligned)
		r = window_fill(w, window, page);
	if (!r && !window_has(window, addr))
		r = MEMORY_UNMAPPED;
	*ret = window;
	return r;
}

static const uint8_t *window_at(const struct memory_window *window, uint64_t addr)
{
	return window->data + MEMORY_SKEW_BYTES + (addr - window->start);
}

int memory_windows_view(struct memory_windows *w, uint64_t addr, size_t n, void *room,
			const void **ret)
{
	struct memory_window *window = window_find(w, addr);
	int r;

	if (window && window_has(window, addr) >= n) {
		window->last_use = ++w->clock;
		*ret = window_at(window, addr);
		return 0;
	}
	r = memory_windows_read(w, addr, room, n);
	if (!r)
		*ret = room;
	return r;
}

int memory_windows_read(struct memory_windows *w, uint64_t addr, void *ret, size_t n)
{
	uint8_t *to = ret;
	uint64_t end;

	if (n > MEMORY_WINDOW_BYTES || __builtin_add_overflow(addr, n, &end))
		return MEMORY_UNMAPPED;
	while (n) {
		struct memory_window *window = window_find(w, addr);
		size_t step;
		int r = window ? 0 : window_load(w, addr, &window);

		if (r)
			return r;
		window->last_use = ++w->clock;
		step = window_has(window, addr);
		if (step > n)
			step = n;
		memcpy(to, window_at(window, addr), step);
		to += step;
		addr += step;
		n -= step;
	}
	return 0;
}
