// SPDX-License-Identifier: Apache-2.0
/*
 * A process that has gone, or runs another program now, has the mappings that were read last and
 * what the kernel told since; if none were read, what it told from the exec on. Before its first
 * exec it has its parent's. Which of its programs a sample was of is told by its exec id.
 */
#include "procmap/address_space_state.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "procmap/images.h"

const struct history_record *address_space_record(const struct address_space_cache *c,
						  const struct address_space *s)
{
	return process_history_find(c->history, s->key.pid.pid,
				    s->key.start_ns ? s->key.start_ns
						    : pid_ns_of_ticks(s->key.pid.start_ticks));
}

bool address_space_is_any(const struct address_space *s)
{
	return s->key.exec_id == ADDRESS_SPACE_EXEC_ANY;
}

bool address_space_program(const struct history_record *record, const struct address_space *s,
			   uint32_t *ret)
{
	if (!address_space_is_any(s))
		return history_record_program_of(record, s->key.exec_id, ret);
	*ret = s->program;
	return true;
}

void address_space_catch_up(struct address_space_cache *c)
{
	if (c->catch_up)
		c->catch_up(c->catch_up_ctx);
}

void address_space_learn(struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);
	uint32_t program;

	if (!record || address_space_is_any(s) || history_record_is_learned(record))
		return;
	if (!s->key.exec_id && history_record_is_counted(record))
		return; /* as any child */
	address_space_catch_up(c);
	record = address_space_record(c, s);
	if (!record || (c->lost_ns > c->since_ns && !history_record_birth_ns(record)))
		return;
	if (history_record_ran_only(record, c->since_ns, c->until_ns, &program))
		process_history_learn(c->history, record, program, s->key.exec_id);
	else if (history_record_birth_ns(record) && s->key.exec_id == 1)
		process_history_learn(c->history, record, 1, 1); /* no maker's are in it */
}

bool address_space_was_left(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);
	const struct history_record *newest = process_history_find(c->history, s->key.pid.pid, 0);

	if (record && history_record_is_past(c->history, record))
		return true;
	if (newest && newest != record && s->key.start_ns)
		return record || history_record_birth_ns(newest) > s->key.start_ns;
	return record && !address_space_is_any(s) && history_record_is_counted(record) &&
	       history_record_exec_id(record) > s->key.exec_id;
}

/* The processes above @record, whose root is likely to be its own; and, for what was born before we
 * listened and has no parent that we know of, ourselves. */
static void find_ancestors(const struct address_space_cache *c, const struct history_record *record,
			   struct finder *f)
{
	uint64_t time = history_record_birth_ns(record);

	f->likely[ADDRESS_SPACE_ANCESTORS] = c->self;
	for (size_t i = 0; i < ADDRESS_SPACE_ANCESTORS && record && history_record_parent(record);
	     i++) {
		f->likely[i] = history_record_parent(record);
		record = process_history_find_at(c->history, f->likely[i], time);
	}
}

/* What @record had when it was born: its parent's mappings, as they are now if it lives. */
static int inherited_maps(struct address_space_cache *c, const struct history_record *record,
			  unsigned int depth, struct maps *maps);

static int program_maps(struct address_space_cache *c, const struct history_record *record,
			uint32_t program, uint64_t until_ns, unsigned int depth, struct maps *maps)
{
	int r = 0;

	if (!program && depth)
		r = inherited_maps(c, record, depth - 1, maps);
	return r ? r : history_record_add_maps(record, program, 0, until_ns, maps);
}

/* Whether nothing has been told of it that would make it another program than its child began
 * with, or give it other mappings. */
static bool is_untouched(const struct address_space_cache *c, const struct parent *p)
{
	const struct history_record *record = process_history_find(c->history, p->pid, 0);

	if (c->lost_ns > p->birth_ns)
		return false;
	return !record || (!history_record_birth_ns(record) && !history_record_program(record) &&
			   !history_record_exit_ns(record) &&
			   history_record_changed_ns(record) <= p->birth_ns);
}

/* A living parent's, which is not known by events. Its images are then known. */
static int parent_maps(struct address_space_cache *c, const struct parent *p, struct maps *maps)
{
	struct image *image;
	struct pid_id id;
	int r = pid_read(c->proc, (pid_t)p->pid, &id);

	/* One that is younger than its child is another process. */
	if (r || pid_ns_of_ticks(id.start_ticks) > p->birth_ns)
		return 0;
	c->read_parent = *p;
	maps->only_prot = MAPS_X;
	r = maps_read(c->proc, &id, maps);
	for (size_t i = 0; !r && i < maps->n; i++) {
		r = images_of_entry(c->images, maps->via_pid, &maps->items[i], &image);
		if (!r)
			image_unref(image);
	}
	return r == -ENOMEM ? r : 0;
}

static int inherited_maps(struct address_space_cache *c, const struct history_record *record,
			  unsigned int depth, struct maps *maps)
{
	const struct parent p = {history_record_parent(record), history_record_birth_ns(record)};
	const struct history_record *parent;
	uint32_t program;

	if (!p.pid)
		return 0;
	parent = process_history_find_at(c->history, p.pid, p.birth_ns);
	if (parent && history_record_exit_ns(parent) && history_record_exit_ns(parent) < p.birth_ns)
		return 0; /* another one: of this one nothing is known */
	program = parent ? history_record_program_at(parent, p.birth_ns) : 0;
	if (parent && (program || history_record_parent(parent)))
		return program_maps(c, parent, program, p.birth_ns, depth, maps);
	return is_untouched(c, &p) ? parent_maps(c, &p, maps) : 0;
}

/* The mappings of @program, if @pc (0: anything) is in them: 0. 1 if it is not. */
static int try_program(struct address_space_cache *c, struct address_space *s, uint32_t program,
		       uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct history_record *record = address_space_record(c, s);
	struct finder finder = {0};
	int r;

	c->read_parent = (struct parent){0};
	r = record ? program_maps(c, record, program, UINT64_MAX, ADDRESS_SPACE_ANCESTORS, &maps)
		   : 1;
	if (r)
		return r < 0 ? r : 1;
	if (c->read_parent.pid) {
		address_space_catch_up(c); /* as for any that is read */
		record = address_space_record(c, s);
		if (!record || !is_untouched(c, &c->read_parent))
			return 1;
	}
	if (!maps.n || (pc && !maps_find(&maps, pc)))
		return 1;
	find_ancestors(c, record, &finder);
	s->program = program;
	s->epoch_ns = c->lost_ns;
	s->events_ns = history_record_changed_ns(record);
	return address_space_set(c, s, &finder, &maps);
}

/* From program @newest down to the one that it was born with. 0, 1 if none has @pc, -errno. */
static int try_programs(struct address_space_cache *c, struct address_space *s, uint32_t newest,
			uint64_t pc)
{
	for (uint32_t program = newest;; program--) {
		int r = try_program(c, s, program, pc);

		if (r <= 0 || !program)
			return r;
	}
}

int address_space_add_since(struct address_space_cache *c, struct address_space *s,
			    const struct history_record *record)
{
	const uint64_t since = s->events_ns > s->read_boot_ns ? s->events_ns : s->read_boot_ns;
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct finder finder = {0};
	uint32_t program;
	int r;

	if (!address_space_program(record, s, &program))
		return 0;
	r = history_record_add_maps(record, program, since, UINT64_MAX, &maps);
	if (r < 0)
		return r;
	s->events_ns = history_record_changed_ns(record);
	if (!maps.n)
		return 0;
	finder.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->gone ? 0 : s->key.pid.pid;
	find_ancestors(c, record, &finder);
	return address_space_add(c, s, &finder, &maps);
}

/* None was read of it. 0; 1 if nothing is known; -errno. */
static int try_events(struct address_space_cache *c, struct address_space *s,
		      const struct history_record *record, uint64_t pc)
{
	uint32_t program;

	if (address_space_is_any(s))
		return try_programs(c, s, history_record_program(record), pc);
	if (!history_record_program_of(record, s->key.exec_id, &program))
		return 1;
	return try_program(c, s, program, 0);
}

int address_space_read_events(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	const struct history_record *record = address_space_record(c, s);
	int r = 1;

	s->gone = true;
	if (record && s->version)
		r = address_space_add_since(c, s, record);
	else if (record)
		r = try_events(c, s, record, pc);
	if (r < 0)
		return r;
	c->sources[r ? FROM_NOWHERE : FROM_EVENTS]++;
	return 0;
}
