// SPDX-License-Identifier: Apache-2.0
/*
 * Samples bring pcs; what they mean depends on what the process had mapped at that moment. The
 * mappings are read from /proc when a process is first sampled, and again when there is reason to
 * doubt them:
 *
 *	- the kernel told that it has mapped a file since (process_history.h);
 *	- a pc outside all of them, which is also what is left if nobody tells of events: a library
 *	  was loaded, or one was moved;
 *	- a sample of another program of it: an exec. Who cannot tell one program's samples from
 *	  another's (ADDRESS_SPACE_EXEC_ANY) looks at /proc/PID/exe: programs that are linked to a
 *	  fixed address all have their code at the same one, so that no pc need be outside;
 *	- a window has passed (address_space_cache_sweep()): something may have taken another's
 *	  place.
 *
 * Reads that found nothing new double the time until the next one is made for such a reason.
 *
 * A place where something else was mapped within the time that a sample may be from has no name.
 * Nor has anything in mappings of before a loss of events, until they have been read again: one
 * that has ended since never will be, and may have had something else there at its end.
 *
 * Everything is counted by outcome for each resolved pc.
 */
#include "procmap/address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/address_space_state.h"
#include "procmap/images.h"

/* Address spaces that are kept. One more drops the one that was used least recently, which is
 * counted as "processes" in podprof_address_spaces_dropped. Reached:
 * `podprof_address_spaces_dropped_total{limit="processes"}`. */
#define ADDRESS_SPACE_TARGETS_MAX    8192
#define ADDRESS_SPACE_REREAD_LONG_NS (64 * NSEC_PER_SEC)
/* Sweeps that a process stays without being asked for. */
#define ADDRESS_SPACE_IDLE_SWEEPS    2

static const char *const outcome_names[ADDRESS_SPACE_OUTCOME_MAX] = {
	[ADDRESS_SPACE_FILE] = "file",	       [ADDRESS_SPACE_NO_ELF] = "no_elf",
	[ADDRESS_SPACE_VDSO] = "vdso",	       [ADDRESS_SPACE_ANON] = "anon",
	[ADDRESS_SPACE_UNMAPPED] = "unmapped", [ADDRESS_SPACE_NO_SEGMENT] = "no_segment",
	[ADDRESS_SPACE_REPLACED] = "replaced", [ADDRESS_SPACE_GONE] = "gone",
	[ADDRESS_SPACE_DENIED] = "denied",     [ADDRESS_SPACE_IMAGES_FULL] = "images_full",
};

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "processes",
	[DROP_MAPPINGS] = "mappings",
	[DROP_HISTORY] = "history",
};

static const char *const source_names[SOURCE_MAX] = {
	[FROM_PROC] = "proc",
	[FROM_EVENTS] = "events",
	[FROM_NOWHERE] = "none",
};

DEFINE_CLEANUP(struct address_space_cache *, address_space_cache_freep, address_space_cache_free);

static struct address_space *find_address_space(struct address_space_cache *c,
						const struct address_space_key *key)
{
	struct address_space *s;

	HASH_FIND(hh, c->spaces, key, sizeof(*key), s);
	return s;
}

static struct address_space_key key_of(const struct address_space_who *who)
{
	return (struct address_space_key){
		.pid = who->pid, .start_ns = who->start_ns, .exec_id = who->exec_id};
}

static int add_address_space(struct address_space_cache *c, const struct address_space_who *who,
			     struct address_space **ret)
{
	bool hash_oom = false;
	struct address_space *s;

	if (HASH_COUNT(c->spaces) >= ADDRESS_SPACE_TARGETS_MAX)
		address_space_drop_least_used(c, NULL, DROP_TARGETS);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->key = key_of(who);
	s->delay_ns = ADDRESS_SPACE_REREAD_NS;
	s->stale = true;
	HASH_ADD(hh, c->spaces, key, sizeof(s->key), s);
	if (hash_oom) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

/* What of it is to be believed, by all that has been told. */
static void judge(const struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	s->ended = record && history_record_exit_ns(record);
	s->doubtful = !address_space_is_any(s) && record &&
		      history_record_changed_ns(record) > c->since_ns;
	s->unsure = (address_space_is_uncertain(c, s) || address_space_is_old(c, s)) &&
		    !address_space_is_lasting(c, s);
}

int address_space_cache_get(struct address_space_cache *c, const struct address_space_who *who,
			    struct address_space **ret)
{
	struct address_space_key key = key_of(who);
	struct address_space *s = find_address_space(c, &key);
	int r = s ? 0 : add_address_space(c, who, &s);

	if (r)
		return r;
	s->used = ++c->tick;
	s->idle = 0;
	address_space_learn(c, s);
	r = address_space_look_again(c, s, nsec_monotonic(), who->pc);
	if (r)
		return r;
	judge(c, s);
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

bool address_space_gone(const struct address_space *s)
{
	return s->gone;
}

bool address_space_ended(const struct address_space *s)
{
	return s->ended;
}

int address_space_cache_new(const struct root *proc, struct address_space_cache **ret)
{
	_cleanup_(address_space_cache_freep) struct address_space_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->proc = proc;
	c->until_ns = UINT64_MAX;
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
	HASH_ITER(hh, c->spaces, s, next)
		address_space_drop(c, s);
	images_free(c->images);
	process_history_free(c->history);
	free(c);
}

static enum address_space_outcome unknown_at(struct address_space_cache *c, uint64_t pc,
					     enum address_space_outcome why, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_unknown(c->images)), .vaddr = pc};
	return why;
}

static enum address_space_outcome why_unmapped(const struct address_space *s)
{
	if (!s->n && s->outcome == MAPS_GONE)
		return ADDRESS_SPACE_GONE;
	if (!s->n && s->outcome == MAPS_DENIED)
		return ADDRESS_SPACE_DENIED;
	return ADDRESS_SPACE_UNMAPPED;
}

static enum address_space_outcome frame_at(struct address_space_cache *c,
					   const struct address_space_mapping *m, uint64_t pc,
					   struct frame *ret)
{
	struct image *image = m->image;
	uint64_t off, vaddr = pc;

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
	const struct history_record *record = s->doubtful ? address_space_record(c, s) : NULL;
	uint32_t program;

	if (s->unsure)
		return true;
	return record && address_space_program(record, s, &program) &&
	       history_record_replaced(record, program, pc, c->since_ns);
}

int address_space_resolve(struct address_space_cache *c, struct address_space *s, uint64_t pc,
			  struct frame *ret)
{
	uint64_t now = nsec_monotonic();
	const struct address_space_mapping *m = address_space_find(s, pc);

	if (!m && !s->gone && now - s->read_ns >= s->delay_ns) {
		int r = address_space_read(c, s, now, pc);

		if (r)
			return r;
		judge(c, s);
		m = address_space_find(s, pc);
		s->delay_ns = m ? ADDRESS_SPACE_REREAD_NS : 2 * s->delay_ns;
		if (s->delay_ns > ADDRESS_SPACE_REREAD_LONG_NS)
			s->delay_ns = ADDRESS_SPACE_REREAD_LONG_NS;
	}
	if (!m)
		c->outcomes[unknown_at(c, pc, why_unmapped(s), ret)]++;
	else if (was_replaced(c, s, pc))
		c->outcomes[unknown_at(c, pc, ADDRESS_SPACE_REPLACED, ret)]++;
	else
		c->outcomes[frame_at(c, m, pc, ret)]++;
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

void address_space_cache_kernel(struct address_space_cache *c, uint64_t pc, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_kernel(c->images)), .vaddr = pc};
}

struct image *address_space_cache_vdso(const struct address_space_cache *c)
{
	return images_vdso(c->images);
}

/* The exec id of a process that executes something for the first time since we listen, if samples
 * have told it and nothing was lost since. 0 if not. */
static uint64_t sampled_exec_id(const struct address_space_cache *c, uint32_t pid)
{
	const struct address_space *s, *next;
	uint64_t id = 0;

	HASH_ITER(hh, c->spaces, s, next)
		if (s->key.pid.pid == pid && !s->gone && !address_space_is_any(s) &&
		    s->read_boot_ns > c->lost_ns && s->key.exec_id && s->key.exec_id >= id)
			id = s->key.exec_id + 1;
	return id;
}

/* Of what is known of that process. */
static bool is_first_exec(const struct address_space_cache *c, const struct history_record *record)
{
	return !record || history_record_is_past(c->history, record) ||
	       (!history_record_is_counted(record) && !history_record_program(record));
}

void address_space_cache_event(struct address_space_cache *c, const struct process_event *event)
{
	const struct history_record *record = process_history_find(c->history, event->pid, 0);
	uint64_t id = 0;

	if (event->what == PROCESS_EVENT_EXEC && is_first_exec(c, record))
		id = sampled_exec_id(c, event->pid);
	if (!process_history_add(c->history, event)) {
		address_space_cache_lost(c, 0);
		return;
	}
	record = id ? process_history_find(c->history, event->pid, 0) : NULL;
	if (record)
		process_history_learn(c->history, record, history_record_program(record), id);
}

void address_space_cache_lost(struct address_space_cache *c, uint64_t since_ns)
{
	struct address_space *s, *next;

	c->lost_ns = nsec_boot();
	process_history_lost(c->history, since_ns, c->lost_ns);
	HASH_ITER(hh, c->spaces, s, next)
		s->stale = !s->gone;
}

void address_space_cache_follow(struct address_space_cache *c, address_space_catch_up_fn fn,
				void *ctx)
{
	c->catch_up = fn;
	c->catch_up_ctx = ctx;
}

void address_space_cache_since(struct address_space_cache *c, uint64_t since_ns)
{
	c->since_ns = since_ns;
	c->until_ns = UINT64_MAX;
}

void address_space_cache_at(struct address_space_cache *c, uint64_t time_ns)
{
	c->since_ns = c->until_ns = time_ns;
}

void address_space_cache_invalidate(struct address_space_cache *c, const struct pid_id *id)
{
	struct address_space *s, *next;

	HASH_ITER(hh, c->spaces, s, next)
		if (pid_id_equal(&s->key.pid, id))
			address_space_drop(c, s);
}

void address_space_cache_sweep(struct address_space_cache *c)
{
	struct address_space *s, *next;

	HASH_ITER(hh, c->spaces, s, next) {
		s->stale = !s->gone;
		if (++s->idle > (s->gone ? 1 : ADDRESS_SPACE_IDLE_SWEEPS))
			address_space_drop(c, s);
	}
	images_sweep(c->images);
	process_history_sweep(c->history, nsec_boot());
}

/* ---------------------------------------------------------------- numbers */

size_t address_space_cache_bytes(const struct address_space_cache *c)
{
	return HASH_COUNT(c->spaces) * sizeof(struct address_space) +
	       c->n_mappings * sizeof(struct address_space_mapping) + images_bytes(c->images) +
	       process_history_stats(c->history).bytes + HASH_OVERHEAD(hh, c->spaces);
}

void address_space_cache_collect(void *cache, struct metric_sink *sink)
{
	static const struct metric_family_desc pcs = {
		"podprof_resolved_pcs", METRIC_COUNTER,
		"Run-time addresses of samples by what was found there.", NULL};
	static const struct metric_family_desc dropped = {
		"podprof_address_spaces_dropped", METRIC_COUNTER,
		"Processes whose mappings were forgotten, by the ceiling that was reached.", NULL};
	static const struct metric_family_desc reads = {
		"podprof_address_space_reads", METRIC_COUNTER,
		"Times that a process's mappings were read, by where they were had from.", NULL};
	const struct address_space_cache *c = cache;
	uint64_t drops[DROP_MAX];

	images_collect(c->images, sink);
	metric_by_name(sink, &pcs, "outcome", c->outcomes, outcome_names,
		       ADDRESS_SPACE_OUTCOME_MAX);
	memcpy(drops, c->dropped, sizeof(drops));
	drops[DROP_HISTORY] = process_history_stats(c->history).n_full;
	metric_by_name(sink, &dropped, "limit", drops, drop_names, DROP_MAX);
	metric_by_name(sink, &reads, "source", c->sources, source_names, SOURCE_MAX);
}
