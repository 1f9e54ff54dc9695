// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vec_grow(void *items, size_t *cap, size_t need, size_t item_size, size_t max)
{
	size_t new_cap = *cap ? *cap : 8;
	void *grown;

	if (need > max)
		return VEC_FULL;
	if (need <= *cap)
		return 0;
	while (new_cap < need)
		new_cap = new_cap > max / 2 ? max : new_cap * 2;
	memcpy(&grown, items, sizeof(grown));
	grown = reallocarray(grown, new_cap, item_size);
	if (!grown)
		return -ENOMEM;
	memcpy(items, &grown, sizeof(grown));
	*cap = new_cap;
	return 0;
}
