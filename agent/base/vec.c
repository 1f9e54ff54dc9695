// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefault.h"

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

int vec_grow(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
{
	size_t new_cap = *cap ? *cap : 8;

	if (need > max)
		return VEC_FULL;
	if (need <= *cap)
		return 0;
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
