// SPDX-License-Identifier: Apache-2.0
/*
 * A process that has gone, or runs another program now, has the mappings that were read last and
 * what the kernel told since; if none were read, what it told from the exec on. Before its first
 * exec it has its parent's. Which of its programs a sample was of is told by its exec id.
 */
#include "procmap/space_state.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "procmap/images.h"

const struct life *space_life(const struct space_cache *c, const struct space *s)
{
	return lives_find(c->lives, s->key.pid.pid,
			  s->key.start_ns ? s->key.start_ns
					  : pid_ns_of_ticks(s->key.pid.start_ticks));
}

bool space_is_any(const struct space *s)
{
	return s->key.exec_id == SPACE_EXEC_ANY;
}

bool space_program(const struct life *life, const struct space *s, uint32_t *ret)
{
	if (!space_is_any(s))
		return life_program_of(life, s->key.exec_id, ret);
	*ret = s->program;
	return true;
}

void space_catch_up(struct space_cache *c)
{
	if (c->catch_up)
		c->catch_up(c->catch_up_ctx);
}

void space_learn(struct space_cache *c, const struct space *s)
{
	const struct life *life = space_life(c, s);
	uint32_t program;

	if (!life || space_is_any(s) || life_is_learned(life))
		return;
	if (!s->key.exec_id && life_is_counted(life))
		return; /* as any child */
	space_catch_up(c);
	life = space_life(c, s);
	if (!life || (c->lost_ns > c->since_ns && !life_birth_ns(life)))
		return;
	if (life_ran_only(life, c->since_ns, c->until_ns, &program))
		lives_learn(c->lives, life, program, s->key.exec_id);
	else if (life_birth_ns(life) && s->key.exec_id == 1)
		lives_learn(c->lives, life, 1, 1); /* no maker's are in it */
}

bool space_was_left(const struct space_cache *c, const struct space *s)
{
	const struct life *life = space_life(c, s);
	const struct life *newest = lives_find(c->lives, s->key.pid.pid, 0);

	if (life && life_is_past(c->lives, life))
		return true;
	if (newest && newest != life && s->key.start_ns)
		return life || life_birth_ns(newest) > s->key.start_ns;
	return life && !space_is_any(s) && life_is_counted(life) &&
	       life_exec_id(life) > s->key.exec_id;
}

/* The processes above @life, whose root is likely to be its own; and, for what was born before we
 * listened and has no parent that we know of, ourselves. */
static void find_ancestors(const struct space_cache *c, const struct life *life, struct finder *f)
{
	uint64_t time = life_birth_ns(life);

	f->likely[SPACE_ANCESTORS] = c->self;
	for (size_t i = 0; i < SPACE_ANCESTORS && life && life_parent(life); i++) {
		f->likely[i] = life_parent(life);
		life = lives_find_at(c->lives, f->likely[i], time);
	}
}

/* What @life had when it was born: its parent's mappings, as they are now if it lives. */
static int inherited_maps(struct space_cache *c, const struct life *life, unsigned int depth,
			  struct maps *maps);

static int program_maps(struct space_cache *c, const struct life *life, uint32_t program,
			uint64_t until_ns, unsigned int depth, struct maps *maps)
{
	int r = 0;

	if (!program && depth)
		r = inherited_maps(c, life, depth - 1, maps);
	return r ? r : life_add_maps(life, program, 0, until_ns, maps);
}

/* Whether nothing has been told of it that would make it another program than its child began
 * with, or give it other mappings. */
static bool is_untouched(const struct space_cache *c, const struct parent *p)
{
	const struct life *life = lives_find(c->lives, p->pid, 0);

	if (c->lost_ns > p->birth_ns)
		return false;
	return !life || (!life_birth_ns(life) && !life_program(life) && !life_exit_ns(life) &&
			 life_changed_ns(life) <= p->birth_ns);
}

/* A living parent's, which is not known by events. Its images are then known. */
static int parent_maps(struct space_cache *c, const struct parent *p, struct maps *maps)
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

static int inherited_maps(struct space_cache *c, const struct life *life, unsigned int depth,
			  struct maps *maps)
{
	const struct parent p = {life_parent(life), life_birth_ns(life)};
	const struct life *parent;
	uint32_t program;

	if (!p.pid)
		return 0;
	parent = lives_find_at(c->lives, p.pid, p.birth_ns);
	if (parent && life_exit_ns(parent) && life_exit_ns(parent) < p.birth_ns)
		return 0; /* another one: of this one nothing is known */
	program = parent ? life_program_at(parent, p.birth_ns) : 0;
	if (parent && (program || life_parent(parent)))
		return program_maps(c, parent, program, p.birth_ns, depth, maps);
	return is_untouched(c, &p) ? parent_maps(c, &p, maps) : 0;
}

/* The mappings of @program, if @pc (0: anything) is in them: 0. 1 if it is not. */
static int try_program(struct space_cache *c, struct space *s, uint32_t program, uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct life *life = space_life(c, s);
	struct finder finder = {0};
	int r;

	c->read_parent = (struct parent){0};
	r = life ? program_maps(c, life, program, UINT64_MAX, SPACE_ANCESTORS, &maps) : 1;
	if (r)
		return r < 0 ? r : 1;
	if (c->read_parent.pid) {
		space_catch_up(c); /* as for any that is read */
		life = space_life(c, s);
		if (!life || !is_untouched(c, &c->read_parent))
			return 1;
	}
	if (!maps.n || (pc && !maps_find(&maps, pc)))
		return 1;
	find_ancestors(c, life, &finder);
	s->program = program;
	s->line_ns = c->lost_ns;
	s->told_ns = life_changed_ns(life);
	return space_set(c, s, &finder, &maps);
}

/* From program @newest down to the one that it was born with. 0, 1 if none has @pc, -errno. */
static int try_programs(struct space_cache *c, struct space *s, uint32_t newest, uint64_t pc)
{
	for (uint32_t program = newest;; program--) {
		int r = try_program(c, s, program, pc);

		if (r <= 0 || !program)
			return r;
	}
}

int space_add_since(struct space_cache *c, struct space *s, const struct life *life)
{
	const uint64_t since = s->told_ns > s->read_boot_ns ? s->told_ns : s->read_boot_ns;
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct finder finder = {0};
	uint32_t program;
	int r;

	if (!space_program(life, s, &program))
		return 0;
	r = life_add_maps(life, program, since, UINT64_MAX, &maps);
	if (r < 0)
		return r;
	s->told_ns = life_changed_ns(life);
	if (!maps.n)
		return 0;
	finder.likely[SPACE_ANCESTORS + 1] = s->gone ? 0 : s->key.pid.pid;
	find_ancestors(c, life, &finder);
	return space_add(c, s, &finder, &maps);
}

/* None was read of it. 0; 1 if nothing is known; -errno. */
static int try_events(struct space_cache *c, struct space *s, const struct life *life, uint64_t pc)
{
	uint32_t program;

	if (space_is_any(s))
		return try_programs(c, s, life_program(life), pc);
	if (!life_program_of(life, s->key.exec_id, &program))
		return 1;
	return try_program(c, s, program, 0);
}

int space_read_told(struct space_cache *c, struct space *s, uint64_t pc)
{
	const struct life *life = space_life(c, s);
	int r = 1;

	s->gone = true;
	if (life && s->version)
		r = space_add_since(c, s, life);
	else if (life)
		r = try_events(c, s, life, pc);
	if (r < 0)
		return r;
	c->sources[r ? FROM_NOWHERE : FROM_EVENTS]++;
	return 0;
}
