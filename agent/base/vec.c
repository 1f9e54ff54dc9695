// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int vec_resize(void *items, size_t *cap, size_t new_cap, size_t item_size)
{
	void *grown;

	memcpy(&grown, items, sizeof(grown));
	grown = reallocarray(grown, new_cap, item_size);
	if (!grown)
		return -ENOMEM;
	memcpy(items, &grown, sizeof(grown));
	*cap = new_cap;
	return 0;
}

int vec_grow_more(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
{
	size_t new_cap = *cap ? *cap : 8;

	if (need > max)
		return VEC_FULL;
	while (new_cap < need)
		new_cap = new_cap > max / 2 ? max : new_cap * 2;
	return vec_resize(items, cap, new_cap, item_size);
}

int vec_grow_tight(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
{
	size_t more = need / 8 < max - need ? need / 8 : max - need;
	size_t old_bytes = *cap * item_size;
	char *grown;
	int r;

	if (need > max)
		return VEC_FULL;
	if (need <= *cap)
		return 0;
	r = vec_resize(items, cap, need + more, item_size);
	if (r)
		return r;
	memcpy(&grown, items, sizeof(grown));
	prefault(grown + old_bytes, *cap * item_size - old_bytes);
	return 0;
}

/* Below this size, a few faults cost no more than the call, and malloc usually reuses a block. */
#define PREFAULT_BYTES_MIN (32u << 10)
/* Linux 5.14; older headers lack the constant. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void prefault(void *block, size_t n_bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)block + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)block + n_bytes) & ~(page - 1);

	if (n_bytes < PREFAULT_BYTES_MIN || from >= to)
		return;
	/* on failure the pages are faulted in singly */
	(void)!madvise((void *)from, to - from,
		       MADV_POPULATE_WRITE); // NOLINT(performance-no-int-to-ptr)
}
