// SPDX-License-Identifier: Apache-2.0
/*
 * A pc in a sample has a meaning only together with the mappings of that moment. This file looks up
 * the address space of a sample and resolves its pcs. The other parts (space.h), each of which
 * calls only the parts after it:
 *
 *	- space_reading.c reads the mappings, and decides whether they are credible.
 *	- space_history.c finds the mappings of processes that cannot be read, by their events.
 *	- space_threads.c has lists read, and files opened, on threads.
 *	- space_mappings.c keeps the mappings and their images, within the owners' shares.
 *	- space_owners.c keeps the owners in order.
 *
 * A pc has no name if its mapping changed within the possible time of the sample. Every resolved pc
 * is counted by outcome. A pc in an unopened file is counted by outcome after the opening.
 */
#include "procmap/address_space.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/opener.h"
#include "procmap/process_history.h"
#include "procmap/space.h"

/* Time before the eviction of an unused process that runs. A process that works for 1 ms a second
 * has no sample in many seconds, and its list would be read again and again. */
#define ADDRESS_SPACE_IDLE_NS  (100 * NSEC_PER_SEC)
/* The same for a process whose leader has ended. Its threads may go on. */
#define ADDRESS_SPACE_ENDED_NS (20 * NSEC_PER_SEC)
/* The same if there is no list to be read any more: most of these processes were short, and their
 * events still tell the mappings. There may be a hundred such processes a second. */
#define ADDRESS_SPACE_GONE_NS  (10 * NSEC_PER_SEC)

static const char *const outcome_names[ADDRESS_SPACE_OUTCOME_MAX] = {
	[ADDRESS_SPACE_FILE] = "file",	       [ADDRESS_SPACE_NO_ELF] = "no_elf",
	[ADDRESS_SPACE_VDSO] = "vdso",	       [ADDRESS_SPACE_ANON] = "anon",
	[ADDRESS_SPACE_UNMAPPED] = "unmapped", [ADDRESS_SPACE_NO_SEGMENT] = "no_segment",
	[ADDRESS_SPACE_REPLACED] = "replaced", [ADDRESS_SPACE_GONE] = "gone",
	[ADDRESS_SPACE_DENIED] = "denied",     [ADDRESS_SPACE_IMAGES_FULL] = "images_full",
	[ADDRESS_SPACE_SLOW] = "slow",
};

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "processes",
	[DROP_MAPPINGS] = "mappings",
	[DROP_HISTORY] = "history",
	[DROP_HISTORY_BYTES] = "history_bytes",
};

static const char *const source_names[SOURCE_MAX] = {
	[FROM_PROC] = "proc",
	[FROM_EVENTS] = "events",
	[FROM_NOWHERE] = "none",
};

DEFINE_CLEANUP(struct address_space_cache *, address_space_cache_freep, address_space_cache_free);

/* ---------------------------------------------------------------- life */

int address_space_cache_new(const struct root *proc, struct address_space_cache **ret)
{
	_cleanup_(address_space_cache_freep) struct address_space_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->proc = proc;
	c->until_ns = UINT64_MAX;
	c->use_list = space_use_list;
	c->self = pid_self(proc);
	r = images_new(proc, &c->images);
	if (!r)
		r = process_history_new(&c->history);
	if (r)
		return r;
	*ret = take_ptr(c);
	return 0;
}

void address_space_cache_free(struct address_space_cache *c)
{
	struct address_space *s, *next;

	if (!c)
		return;
	opener_free(take_ptr(c->lister));
	opener_free(take_ptr(c->opener));
	if (c->files.loop)
		images_leave_open(c->images);
	HASH_ITER(hh, c->spaces, s, next)
		space_drop(c, s);
	images_unref(c->images);
	process_history_free(c->history);
	free(c);
}

static bool has_ended(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = space_record(c, s);

	return record && history_record_exit_ns(record);
}

static uint64_t keep_ns(const struct address_space *s)
{
	if (s->gone)
		return ADDRESS_SPACE_GONE_NS;
	return s->ended ? ADDRESS_SPACE_ENDED_NS : ADDRESS_SPACE_IDLE_NS;
}

void address_space_cache_expire(struct address_space_cache *c, uint64_t since_ns)
{
	struct address_space *s, *next;

	HASH_ITER(hh, c->spaces, s, next) {
		s->ended = s->ended || has_ended(c, s); /* the history forgets it */
		if (!s->unused_ns)
			s->unused_ns = since_ns;
		if (since_ns >= s->unused_ns + keep_ns(s))
			space_drop(c, s);
	}
	process_history_sweep(c->history, since_ns);
}

void address_space_cache_sweep(struct address_space_cache *c, uint64_t since_ns)
{
	address_space_cache_expire(c, since_ns);
	for (struct address_space *s = c->spaces; s; s = s->hh.next)
		s->stale |= !s->gone && space_is_due(c, s);
	for (struct space_owner *owner = c->owners; owner; owner = owner->hh.next) {
		owner->used_ns /= 2;
		space_order_owner(c, owner);
	}
	if (c->opener)
		opener_sweep(c->opener);
	else
		images_sweep(c->images);
}

/* ---------------------------------------------------------------- lookup */

static struct address_space_key key_of(const struct address_space_who *who)
{
	return (struct address_space_key){
		.pid = who->pid, .start_ns = who->start_ns, .exec_id = who->exec_id};
}

int address_space_cache_get(struct address_space_cache *c, const struct address_space_who *who,
			    struct address_space **ret)
{
	struct address_space_key key = key_of(who);
	struct address_space *s;
	int r = 0;

	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (!s)
		r = space_new(c, &key, who->owner, &s);
	if (r)
		return r;
	space_use(s);
	s->unused_ns = 0;
	r = space_refresh(c, s, who->pc);
	if (r)
		return r;
	*ret = s;
	return 0;
}

const struct address_space_mapping *address_space_mappings(const struct address_space *s,
							   size_t *ret_n)
{
	*ret_n = s->n;
	return s->items;
}

uint64_t address_space_version(const struct address_space *s)
{
	return s->version;
}

uint64_t address_space_owner(const struct address_space *s)
{
	return s->owner->id;
}

bool address_space_gone(const struct address_space *s)
{
	return s->gone;
}

bool address_space_ended(const struct address_space *s)
{
	return s->ended;
}

bool address_space_reading(const struct address_space *s)
{
	return space_is_reading(s) && (!s->version || s->unsure);
}

bool address_space_opening(const struct address_space *s)
{
	return address_space_reading(s) ||
	       (s->n_unknown && (s->n_wanted || s->n_asked || s->queued));
}

bool address_space_seek(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	/* without memory the pc stays unknown */
	return c->lister && !space_find(s, pc) && !space_seek(c, s, pc) && space_is_reading(s);
}

bool address_space_seek_memory(struct address_space_cache *c, struct address_space *s)
{
	/* without memory the stack stays as it is */
	return !space_seek_memory(c, s) && space_is_reading(s);
}

bool address_space_want(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	const struct address_space_mapping *m = space_find(s, pc);

	if (!m)
		return address_space_seek(c, s, pc);
	return m->image->opening && space_want_file(c, s, m->image->opening) &&
	       !m->image->opening->guess;
}

/* ---------------------------------------------------------------- resolving */

static enum address_space_outcome unknown_at(struct address_space_cache *c, uint64_t pc,
					     enum address_space_outcome why, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_unknown(c->images)), .vaddr = pc};
	return why;
}

static enum address_space_outcome why_unmapped(const struct address_space *s)
{
	if (!s->n && (s->outcome == MAPS_SLOW || space_is_reading(s)))
		return ADDRESS_SPACE_SLOW;
	if (!s->n && s->outcome == MAPS_GONE)
		return ADDRESS_SPACE_GONE;
	if (!s->n && s->outcome == MAPS_DENIED)
		return ADDRESS_SPACE_DENIED;
	return ADDRESS_SPACE_UNMAPPED;
}

static enum address_space_outcome frame_at(struct address_space_cache *c, struct address_space *s,
					   const struct address_space_mapping *m, uint64_t pc,
					   struct frame *ret)
{
	struct image *image = m->image;
	uint64_t off, vaddr = pc;

	if (image->opening) {
		*ret = (struct frame){.image = image_ref(image), .vaddr = pc};
		(void)space_want_file(c, s, image->opening);
		if (image->opening->state == IMAGE_SLOW)
			return ADDRESS_SPACE_SLOW;
		image->opening->n_pcs++;
		return ADDRESS_SPACE_LATER;
	}
	if (image == images_full(c->images))
		return unknown_at(c, pc, ADDRESS_SPACE_IMAGES_FULL, ret);
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO) {
		if (__builtin_add_overflow(pc - m->start, m->offset, &off) ||
		    !image_vaddr_of_off(image, off, &vaddr))
			return unknown_at(c, pc, ADDRESS_SPACE_NO_SEGMENT, ret);
	}
	*ret = (struct frame){.image = image_ref(image), .vaddr = vaddr};
	if (image->kind == IMAGE_FILE)
		return image->file ? ADDRESS_SPACE_FILE : ADDRESS_SPACE_NO_ELF;
	return image->kind == IMAGE_VDSO ? ADDRESS_SPACE_VDSO : ADDRESS_SPACE_ANON;
}

static bool was_replaced(const struct address_space_cache *c, const struct address_space *s,
			 uint64_t pc)
{
	const struct history_record *record = s->doubtful ? space_record(c, s) : NULL;
	uint32_t program;

	if (s->unsure)
		return true;
	return record && space_program(record, s, &program) &&
	       history_record_replaced(record, program, pc, c->since_ns);
}

int address_space_resolve(struct address_space_cache *c, struct address_space *s, uint64_t pc,
			  struct frame *ret)
{
	const struct address_space_mapping *m = space_find(s, pc);

	if (!m) {
		int r = space_seek(c, s, pc);

		if (r)
			return r;
		m = space_find(s, pc);
	}
	if (!m)
		c->outcomes[unknown_at(c, pc, why_unmapped(s), ret)]++;
	else if (was_replaced(c, s, pc))
		c->outcomes[unknown_at(c, pc, ADDRESS_SPACE_REPLACED, ret)]++;
	else
		c->outcomes[frame_at(c, s, m, pc, ret)]++;
	return 0;
}

int address_space_cache_resolve(struct address_space_cache *c, const struct pid_id *id, uint64_t pc,
				struct frame *ret)
{
	struct address_space_who who = {.pid = *id, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	struct address_space *s;
	int r = address_space_cache_get(c, &who, &s);

	return r ? r : address_space_resolve(c, s, pc, ret);
}

void address_space_cache_doubt(struct address_space_cache *c, const struct pid_id *id)
{
	const struct address_space_who who = {.pid = *id, .exec_id = ADDRESS_SPACE_EXEC_ANY};
	const struct address_space_key key = key_of(&who);
	struct address_space *s;

	HASH_FIND(hh, c->spaces, &key, sizeof(key), s);
	if (s)
		s->stale = true;
}

void address_space_cache_kernel(struct address_space_cache *c, uint64_t pc, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_kernel(c->images)), .vaddr = pc};
}

/* ---------------------------------------------------------------- numbers */

static bool is_slow(const struct image *image)
{
	return image->opening ? image->opening->state == IMAGE_SLOW : image_is_slow(image);
}

void address_space_cache_slow(const struct address_space_cache *c, address_space_slow_fn fn,
			      void *ctx)
{
	for (const struct address_space *s = c->spaces; s; s = s->hh.next) {
		const struct address_space_mapping *last = NULL;
		struct address_space_slow slow = {
			.owner = s->owner->id,
			.pid = s->key.pid.pid,
			.list = !s->gone && !s->n && s->outcome == MAPS_SLOW,
		};

		for (size_t i = 0; i < s->n; i++) {
			const struct address_space_mapping *m = &s->items[i];

			if (!is_slow(m->image))
				continue;
			/* mappings of one file are neighbours */
			slow.n_files +=
				!last || m->inode != last->inode || m->device != last->device;
			last = m;
		}
		if (last)
			slow.path = last->image->path;
		if (last || slow.list)
			fn(ctx, &slow);
	}
}

size_t address_space_cache_bytes(const struct address_space_cache *c)
{
	return HASH_COUNT(c->spaces) * sizeof(struct address_space) + c->unopened_bytes +
	       HASH_COUNT(c->owners) * sizeof(struct space_owner) + HASH_OVERHEAD(hh, c->owners) +
	       HASH_COUNT(c->pids) * sizeof(struct space_pid) + HASH_OVERHEAD(hh, c->pids) +
	       c->n_mappings * sizeof(struct address_space_mapping) + images_bytes(c->images) +
	       process_history_stats(c->history).bytes + HASH_OVERHEAD(hh, c->spaces);
}

void address_space_cache_collect(void *cache, struct metric_sink *sink)
{
	static const struct metric_family_desc pcs = {
		"podprof_resolved_pcs", METRIC_COUNTER,
		"Run-time addresses of samples, by kind of memory.", NULL};
	static const struct metric_family_desc dropped = {
		"podprof_address_spaces_dropped", METRIC_COUNTER,
		"Processes whose mappings were dropped, by limit.", NULL};
	static const struct metric_family_desc reads = {
		"podprof_address_space_reads", METRIC_COUNTER,
		"Lookups of a process's mappings, by source.", NULL};
	const struct address_space_cache *c = cache;
	uint64_t drops[DROP_MAX], n_slow = 0;

	for (const struct address_space *s = c->spaces; s; s = s->hh.next)
		n_slow += s->n_slow;
	images_collect(c->images, address_space_cache_opening(c), n_slow, sink);
	if (c->opener)
		opener_collect(c->opener, sink);
	if (c->lister)
		opener_collect(c->lister, sink);
	metric_by_name(sink, &pcs, "outcome", c->outcomes, outcome_names,
		       ADDRESS_SPACE_OUTCOME_MAX);
	memcpy(drops, c->dropped, sizeof(drops));
	drops[DROP_HISTORY] = process_history_stats(c->history).n_full;
	drops[DROP_HISTORY_BYTES] = process_history_stats(c->history).n_halved;
	metric_by_name(sink, &dropped, "limit", drops, drop_names, DROP_MAX);
	metric_by_name(sink, &reads, "source", c->sources, source_names, SOURCE_MAX);
}
