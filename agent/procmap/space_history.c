// SPDX-License-Identifier: Apache-2.0
/*
 * The mappings that events tell of (process_history.h), and the program that a sample belongs to.
 *
 * An ended process, or a program that has been replaced, keeps the mappings of the last read plus
 * later events. Without a read, the mappings come from the events since the exec. Before the first
 * exec a process has the mappings of the parent. The exec id selects the program of a sample.
 */
#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "procmap/images.h"
#include "procmap/maps.h"
#include "procmap/process_history.h"
#include "procmap/space.h"

const struct history_record *space_record(const struct address_space_cache *c,
					  const struct address_space *s)
{
	return process_history_find(c->history, s->key.pid.pid,
				    s->key.start_ns ? s->key.start_ns
						    : pid_ns_of_ticks(s->key.pid.start_ticks));
}

bool space_program(const struct history_record *record, const struct address_space *s,
		   uint32_t *ret)
{
	if (!space_is_any(s))
		return history_record_program_of(record, s->key.exec_id, ret);
	*ret = s->program;
	return true;
}

void space_find_beginning(struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = s->began_ns ? NULL : space_record(c, s);
	uint32_t program;

	if (record && !space_is_any(s) && space_program(record, s, &program))
		s->began_ns = history_record_exec_ns(record, program);
}

void space_catch_up(struct address_space_cache *c)
{
	if (c->catch_up)
		c->catch_up(c->catch_up_ctx);
}

void space_learn(struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = space_record(c, s);
	uint32_t program;

	if (!record || space_is_any(s) || history_record_is_learned(record))
		return;
	if (!s->key.exec_id && history_record_is_counted(record))
		return; /* as any child */
	space_catch_up(c);
	record = space_record(c, s);
	if (!record || (c->lost_ns > c->since_ns && !history_record_birth_ns(record)))
		return;
	if (history_record_ran_only(record, c->since_ns, c->until_ns, &program))
		process_history_learn(c->history, record, program, s->key.exec_id, s->key.start_ns);
	else if (history_record_birth_ns(record) && s->key.exec_id == 1)
		process_history_learn(c->history, record, 1, 1,
				      s->key.start_ns); /* the count includes no maker's execs */
}

bool space_was_left(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = space_record(c, s);
	const struct history_record *newest = process_history_find(c->history, s->key.pid.pid, 0);

	if (record && history_record_is_past(c->history, record))
		return true;
	if (newest && newest != record && s->key.start_ns)
		return record || history_record_birth_ns(newest) > s->key.start_ns;
	return record && !space_is_any(s) && history_record_is_counted(record) &&
	       history_record_exec_id(record) > s->key.exec_id;
}

void space_find_ancestors(const struct address_space_cache *c, const struct history_record *record,
			  struct images_way *way)
{
	uint64_t time = history_record_birth_ns(record);

	way->likely[ADDRESS_SPACE_ANCESTORS] = c->self;
	for (size_t i = 0; i < ADDRESS_SPACE_ANCESTORS && record && history_record_parent(record);
	     i++) {
		way->likely[i] = history_record_parent(record);
		record = process_history_find_at(c->history, way->likely[i], time);
	}
}

/* The mappings of @record at its birth: its parent's, in their present state if the parent
 * lives. */
static int inherited_maps(struct address_space_cache *c, struct address_space *s,
			  const struct history_record *record, unsigned int depth,
			  struct maps *maps);

static int program_maps(struct address_space_cache *c, struct address_space *s,
			const struct history_record *record, uint32_t program, uint64_t until_ns,
			unsigned int depth, struct maps *maps)
{
	int r = 0;

	if (!program && depth)
		r = inherited_maps(c, s, record, depth - 1, maps);
	return r ? r : history_record_add_maps(record, program, 0, until_ns, maps);
}

/* Whether no event shows an exec or a changed mapping since the child's birth. */
static bool is_untouched(const struct address_space_cache *c, const struct space_parent *p)
{
	const struct history_record *record = process_history_find(c->history, p->pid, 0);

	if (c->lost_ns > p->birth_ns)
		return false;
	return !record || (!history_record_birth_ns(record) && !history_record_program(record) &&
			   !history_record_exit_ns(record) &&
			   history_record_changed_ns(record) <= p->birth_ns);
}

/* The mappings of a living parent without events. Its images become known now, or are opened
 * through it (images_way.parent). */
static int parent_maps(struct address_space_cache *c, struct address_space *s,
		       const struct space_parent *p, struct maps *maps)
{
	struct images_way way = {0};
	struct image *image;
	struct pid_id id;
	int r = pid_read(c->proc, (pid_t)p->pid, &id);

	/* a parent younger than its child is another process */
	if (r || pid_ns_of_ticks(id.start_ticks) > p->birth_ns)
		return 0;
	c->read_parent = *p;
	r = space_get_list(c, s, &id, maps);
	way.via_pid = maps->via_pid;
	for (size_t i = 0; !r && !c->opener && i < maps->n; i++) {
		r = images_of_entry(c->images, &way, &maps->items[i], &image);
		if (!r)
			image_unref(image);
	}
	return r == -ENOMEM || r == -EINPROGRESS ? r : 0;
}

static int inherited_maps(struct address_space_cache *c, struct address_space *s,
			  const struct history_record *record, unsigned int depth,
			  struct maps *maps)
{
	const struct space_parent p = {history_record_parent(record),
				       history_record_birth_ns(record)};
	const struct history_record *parent;
	uint32_t program;

	if (!p.pid)
		return 0;
	parent = process_history_find_at(c->history, p.pid, p.birth_ns);
	if (parent && history_record_exit_ns(parent) && history_record_exit_ns(parent) < p.birth_ns)
		return 0; /* another process: nothing is known of the real parent */
	program = parent ? history_record_program_at(parent, p.birth_ns) : 0;
	if (parent && (program || history_record_parent(parent)))
		return program_maps(c, s, parent, program, p.birth_ns, depth, maps);
	return is_untouched(c, &p) ? parent_maps(c, s, &p, maps) : 0;
}

/* Tries the mappings of @program: 0 if @pc (0: anything) is in them, 1 if not. */
static int try_program(struct address_space_cache *c, struct address_space *s, uint32_t program,
		       uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct history_record *record = space_record(c, s);
	struct images_way way = {0};
	int r;

	c->read_parent = (struct space_parent){0};
	r = record ? program_maps(c, s, record, program, UINT64_MAX, ADDRESS_SPACE_ANCESTORS, &maps)
		   : 1;
	if (r)
		return r < 0 ? r : 1;
	if (c->read_parent.pid) {
		space_catch_up(c); /* as after any read */
		record = space_record(c, s);
		if (!record || !is_untouched(c, &c->read_parent))
			return 1;
	}
	if (!maps.n || (pc && !maps_find(&maps, pc)))
		return 1;
	space_find_ancestors(c, record, &way);
	way.parent = c->read_parent.pid;
	s->program = program;
	s->epoch_ns = c->lost_ns;
	s->events_ns = history_record_changed_ns(record);
	r = space_set_mappings(c, s, &way, &maps, NULL);
	if (!r)
		space_queue_ahead(c, s);
	return r;
}

/* Tries programs from @newest down to the inherited program. 0, 1 if none has @pc, -errno. */
static int try_programs(struct address_space_cache *c, struct address_space *s, uint32_t newest,
			uint64_t pc)
{
	for (uint32_t program = newest;; program--) {
		int r = try_program(c, s, program, pc);

		if (r <= 0 || !program)
			return r;
	}
}

int space_get_news(const struct address_space *s, const struct history_record *record,
		   struct maps *ret)
{
	const uint64_t since_ns = s->events_ns > s->read_boot_ns ? s->events_ns : s->read_boot_ns;
	uint32_t program;

	if (!space_program(record, s, &program))
		return 1;
	return history_record_add_maps(record, program, since_ns, UINT64_MAX, ret);
}

int space_add_since(struct address_space_cache *c, struct address_space *s,
		    const struct history_record *record)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct images_way way = {0};
	int r = space_get_news(s, record, &maps);

	if (r)
		return r < 0 ? r : 0;
	s->events_ns = history_record_changed_ns(record);
	if (!maps.n)
		return 0;
	way.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->gone ? 0 : s->key.pid.pid;
	space_find_ancestors(c, record, &way);
	r = space_add_mappings(c, s, &way, &maps);
	if (!r)
		space_queue_ahead(c, s);
	return r;
}

int space_read_events(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	const struct history_record *record = space_record(c, s);
	uint32_t program;
	int r = 1;

	s->gone = true;
	if (record && s->version)
		r = space_add_since(c, s, record);
	else if (record && space_is_any(s))
		r = try_programs(c, s, history_record_program(record), pc);
	else if (record && history_record_program_of(record, s->key.exec_id, &program))
		r = try_program(c, s, program, 0);
	if (r < 0)
		return r;
	space_end_list(c, s);
	c->sources[r ? FROM_NOWHERE : FROM_EVENTS]++;
	return 0;
}

/* The last sampled program of a process before its first exec since the event log began, without a
 * loss since. NULL if unknown. */
static const struct address_space *sampled_program(const struct address_space_cache *c,
						   uint32_t pid)
{
	const struct address_space *s, *last = NULL;
	const uint64_t key = pid;
	struct space_pid *of;

	HASH_FIND(hh, c->pids, &key, sizeof(key), of);
	if (!of)
		return NULL;
	TAILQ_FOREACH(s, &of->spaces, in_pid)
	if (!s->gone && !space_is_any(s) && s->read_boot_ns > c->lost_ns && s->key.exec_id &&
	    (!last || s->key.exec_id > last->key.exec_id))
		last = s;
	return last;
}

/* Whether an event is the first known exec of that process. */
static bool is_first_exec(const struct address_space_cache *c, const struct history_record *record)
{
	return !record || history_record_is_past(c->history, record) ||
	       (!history_record_is_counted(record) && !history_record_program(record));
}

void address_space_cache_event(struct address_space_cache *c, const struct process_event *event)
{
	const struct history_record *record = process_history_find(c->history, event->pid, 0);
	const struct address_space *before = NULL;

	if (event->what == PROCESS_EVENT_EXEC && is_first_exec(c, record))
		before = sampled_program(c, event->pid);
	if (!process_history_add(c->history, event)) {
		address_space_cache_lost(c, 0);
		return;
	}
	record = before ? process_history_find(c->history, event->pid, 0) : NULL;
	if (record)
		process_history_learn(c->history, record, history_record_program(record),
				      before->key.exec_id + 1, before->key.start_ns);
}

void address_space_cache_child(struct address_space_cache *c, const struct pid_id *child)
{
	const uint64_t tick_ns = pid_ns_of_ticks(child->start_ticks + 1), now_ns = nsec_boot();

	/* a birth is not before the start, whose tick alone is known */
	if (!process_history_add_child(c->history, (uint32_t)child->pid, (uint32_t)c->self,
				       tick_ns < now_ns ? tick_ns : now_ns))
		address_space_cache_lost(c, 0);
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

void address_space_cache_between(struct address_space_cache *c, uint64_t since_ns,
				 uint64_t until_ns)
{
	c->since_ns = since_ns;
	c->until_ns = until_ns;
}
