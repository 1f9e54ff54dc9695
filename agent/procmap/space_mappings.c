// SPDX-License-Identifier: Apache-2.0
/*
 * The mappings of address spaces, and their images.
 *
 * A mapping with the same range, offset and inode as before keeps its image without opening the
 * file. The image holds its file open, so the inode cannot belong to another file. An event about
 * this range says that it was mapped again, perhaps after a write into the file: then the image
 * stays only if its file was seen unchanged after the event.
 *
 * The ceilings of processes, mappings and unopened files are shared among the owners (share.h).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/share.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/space.h"

/* Address spaces in the cache, and an owner's share of them; eviction by least recent use, among
 * the owner's own. Reached: `podprof_address_spaces_dropped_total{limit="processes"}`. */
#define ADDRESS_SPACE_TARGETS_MAX     8192
/* Executable mappings of one process. A browser has 300; a JIT with a mapping per function has
 * thousands. Mappings above the limit are discarded, and their pcs count as unmapped. Reached:
 * `podprof_resolved_pcs_total{outcome="unmapped"}`. */
#define ADDRESS_SPACE_TARGET_MAPS_MAX 4096
/* Mappings of all processes together (48 bytes each: 12 MiB), shared by owner.
 * Reached: `podprof_address_spaces_dropped_total{limit="mappings"}`. */
#define ADDRESS_SPACE_MAPPINGS_MAX    262144
/* Bytes of images that wait to be opened, with their paths; shared by owner. 16 MiB are 50,000
 * usual ones. Reached: `podprof_resolved_pcs_total{outcome="images_full"}`. */
#define ADDRESS_SPACE_UNOPENED_MAX    (16u << 20)

static void free_items(struct address_space_mapping *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		image_unref(items[i].image);
	free(items);
}

/* Bytes of an image that is not opened; 0 for any other. */
static size_t unopened_bytes(const struct image *image)
{
	return image->opening ? sizeof(*image) + sizeof(*image->opening) + strlen(image->path) + 1
			      : 0;
}

/* Counts @s in or out of its owner's share and of all. */
static void charge(struct address_space_cache *c, const struct address_space *s, int sign)
{
	const size_t n = sign > 0 ? s->n : -s->n;
	const size_t bytes = sign > 0 ? s->unopened_bytes : -s->unopened_bytes;

	c->n_mappings += n;
	c->unopened_bytes += bytes;
	s->owner->n_mappings += n;
	s->owner->unopened_bytes += bytes;
	space_order_owner(c, s->owner);
}

/* Whether nothing is known of a file until it is open. */
static bool is_awaited(const struct image_opening *opening)
{
	return !opening->guess && (opening->state == IMAGE_UNASKED ||
				   opening->state == IMAGE_WANTED || opening->state == IMAGE_ASKED);
}

void space_recount(struct address_space_cache *c, struct address_space *s)
{
	c->n_opening -= s->n_wanted + s->n_asked;
	s->n_wanted = s->n_asked = s->n_slow = s->n_unopened = s->n_unknown = s->n_full = 0;
	s->unopened_bytes = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct image *image = s->items[i].image;

		s->n_full += image == images_full(c->images);
		if (!image->opening)
			continue;
		s->n_wanted += image->opening->state == IMAGE_WANTED;
		s->n_asked += image->opening->state == IMAGE_ASKED;
		s->n_slow += image->opening->state == IMAGE_SLOW;
		s->n_unopened += image->opening->state == IMAGE_UNASKED;
		s->n_unknown += is_awaited(image->opening);
		s->unopened_bytes += unopened_bytes(image);
	}
	c->n_opening += s->n_wanted + s->n_asked;
}

void space_settle(struct address_space_cache *c, struct address_space *s)
{
	bool changed = false;

	charge(c, s, -1);
	for (size_t i = 0; i < s->n; i++) {
		struct image *image = s->items[i].image;

		if (!image->opening || image->opening->state != IMAGE_OPENED)
			continue;
		changed |= image->opening->opened != image->opening->guess;
		s->items[i].image = image_ref(image->opening->opened);
		image_unref(image);
	}
	space_recount(c, s);
	charge(c, s, 1);
	if (changed)
		s->version = ++c->version;
}

void space_end_list(struct address_space_cache *c, struct address_space *s)
{
	space_unqueue_list(c, s);
	c->n_reading -= space_is_reading(s);
	s->list_of = (struct pid_id){0};
}

/* The pcs of an image that will not be opened any more have an outcome, too. */
static void give_up_pcs(struct address_space_cache *c, const struct address_space_mapping *items,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct image_opening *opening = items[i].image->opening;

		if (!opening || opening->state != IMAGE_WANTED)
			continue;
		c->outcomes[ADDRESS_SPACE_SLOW] += opening->n_pcs;
		opening->n_pcs = 0;
	}
}

static void clear_mappings(struct address_space_cache *c, struct address_space *s)
{
	charge(c, s, -1);
	free_items(s->items, s->n);
	s->items = NULL;
	s->n = 0;
	space_recount(c, s);
}

static int add_to_pid(struct address_space_cache *c, struct address_space *s)
{
	const uint64_t pid = s->key.pid.pid;
	bool hash_oom = false;

	HASH_FIND(hh, c->pids, &pid, sizeof(pid), s->pid);
	if (!s->pid) {
		s->pid = calloc(1, sizeof(*s->pid));
		if (!s->pid)
			return -ENOMEM;
		s->pid->pid = pid;
		TAILQ_INIT(&s->pid->spaces);
		HASH_ADD(hh, c->pids, pid, sizeof(pid), s->pid);
		if (hash_oom) {
			free(s->pid);
			return -ENOMEM;
		}
	}
	TAILQ_INSERT_TAIL(&s->pid->spaces, s, in_pid);
	return 0;
}

static void remove_from_pid(struct address_space_cache *c, struct address_space *s)
{
	TAILQ_REMOVE(&s->pid->spaces, s, in_pid);
	if (!TAILQ_EMPTY(&s->pid->spaces))
		return;
	HASH_DEL(c->pids, s->pid);
	free(s->pid);
}

void space_drop(struct address_space_cache *c, struct address_space *s)
{
	HASH_DEL(c->spaces, s);
	remove_from_pid(c, s);
	space_unqueue(c, s);
	space_end_list(c, s);
	give_up_pcs(c, s->items, s->n);
	clear_mappings(c, s);
	TAILQ_REMOVE(&s->owner->spaces, s, in_owner);
	s->owner->n_spaces--;
	space_order_owner(c, s->owner);
	space_put_owner(c, s->owner);
	free(s);
}

void space_use(struct address_space *s)
{
	TAILQ_REMOVE(&s->owner->spaces, s, in_owner);
	TAILQ_INSERT_TAIL(&s->owner->spaces, s, in_owner);
}

/* Drops the least recently used address space of @owner. @but is not dropped. False if there is
 * none. */
static bool drop_least_used(struct address_space_cache *c, const struct space_owner *owner,
			    const struct address_space *but, enum address_space_dropped why)
{
	struct address_space *least = owner ? TAILQ_FIRST(&owner->spaces) : NULL;

	if (least == but && least)
		least = TAILQ_NEXT(least, in_owner);
	if (!least)
		return false;
	c->dropped[why]++;
	space_drop(c, least);
	return true;
}

/* Whether an owner has more than its share. Without a known owner there are no shares. */
static bool exceeds(const struct space_owner *owner, size_t max, size_t total, size_t own)
{
	return owner->id && own && !share_allows(max, total - 1, own - 1);
}

/* Makes @s, the newest member, fit: its owner gives up the excess of its share, and the largest
 * owner the excess of the ceiling. */
static void keep_shares(struct address_space_cache *c, const struct address_space *s)
{
	const struct space_owner *own = s->owner;

	while (exceeds(own, ADDRESS_SPACE_TARGETS_MAX, HASH_COUNT(c->spaces), own->n_spaces) &&
	       drop_least_used(c, own, s, DROP_TARGETS))
		;
	while (HASH_COUNT(c->spaces) > ADDRESS_SPACE_TARGETS_MAX &&
	       drop_least_used(c, space_first_owner(c, ORDER_SPACES), s, DROP_TARGETS))
		;
	while (exceeds(own, ADDRESS_SPACE_MAPPINGS_MAX, c->n_mappings, own->n_mappings) &&
	       drop_least_used(c, own, s, DROP_MAPPINGS))
		;
	while (c->n_mappings > ADDRESS_SPACE_MAPPINGS_MAX &&
	       drop_least_used(c, space_first_owner(c, ORDER_MAPPINGS), s, DROP_MAPPINGS))
		;
}

int space_new(struct address_space_cache *c, const struct address_space_key *key, uint64_t owner,
	      struct address_space **ret)
{
	bool hash_oom = false;
	struct address_space *s;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (space_get_owner(c, owner, &s->owner)) {
		free(s);
		return -ENOMEM;
	}
	s->key = *key;
	s->delay_ns = ADDRESS_SPACE_SEEK_NS;
	s->stale = true;
	HASH_ADD(hh, c->spaces, key, sizeof(s->key), s);
	if (!hash_oom && add_to_pid(c, s)) {
		HASH_DEL(c->spaces, s);
		hash_oom = true;
	}
	if (hash_oom) {
		space_put_owner(c, s->owner);
		free(s);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&s->owner->spaces, s, in_owner);
	s->owner->n_spaces++;
	space_order_owner(c, s->owner);
	keep_shares(c, s);
	*ret = s;
	return 0;
}

const struct address_space_mapping *space_find(const struct address_space *s, uint64_t pc)
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

/* The image of an unchanged entry from the last read. @news: as in space_set_mappings(). */
static struct image *kept_image(const struct address_space *s, const struct maps *news,
				const struct maps_entry *e)
{
	const struct address_space_mapping *m = space_find(s, e->start);

	if (!e->inode || !m || m->start != e->start || m->limit != e->limit ||
	    m->offset != e->offset || m->device != e->device || m->inode != e->inode)
		return NULL;
	if (m->image->opening)
		return image_ref(m->image);
	if (!m->image->file ||
	    (news && maps_find(news, e->start) &&
	     !image_checked_since(m->image, s->events_ns ? s->events_ns : s->read_boot_ns)))
		return NULL;
	return image_ref(m->image);
}

/* The image of a mapping of @s that the kernel reported, if its file was seen unchanged after the
 * report: then no look at the file is necessary. Most short processes run the files of the ones
 * before. Shared memory without a program is no file's: its code belongs to the process. */
static struct image *checked_image(const struct address_space_cache *c,
				   const struct address_space *s, const struct images_way *way,
				   const struct maps_entry *e)
{
	struct image *known = way->via_pid ? NULL : images_guess(c->images, e);

	if (known && (!known->file || !image_checked_since(known, s->events_ns)))
		known = image_unref(known);
	return known;
}

/* Whether @s may have one more unopened image if it has @bytes of them. */
static bool has_room(const struct address_space_cache *c, const struct address_space *s,
		     size_t bytes)
{
	const struct space_owner *owner = s->owner;
	size_t before = s->unopened_bytes; /* is counted already */

	return share_allows(ADDRESS_SPACE_UNOPENED_MAX, c->unopened_bytes - before + bytes,
			    owner->id ? owner->unopened_bytes - before + bytes : 0);
}

bool space_has_room(const struct address_space_cache *c, const struct address_space *s)
{
	return s->n_full && has_room(c, s, s->unopened_bytes) &&
	       images_have_room(c->images, s->owner->id);
}

/* An image for a file that a thread will open. @bytes: of such images in the space so far. */
static int unopened_image(const struct address_space_cache *c, const struct address_space *s,
			  const struct images_way *way, const struct maps_entry *e, size_t *bytes,
			  struct image **ret)
{
	int r;

	if (!has_room(c, s, *bytes)) {
		*ret = image_ref(images_full(c->images));
		return 0;
	}
	r = image_new_opening(e->path, e->start, e->offset, ret);
	if (r)
		return r;
	(*ret)->id.device = e->device;
	(*ret)->id.inode = e->inode;
	(*ret)->opening->by_record = !way->via_pid;
	(*ret)->opening->deleted = e->deleted;
	(*ret)->opening->kind = e->kind;
	(*ret)->opening->guess = images_guess(c->images, e);
	*bytes += unopened_bytes(*ret);
	return 0;
}

static int find_image(struct address_space_cache *c, const struct address_space *s,
		      const struct images_way *way, const struct maps_entry *e, size_t *bytes,
		      struct image **ret)
{
	if (c->opener && images_needs_file(e)) {
		*ret = checked_image(c, s, way, e);
		return *ret ? 0 : unopened_image(c, s, way, e, bytes, ret);
	}
	if (!images_needs_file(e)) {
		*ret = images_of_memory(c->images, &s->way, e);
		return 0;
	}
	if (way->via_pid)
		return images_of_entry(c->images, way, e, ret);
	return images_of_record(c->images, way, e, ret);
}

/* @items has room for all of @maps; *@n are filled, on a failure too. */
static int fill_items(struct address_space_cache *c, const struct address_space *s,
		      const struct images_way *way, const struct maps *maps,
		      const struct maps *news, struct address_space_mapping *items, size_t *n)
{
	size_t bytes = 0;

	for (*n = 0; *n < maps->n && *n < ADDRESS_SPACE_TARGET_MAPS_MAX; (*n)++) {
		const struct maps_entry *e = &maps->items[*n];
		struct address_space_mapping *m = &items[*n];
		int r;

		*m = (struct address_space_mapping){.start = e->start,
						    .limit = e->limit,
						    .offset = e->offset,
						    .device = e->device,
						    .inode = e->inode,
						    .image = kept_image(s, news, e)};
		if (m->image) {
			bytes += unopened_bytes(m->image);
			continue;
		}
		r = find_image(c, s, way, e, &bytes, &m->image);
		if (r)
			return r;
	}
	return 0;
}

/* Of the mappings of @s that are not among @items. */
static void give_up_lost(struct address_space_cache *c, const struct address_space *s,
			 const struct address_space_mapping *items, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n && s->n_wanted; i++) {
		while (k < n && items[k].start < s->items[i].start)
			k++;
		if (k == n || items[k].image != s->items[i].image)
			give_up_pcs(c, &s->items[i], 1);
	}
}

/* Whether a file's mapping of @s is not among @items. */
static bool lacks_file(const struct address_space *s, const struct address_space_mapping *items,
		       size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct address_space_mapping *m = &s->items[i];

		while (k < n && items[k].start < m->start)
			k++;
		if (m->inode &&
		    (k == n || items[k].start != m->start || items[k].inode != m->inode ||
		     items[k].device != m->device || items[k].offset != m->offset))
			return true;
	}
	return false;
}

/* Takes the items. */
static void replace_items(struct address_space_cache *c, struct address_space *s,
			  struct address_space_mapping *items, size_t n)
{
	bool same =
		s->version && n == s->n && (!n || memcmp(items, s->items, n * sizeof(*items)) == 0);

	if (!same) {
		give_up_lost(c, s, items, n);
		s->replaces |= lacks_file(s, items, n);
	}
	clear_mappings(c, s);
	s->items = items;
	s->n = n;
	space_recount(c, s);
	charge(c, s, 1);
	if (!same) {
		s->version = ++c->version;
		s->listed_ns = 0;
	}
	keep_shares(c, s);
}

/* How to open files from now on: a read of a living process tells all, events only of ancestors. */
static void set_way(struct address_space *s, const struct images_way *way)
{
	uint64_t via_pid = way->via_pid ? way->via_pid : s->way.via_pid;
	uint64_t inode = way->inode ? way->inode : s->way.inode;

	s->way = *way;
	s->way.via_pid = via_pid;
	s->way.inode = inode;
	s->way.pid = s->key.pid;
	s->way.exec_id = s->key.exec_id;
	s->way.began_ns = s->began_ns;
	s->way.owner = s->owner->id;
}

int space_set_mappings(struct address_space_cache *c, struct address_space *s,
		       const struct images_way *way, const struct maps *maps,
		       const struct maps *news)
{
	size_t room = maps->n < ADDRESS_SPACE_TARGET_MAPS_MAX ? maps->n
							      : ADDRESS_SPACE_TARGET_MAPS_MAX,
	       n;
	struct address_space_mapping *items = calloc(room ? room : 1, sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	set_way(s, way);
	r = fill_items(c, s, way, maps, news, items, &n);
	if (r)
		free_items(items, n);
	else
		replace_items(c, s, items, n);
	return r;
}

/* A sorted list of all new mappings and of the old ones without overlap. */
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

int space_add_mappings(struct address_space_cache *c, struct address_space *s,
		       const struct images_way *way, const struct maps *maps)
{
	struct address_space_mapping *fresh = calloc(maps->n, sizeof(*fresh));
	struct address_space_mapping *all = calloc(maps->n + s->n, sizeof(*all));
	size_t n_fresh = 0, n;
	int r;

	set_way(s, way);
	r = fresh && all ? fill_items(c, s, way, maps, maps, fresh, &n_fresh) : -ENOMEM;

	if (r) {
		free_items(fresh, n_fresh);
		free(all);
		return r;
	}
	n = merge(s->items, s->n, fresh, n_fresh, all);
	/* no event tells of a mapping that is gone, and some processes are not read again */
	if (n > ADDRESS_SPACE_TARGET_MAPS_MAX)
		n = ADDRESS_SPACE_TARGET_MAPS_MAX;
	for (size_t i = 0; i < n; i++)
		image_ref(all[i].image);
	free_items(fresh, n_fresh);
	replace_items(c, s, all, n);
	return 0;
}
