// SPDX-License-Identifier: Apache-2.0
#include "cpu/addresses.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "cpu/fold.h"
#include "symbolize/symbolizer.h"

/* Slots of the first table. */
#define SLOTS_MIN 1024

struct address {
	const struct image *image; /* NULL: a free slot */
	uint64_t vaddr;
};

/* The address's slot, or a free one. */
static struct address *slot_of(const struct addresses *a, const struct address *wanted)
{
	size_t i = hash_words((uintptr_t)wanted->image, wanted->vaddr);

	for (;; i++) {
		struct address *slot = &a->slots[i & (a->n_slots - 1)];

		if (!slot->image || (slot->image == wanted->image && slot->vaddr == wanted->vaddr))
			return slot;
	}
}

static int make_room(struct addresses *a)
{
	struct addresses old = *a;

	if (a->n < a->n_slots / 2)
		return 0;
	a->n_slots = a->n_slots ? a->n_slots * 2 : SLOTS_MIN;
	a->slots = calloc(a->n_slots, sizeof(*a->slots));
	if (!a->slots) {
		*a = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slots[i].image)
			*slot_of(a, &old.slots[i]) = old.slots[i];
	free(old.slots);
	return 0;
}

static int add(struct addresses *a, const struct address *address)
{
	struct address *slot;
	int r = make_room(a);

	if (r)
		return r;
	slot = slot_of(a, address);
	a->n += !slot->image;
	*slot = *address;
	return 0;
}

void addresses_add(struct addresses *a, const struct fold *fold)
{
	for (size_t i = 0; i < fold_n(fold); i++) {
		const struct fold_stack stack = fold_get(fold, i);

		for (size_t k = 0; k < stack.n_frames && !a->error && a->n < ADDRESSES_MAX; k++) {
			const struct address address = {
				stack.frames[k].image,
				instruction_of(stack.frames[k].vaddr, stack.return_address[k])};

			if (address.image->kind == IMAGE_FILE || address.image->kind == IMAGE_VDSO)
				a->error = add(a, &address);
		}
	}
}

static int by_image(const void *a, const void *b)
{
	const struct address *x = a, *y = b;
	uintptr_t i = (uintptr_t)x->image, k = (uintptr_t)y->image;

	return i == k ? (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr) : (i > k) - (i < k);
}

/* The addresses by image, at the front of the table. */
static void sort(struct addresses *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_slots; i++)
		if (a->slots[i].image)
			a->slots[n++] = a->slots[i];
	qsort(a->slots, n, sizeof(*a->slots), by_image);
}

/* @vaddrs and @files have room for each address. Returns the number of files. */
static size_t group(const struct addresses *a, uint64_t *vaddrs, struct symbolizer_addresses *files)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		vaddrs[i] = a->slots[i].vaddr;
		if (!i || a->slots[i].image != a->slots[i - 1].image)
			files[n++] = (struct symbolizer_addresses){
				/* the symbolizer changes reference counts */
				.image = (struct image *)a->slots[i].image,
				.vaddrs = &vaddrs[i],
			};
		files[n - 1].n++;
	}
	return n;
}

int addresses_learn(struct addresses *a, struct symbolizer *symbolizer)
{
	_cleanup_(freep) struct address *slots = a->slots;
	_cleanup_(freep) struct symbolizer_addresses *files = NULL;
	_cleanup_(freep) uint64_t *vaddrs = NULL;

	if (!slots || a->error)
		return a->error;
	files = calloc(a->n, sizeof(*files));
	vaddrs = calloc(a->n, sizeof(*vaddrs));
	if (!files || !vaddrs)
		return -ENOMEM;
	sort(a);
	return symbolizer_learn(symbolizer, files, group(a, vaddrs, files));
}
