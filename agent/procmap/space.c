// SPDX-License-Identifier: Apache-2.0
/*
 * Samples bring pcs; what they mean depends on what the process had mapped at that moment. The
 * mappings are read from /proc when a process is first sampled, and again when there is reason to
 * doubt them:
 *
 *	- the kernel told that it has mapped a file since (lives.h);
 *	- a pc outside all of them, which is also what is left if nobody tells of events: a library
 *	  was loaded, or one was moved;
 *	- a sample of another program of it: an exec. Who cannot tell one program's samples from
 *	  another's (SPACE_EXEC_ANY) looks at /proc/PID/exe: programs that are linked to a fixed
 *	  address all have their code at the same one, so that no pc need be outside;
 *	- a window has passed (space_cache_sweep()): something may have taken another's place.
 *
 * Reads that found nothing new double the time until the next one is made for such a reason.
 *
 * A place where something else was mapped within the time that a sample may be from has no name.
 * Nor has anything in mappings of before a loss of events, until they have been read again: one
 * that has ended since never will be, and may have had something else there at its end.
 *
 * Everything is counted by outcome for each resolved pc.
 */
#include "procmap/space.h"

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
#include "procmap/images.h"
#include "procmap/space_state.h"

/* Address spaces that are kept. One more drops the one that was used least recently, which is
 * counted as "targets" in podprof_space_dropped. Reached:
 * `podprof_space_dropped_total{ceiling="targets"}`. */
#define SPACE_TARGETS_MAX    8192
#define SPACE_REREAD_LONG_NS (64 * NSEC_PER_SEC)
/* Sweeps that a process stays without being asked for. */
#define SPACE_IDLE_SWEEPS    2

static const char *const outcome_names[SPACE_OUTCOME_MAX] = {
	[SPACE_FILE] = "file",	       [SPACE_NO_ELF] = "no_elf",
	[SPACE_VDSO] = "vdso",	       [SPACE_ANON] = "anon",
	[SPACE_UNMAPPED] = "unmapped", [SPACE_NO_SEGMENT] = "no_segment",
	[SPACE_REPLACED] = "replaced", [SPACE_GONE] = "gone",
	[SPACE_DENIED] = "denied",     [SPACE_IMAGES_FULL] = "images_full",
};

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "targets",
	[DROP_MAPPINGS] = "mappings",
	[DROP_LIVES] = "lives",
};

static const char *const source_names[SOURCE_MAX] = {
	[FROM_PROC] = "proc",
	[FROM_EVENTS] = "events",
	[FROM_NOWHERE] = "none",
};

DEFINE_CLEANUP(struct space_cache *, space_cache_freep, space_cache_free);

static struct space *find_space(struct space_cache *c, const struct space_key *key)
{
	struct space *s;

	HASH_FIND(hh, c->spaces, key, sizeof(*key), s);
	return s;
}

static struct space_key key_of(const struct space_who *who)
{
	return (struct space_key){
		.pid = who->pid, .start_ns = who->start_ns, .exec_id = who->exec_id};
}

static int add_space(struct space_cache *c, const struct space_who *who, struct space **ret)
{
	bool hash_oom = false;
	struct space *s;

	if (HASH_COUNT(c->spaces) >= SPACE_TARGETS_MAX)
		space_drop_least_used(c, NULL, DROP_TARGETS);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->key = key_of(who);
	s->delay_ns = SPACE_REREAD_NS;
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
static void judge(const struct space_cache *c, struct space *s)
{
	const struct life *life = space_life(c, s);

	s->ended = life && life_exit_ns(life);
	s->doubtful = !space_is_any(s) && life && life_changed_ns(life) > c->since_ns;
	s->unsure = (space_is_uncertain(c, s) || space_is_old(c, s)) && !space_is_lasting(c, s);
}

int space_cache_get(struct space_cache *c, const struct space_who *who, struct space **ret)
{
	struct space_key key = key_of(who);
	struct space *s = find_space(c, &key);
	int r = s ? 0 : add_space(c, who, &s);

	if (r)
		return r;
	s->used = ++c->tick;
	s->idle = 0;
	space_learn(c, s);
	r = space_look_again(c, s, nsec_monotonic(), who->pc);
	if (r)
		return r;
	judge(c, s);
	*ret = s;
	return 0;
}

const struct space_mapping *space_mappings(const struct space *s, size_t *ret_n)
{
	*ret_n = s->n;
	return s->items;
}

uint64_t space_version(const struct space *s)
{
	return s->version;
}

bool space_gone(const struct space *s)
{
	return s->gone;
}

bool space_ended(const struct space *s)
{
	return s->ended;
}

int space_cache_new(const struct root *proc, struct space_cache **ret)
{
	_cleanup_(space_cache_freep) struct space_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->proc = proc;
	c->until_ns = UINT64_MAX;
	c->self = pid_self(proc);
	r = images_new(proc, &c->images);
	if (!r)
		r = lives_new(&c->lives);
	if (r)
		return r;
	*ret = take_ptr(c);
	return 0;
}

void space_cache_free(struct space_cache *c)
{
	struct space *s, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->spaces, s, next)
		space_drop(c, s);
	images_free(c->images);
	lives_free(c->lives);
	free(c);
}

static enum space_outcome unknown_at(struct space_cache *c, uint64_t pc, enum space_outcome why,
				     struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_unknown(c->images)), .vaddr = pc};
	return why;
}

static enum space_outcome why_unmapped(const struct space *s)
{
	if (!s->n && s->outcome == MAPS_GONE)
		return SPACE_GONE;
	if (!s->n && s->outcome == MAPS_DENIED)
		return SPACE_DENIED;
	return SPACE_UNMAPPED;
}

static enum space_outcome frame_at(struct space_cache *c, const struct space_mapping *m,
				   uint64_t pc, struct frame *ret)
{
	struct image *image = m->image;
	uint64_t off, vaddr = pc;

	if (image == images_full(c->images))
		return unknown_at(c, pc, SPACE_IMAGES_FULL, ret);
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO) {
		if (__builtin_add_overflow(pc - m->start, m->offset, &off) ||
		    !image_vaddr_of_off(image, off, &vaddr))
			return unknown_at(c, pc, SPACE_NO_SEGMENT, ret);
	}
	*ret = (struct frame){.image = image_ref(image), .vaddr = vaddr};
	if (image->kind == IMAGE_FILE)
		return image->file ? SPACE_FILE : SPACE_NO_ELF;
	return image->kind == IMAGE_VDSO ? SPACE_VDSO : SPACE_ANON;
}

static bool was_replaced(const struct space_cache *c, const struct space *s, uint64_t pc)
{
	const struct life *life = s->doubtful ? space_life(c, s) : NULL;
	uint32_t program;

	if (s->unsure)
		return true;
	return life && space_program(life, s, &program) &&
	       life_replaced(life, program, pc, c->since_ns);
}

int space_resolve(struct space_cache *c, struct space *s, uint64_t pc, struct frame *ret)
{
	uint64_t now = nsec_monotonic();
	const struct space_mapping *m = space_find(s, pc);

	if (!m && !s->gone && now - s->read_ns >= s->delay_ns) {
		int r = space_read(c, s, now, pc);

		if (r)
			return r;
		judge(c, s);
		m = space_find(s, pc);
		s->delay_ns = m ? SPACE_REREAD_NS : 2 * s->delay_ns;
		if (s->delay_ns > SPACE_REREAD_LONG_NS)
			s->delay_ns = SPACE_REREAD_LONG_NS;
	}
	if (!m)
		c->outcomes[unknown_at(c, pc, why_unmapped(s), ret)]++;
	else if (was_replaced(c, s, pc))
		c->outcomes[unknown_at(c, pc, SPACE_REPLACED, ret)]++;
	else
		c->outcomes[frame_at(c, m, pc, ret)]++;
	return 0;
}

int space_cache_resolve(struct space_cache *c, const struct pid_id *id, uint64_t pc,
			struct frame *ret)
{
	struct space_who who = {.pid = *id, .exec_id = SPACE_EXEC_ANY};
	struct space *s;
	int r = space_cache_get(c, &who, &s);

	return r ? r : space_resolve(c, s, pc, ret);
}

void space_cache_kernel(struct space_cache *c, uint64_t pc, struct frame *ret)
{
	*ret = (struct frame){.image = image_ref(images_kernel(c->images)), .vaddr = pc};
}

struct image *space_cache_vdso(const struct space_cache *c)
{
	return images_vdso(c->images);
}

/* The exec id of a process that executes something for the first time since we listen, if samples
 * have told it and nothing was lost since. 0 if not. */
static uint64_t sampled_exec_id(const struct space_cache *c, uint32_t pid)
{
	const struct space *s, *next;
	uint64_t id = 0;

	HASH_ITER(hh, c->spaces, s, next)
		if (s->key.pid.pid == pid && !s->gone && !space_is_any(s) &&
		    s->read_boot_ns > c->lost_ns && s->key.exec_id && s->key.exec_id >= id)
			id = s->key.exec_id + 1;
	return id;
}

/* Of what is known of that process. */
static bool is_first_exec(const struct space_cache *c, const struct life *life)
{
	return !life || life_is_past(c->lives, life) ||
	       (!life_is_counted(life) && !life_program(life));
}

void space_cache_tell(struct space_cache *c, const struct lives_event *event)
{
	const struct life *life = lives_find(c->lives, event->pid, 0);
	uint64_t id = 0;

	if (event->what == LIVES_EXEC && is_first_exec(c, life))
		id = sampled_exec_id(c, event->pid);
	if (!lives_tell(c->lives, event)) {
		space_cache_lost(c, 0);
		return;
	}
	life = id ? lives_find(c->lives, event->pid, 0) : NULL;
	if (life)
		lives_learn(c->lives, life, life_program(life), id);
}

void space_cache_lost(struct space_cache *c, uint64_t since_ns)
{
	struct space *s, *next;

	c->lost_ns = nsec_boot();
	lives_lost(c->lives, since_ns, c->lost_ns);
	HASH_ITER(hh, c->spaces, s, next)
		s->stale = !s->gone;
}

void space_cache_follow(struct space_cache *c, space_catch_up_fn fn, void *ctx)
{
	c->catch_up = fn;
	c->catch_up_ctx = ctx;
}

void space_cache_since(struct space_cache *c, uint64_t since_ns)
{
	c->since_ns = since_ns;
	c->until_ns = UINT64_MAX;
}

void space_cache_at(struct space_cache *c, uint64_t time_ns)
{
	c->since_ns = c->until_ns = time_ns;
}

void space_cache_invalidate(struct space_cache *c, const struct pid_id *id)
{
	struct space *s, *next;

	HASH_ITER(hh, c->spaces, s, next)
		if (pid_id_equal(&s->key.pid, id))
			space_drop(c, s);
}

void space_cache_sweep(struct space_cache *c)
{
	struct space *s, *next;

	HASH_ITER(hh, c->spaces, s, next) {
		s->stale = !s->gone;
		if (++s->idle > (s->gone ? 1 : SPACE_IDLE_SWEEPS))
			space_drop(c, s);
	}
	images_sweep(c->images);
	lives_sweep(c->lives, nsec_boot());
}

/* ---------------------------------------------------------------- numbers */

size_t space_cache_bytes(const struct space_cache *c)
{
	return HASH_COUNT(c->spaces) * sizeof(struct space) +
	       c->n_mappings * sizeof(struct space_mapping) + images_bytes(c->images) +
	       lives_stats(c->lives).bytes + HASH_OVERHEAD(hh, c->spaces);
}

void space_cache_collect(void *cache, struct metric_sink *sink)
{
	static const struct metric_family_desc pcs = {
		"podprof_resolved_pcs", METRIC_COUNTER,
		"Run-time addresses of samples by what was found there.", NULL};
	static const struct metric_family_desc dropped = {
		"podprof_space_dropped", METRIC_COUNTER,
		"Processes whose mappings were forgotten, by the ceiling that was reached.", NULL};
	static const struct metric_family_desc reads = {
		"podprof_space_reads", METRIC_COUNTER,
		"Times that a process's mappings were read, by where they were had from.", NULL};
	const struct space_cache *c = cache;
	uint64_t drops[DROP_MAX];

	images_collect(c->images, sink);
	metric_by_name(sink, &pcs, "outcome", c->outcomes, outcome_names, SPACE_OUTCOME_MAX);
	memcpy(drops, c->dropped, sizeof(drops));
	drops[DROP_LIVES] = lives_stats(c->lives).n_full;
	metric_by_name(sink, &dropped, "ceiling", drops, drop_names, DROP_MAX);
	metric_by_name(sink, &reads, "source", c->sources, source_names, SOURCE_MAX);
}
