// SPDX-License-Identifier: Apache-2.0
#include "runtimes/runtime_images.h"

#include <stdlib.h>

#include "base/file_id.h"
#include "base/hash.h"
#include "procmap/address_space.h"
#include "runtimes/runtime_reader.h"

/* Files with the runtime, some hundred bytes each. Reached: all are forgotten, and probed again. */
#define RUNTIME_IMAGES_MAX 1024

struct runtime_image {
	struct file_id id;
	void *probed; /* owned */
	void *exe;    /* owned, or NULL */
	UT_hash_handle hh;
};

void runtime_images_deinit(struct runtime_images *m)
{
	struct runtime_image *k, *next;

	HASH_ITER(hh, m->items, k, next) {
		HASH_DEL(m->items, k);
		free(k->probed);
		free(k->exe);
		free(k);
	}
}

static struct runtime_image *find(const struct runtime_images *m, const struct file_id *id)
{
	struct runtime_image *k;

	HASH_FIND(hh, m->items, id, sizeof(*id), k);
	return k;
}

/* Takes @probed. NULL without memory. */
static struct runtime_image *add(struct runtime_images *m, const struct file_id *id, void *probed)
{
	struct runtime_image *k;
	bool hash_oom = false;

	if (HASH_COUNT(m->items) >= RUNTIME_IMAGES_MAX)
		runtime_images_deinit(m);
	k = calloc(1, sizeof(*k));
	if (k) {
		k->id = *id;
		k->probed = probed;
		HASH_ADD(hh, m->items, id, sizeof(k->id), k);
	}
	if (!k || hash_oom) {
		free(k);
		free(probed);
		return NULL;
	}
	return k;
}

void runtime_images_add(struct runtime_images *m, const struct file_id *id, void *probed,
			const void *target)
{
	struct runtime_image *k = find(m, id);
	void *exe;

	if (k)
		free(probed);
	else
		k = add(m, id, probed);
	if (!k || (k->exe && !target))
		return;
	exe = calloc(1, m->kind->exe_bytes);
	if (!exe || !m->kind->exe(k->probed, target, exe)) {
		free(exe);
		return;
	}
	free(k->exe);
	k->exe = exe;
}

const struct runtime_image *runtime_images_mapped(const struct runtime_images *m,
						  const struct address_space *space,
						  uint64_t *ret_bias)
{
	const struct address_space_mapping *items;
	size_t n;

	items = address_space_mappings(space, &n);
	for (size_t i = 0; i < n; i++) {
		const struct image *image = image_to_unwind(items[i].image);
		const struct runtime_image *k;

		if (!image || image->no_runtimes >> m->kind->runtime & 1)
			continue;
		k = find(m, &image->id);
		if (k && image_bias(image, items[i].start, items[i].limit - items[i].start,
				    items[i].offset, ret_bias))
			return k;
	}
	return NULL;
}

const void *runtime_image_probed(const struct runtime_image *image)
{
	return image->probed;
}

const void *runtime_image_exe(const struct runtime_image *image)
{
	return image->exe;
}
