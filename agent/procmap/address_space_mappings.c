// SPDX-License-Identifier: Apache-2.0
/*
 * The mappings of one address space, sorted, each with its image.
 *
 * What was mapped there before (same range, offset and inode) keeps its image without opening
 * anything: an image holds its file open, so the inode cannot have become another file's.
 */
#include "procmap/address_space_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/images.h"

/* Executable mappings of one process. A browser has 300; a JIT that maps each function apart has
 * thousands. Those above it are not kept: the pcs there are counted as unmapped. Reached:
 * `podprof_resolved_pcs_total{outcome="unmapped"}`. */
#define ADDRESS_SPACE_TARGET_MAPS_MAX 4096
/* Mappings of all processes together (48 bytes each: 12 MiB). Above it the least recently used
 * processes are dropped, counted as "mappings". Reached:
 * `podprof_address_spaces_dropped_total{limit="mappings"}`. */
#define ADDRESS_SPACE_MAPPINGS_MAX    262144

static void free_items(struct address_space_mapping *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		image_unref(items[i].image);
	free(items);
}

static void clear_mappings(struct address_space_cache *c, struct address_space *s)
{
	free_items(s->items, s->n);
	c->n_mappings -= s->n;
	s->items = NULL;
	s->n = 0;
}

void address_space_drop(struct address_space_cache *c, struct address_space *s)
{
	HASH_DEL(c->spaces, s);
	clear_mappings(c, s);
	free(s);
}

void address_space_drop_least_used(struct address_space_cache *c, const struct address_space *but,
				   enum address_space_dropped why)
{
	struct address_space *s, *next, *least = NULL;

	HASH_ITER(hh, c->spaces, s, next)
		if (s != but && (!least || s->used < least->used))
			least = s;
	if (!least)
		return;
	c->dropped[why]++;
	address_space_drop(c, least);
}

const struct address_space_mapping *address_space_find(const struct address_space *s, uint64_t pc)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pc < s->items[mid].start)
			high = mid;
		else if (pc >= s->items[mid].limit)
			low = mid + 1;
		else
			return &s->items[mid];
	}
	return NULL;
}

/* The image that this entry had at the last read, if nothing about it has changed. */
static struct image *kept_image(const struct address_space *s, const struct maps_entry *e)
{
	const struct address_space_mapping *m = address_space_find(s, e->start);

	if (!e->inode || !m || m->start != e->start || m->limit != e->limit ||
	    m->offset != e->offset || m->device != e->device || m->inode != e->inode)
		return NULL;
	return m->image->file ? image_ref(m->image) : NULL;
}

static int find_image(struct address_space_cache *c, const struct finder *f,
		      const struct maps_entry *e, struct image **ret)
{
	if (f->via_pid)
		return images_of_entry(c->images, f->via_pid, e, ret);
	return images_of_record(c->images, e, f->likely, array_size(f->likely), ret);
}

/* @items has room for all of @maps; *@n of them are filled, on a failure too. */
static int fill_items(struct address_space_cache *c, const struct address_space *s,
		      const struct finder *f, const struct maps *maps,
		      struct address_space_mapping *items, size_t *n)
{
	for (*n = 0; *n < maps->n && *n < ADDRESS_SPACE_TARGET_MAPS_MAX; (*n)++) {
		const struct maps_entry *e = &maps->items[*n];
		struct address_space_mapping *m = &items[*n];
		int r;

		*m = (struct address_space_mapping){.start = e->start,
						    .limit = e->limit,
						    .offset = e->offset,
						    .device = e->device,
						    .inode = e->inode,
						    .image = kept_image(s, e)};
		if (m->image)
			continue;
		r = find_image(c, f, e, &m->image);
		if (r)
			return r;
	}
	return 0;
}

static bool same_items(const struct address_space *s, const struct address_space_mapping *items,
		       size_t n)
{
	return s->version && n == s->n && (!n || memcmp(items, s->items, n * sizeof(*items)) == 0);
}

/* Takes the items. */
static void replace_items(struct address_space_cache *c, struct address_space *s,
			  struct address_space_mapping *items, size_t n)
{
	bool same = same_items(s, items, n);

	clear_mappings(c, s);
	s->items = items;
	s->n = n;
	if (!same) {
		s->version = ++c->version;
		s->as_now_ns = nsec_boot();
	}
	c->n_mappings += n;
	while (c->n_mappings > ADDRESS_SPACE_MAPPINGS_MAX && HASH_COUNT(c->spaces) > 1)
		address_space_drop_least_used(c, s, DROP_MAPPINGS);
}

int address_space_set(struct address_space_cache *c, struct address_space *s,
		      const struct finder *f, const struct maps *maps)
{
	size_t room = maps->n < ADDRESS_SPACE_TARGET_MAPS_MAX ? maps->n
							      : ADDRESS_SPACE_TARGET_MAPS_MAX,
	       n;
	struct address_space_mapping *items = calloc(room ? room : 1, sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	r = fill_items(c, s, f, maps, items, &n);
	if (r)
		free_items(items, n);
	else
		replace_items(c, s, items, n);
	return r;
}

/* Old mappings that new ones do not touch, and the new ones: sorted, as one list. */
static size_t merge(const struct address_space_mapping *old, size_t n_old,
		    const struct address_space_mapping *new, size_t n_new,
		    struct address_space_mapping *ret)
{
	size_t i = 0, n = 0;

	for (size_t k = 0; k < n_new; k++) {
		for (; i < n_old && old[i].limit <= new[k].start; i++)
			ret[n++] = old[i];
		for (; i < n_old && old[i].start < new[k].limit; i++)
			continue;
		ret[n++] = new[k];
	}
	for (; i < n_old; i++)
		ret[n++] = old[i];
	return n;
}

int address_space_add(struct address_space_cache *c, struct address_space *s,
		      const struct finder *f, const struct maps *maps)
{
	struct address_space_mapping *fresh = calloc(maps->n, sizeof(*fresh));
	struct address_space_mapping *all = calloc(maps->n + s->n, sizeof(*all));
	size_t n_fresh = 0, n;
	int r = fresh && all ? fill_items(c, s, f, maps, fresh, &n_fresh) : -ENOMEM;

	if (r) {
		free_items(fresh, n_fresh);
		free(all);
		return r;
	}
	n = merge(s->items, s->n, fresh, n_fresh, all);
	for (size_t i = 0; i < n; i++)
		image_ref(all[i].image);
	free_items(fresh, n_fresh);
	replace_items(c, s, all, n);
	return 0;
}
