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
 * A process that has gone, or runs another program now, has the mappings that were read last and
 * what the kernel told since; if none were read, what it told from the exec on. Before its first
 * exec it has its parent's. Which of its programs a sample was of is told by its exec id.
 *
 * /proc shows a process as it is now, which may be another program already, or another process.
 * So all events of before the end of a read are looked at before what was read is believed.
 *
 * A place where something else was mapped within the time that a sample may be from has no name.
 *
 * What was mapped there before (same range, offset and inode) keeps its image without opening
 * anything: an image holds its file open, so the inode cannot have become another file's.
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
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "procmap/images.h"
#include "procmap/lives.h"
#include "procmap/maps.h"

/* Address spaces that are kept. One more drops the one that was used least recently, which is
 * counted as "targets" in podprof_space_dropped. */
#define SPACE_TARGETS_MAX     8192
/* Executable mappings of one process. A browser has 300; a JIT that maps each function apart has
 * thousands. Those above it are not kept: the pcs there are counted as unmapped. */
#define SPACE_TARGET_MAPS_MAX 4096
/* Mappings of all processes together (48 bytes each: 12 MiB). Above it the least recently used
 * processes are dropped, counted as "mappings". */
#define SPACE_MAPPINGS_MAX    262144
/* Until the next read for a pc outside; doubled up to the second each time nothing was found. */
#define SPACE_REREAD_NS	      NSEC_PER_SEC
#define SPACE_REREAD_LONG_NS  (64 * NSEC_PER_SEC)
/* The same where the kernel has told of a change: a program that loads a hundred libraries does it
 * within a moment. */
#define SPACE_TOLD_NS	      (100 * NSEC_PER_MSEC)
/* Sweeps that a process stays without being asked for. */
#define SPACE_IDLE_SWEEPS     2
/* What was mapped for less than this when events were lost may have been something else meanwhile.
 */
#define SPACE_YOUNG_NS	      (20 * NSEC_PER_SEC)
/* Ancestors through whom an inherited space is looked for. */
#define SPACE_ANCESTORS	      4

enum space_outcome {
	SPACE_FILE,   /* a file, by its segments */
	SPACE_NO_ELF, /* a file that could not be opened or read as ELF: by file offset */
	SPACE_VDSO,
	SPACE_ANON,
	SPACE_UNMAPPED,	  /* outside all executable mappings */
	SPACE_REPLACED,	  /* something else was mapped there, before or after the sample */
	SPACE_NO_SEGMENT, /* in a mapping, outside what the file says is loaded there */
	SPACE_GONE,	  /* the process had left before its mappings were read */
	SPACE_DENIED,
	SPACE_IMAGES_FULL,
	SPACE_OUTCOME_MAX,
};

static const char *const outcome_names[SPACE_OUTCOME_MAX] = {
	[SPACE_FILE] = "file",	       [SPACE_NO_ELF] = "no_elf",
	[SPACE_VDSO] = "vdso",	       [SPACE_ANON] = "anon",
	[SPACE_UNMAPPED] = "unmapped", [SPACE_NO_SEGMENT] = "no_segment",
	[SPACE_REPLACED] = "replaced", [SPACE_GONE] = "gone",
	[SPACE_DENIED] = "denied",     [SPACE_IMAGES_FULL] = "images_full",
};

enum space_drop { DROP_TARGETS, DROP_MAPPINGS, DROP_LIVES, DROP_MAX };

static const char *const drop_names[DROP_MAX] = {
	[DROP_TARGETS] = "targets",
	[DROP_MAPPINGS] = "mappings",
	[DROP_LIVES] = "lives",
};

/* Where the mappings of a space were had from. */
enum space_source { FROM_PROC, FROM_EVENTS, FROM_NOWHERE, SOURCE_MAX };

static const char *const source_names[SOURCE_MAX] = {
	[FROM_PROC] = "proc",
	[FROM_EVENTS] = "events",
	[FROM_NOWHERE] = "none",
};

/* Compared as bytes. */
struct space_key {
	struct pid_id pid;
	uint64_t start_ns; /* a tick is long enough for a pid to come back */
	uint64_t exec_id;
};

struct space {
	struct space_key key;
	struct space_mapping *items; /* ascending */
	size_t n;
	uint64_t version;
	uint32_t program; /* whose mappings these are, as lives.h counts */
	struct pid_exe exe;
	uint64_t looked_ns;    /* when the mappings were last read or found unchanged */
	uint64_t read_ns;      /* when they were last read */
	uint64_t read_boot_ns; /* the same by the boot clock */
	uint64_t as_now_ns;    /* since when they are as they are, the same clock */
	uint64_t asked_ns;     /* the time of the loss after which it was seen whether they ... */
	bool lasting;	       /* ... have stayed */
	uint64_t told_ns;      /* up to when what was told since is in it */
	uint64_t delay_ns;     /* until they are read again for a pc that is outside */
	uint64_t used;	       /* tick of the last use */
	unsigned int idle;     /* sweeps since then */
	bool stale;	       /* read again before the next use */
	bool doubtful;	       /* something was mapped since the time that samples are from */
	bool unsure;	       /* ... or may have been */
	bool ended;	       /* its leader has */
	bool gone;	       /* nothing to be read any more */
	int outcome;	       /* enum maps_outcome of the last read */
	UT_hash_handle hh;
};

/* A process that was there before we listened, by whose mappings now a child's were told. */
struct parent {
	uint32_t pid;	   /* 0: none */
	uint64_t birth_ns; /* the child's */
};

struct space_cache {
	const struct root *proc;
	uint64_t self; /* 0: not known */
	struct images *images;
	struct lives *lives;
	space_catch_up_fn catch_up;
	void *catch_up_ctx;
	uint64_t since_ns; /* boot clock: samples are not older */
	uint64_t until_ns; /* ... and not younger */
	uint64_t lost_ns;  /* the same: when events were found to be missing last */
	struct parent read_parent;
	struct space *spaces;
	size_t n_mappings;
	uint64_t tick;
	uint64_t version;
	uint64_t outcomes[SPACE_OUTCOME_MAX];
	uint64_t dropped[DROP_MAX];
	uint64_t sources[SOURCE_MAX];
};

DEFINE_CLEANUP(struct space_cache *, space_cache_freep, space_cache_free);

/* ---------------------------------------------------------------- mappings */

static void free_items(struct space_mapping *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		image_unref(items[i].image);
	free(items);
}

static void clear_mappings(struct space_cache *c, struct space *s)
{
	free_items(s->items, s->n);
	c->n_mappings -= s->n;
	s->items = NULL;
	s->n = 0;
}

static void drop_space(struct space_cache *c, struct space *s)
{
	HASH_DEL(c->spaces, s);
	clear_mappings(c, s);
	free(s);
}

static void drop_least_used(struct space_cache *c, const struct space *but, enum space_drop why)
{
	struct space *s, *next, *least = NULL;

	HASH_ITER(hh, c->spaces, s, next)
		if (s != but && (!least || s->used < least->used))
			least = s;
	if (!least)
		return;
	c->dropped[why]++;
	drop_space(c, least);
}

static const struct space_mapping *find_mapping(const struct space *s, uint64_t pc)
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
static struct image *kept_image(const struct space *s, const struct maps_entry *e)
{
	const struct space_mapping *m = find_mapping(s, e->start);

	if (!e->inode || !m || m->start != e->start || m->limit != e->limit ||
	    m->offset != e->offset || m->device != e->device || m->inode != e->inode)
		return NULL;
	return m->image->file ? image_ref(m->image) : NULL;
}

/* How images are found for entries: by a living process, or for one that may have gone. */
struct finder {
	uint64_t via_pid;		      /* 0: by records */
	uint64_t likely[SPACE_ANCESTORS + 2]; /* processes that may have the same root */
};

static int find_image(struct space_cache *c, const struct finder *f, const struct maps_entry *e,
		      struct image **ret)
{
	if (f->via_pid)
		return images_of_entry(c->images, f->via_pid, e, ret);
	return images_of_record(c->images, e, f->likely, array_size(f->likely), ret);
}

/* @items has room for all of @maps; *@n of them are filled, on a failure too. */
static int fill_items(struct space_cache *c, const struct space *s, const struct finder *f,
		      const struct maps *maps, struct space_mapping *items, size_t *n)
{
	for (*n = 0; *n < maps->n && *n < SPACE_TARGET_MAPS_MAX; (*n)++) {
		const struct maps_entry *e = &maps->items[*n];
		struct space_mapping *m = &items[*n];
		int r;

		*m = (struct space_mapping){.start = e->start,
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

static bool same_items(const struct space *s, const struct space_mapping *items, size_t n)
{
	return s->version && n == s->n && (!n || memcmp(items, s->items, n * sizeof(*items)) == 0);
}

/* Takes the items. */
static void replace_items(struct space_cache *c, struct space *s, struct space_mapping *items,
			  size_t n)
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
	while (c->n_mappings > SPACE_MAPPINGS_MAX && HASH_COUNT(c->spaces) > 1)
		drop_least_used(c, s, DROP_MAPPINGS);
}

static int set_mappings(struct space_cache *c, struct space *s, const struct finder *f,
			const struct maps *maps)
{
	size_t room = maps->n < SPACE_TARGET_MAPS_MAX ? maps->n : SPACE_TARGET_MAPS_MAX, n;
	struct space_mapping *items = calloc(room ? room : 1, sizeof(*items));
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

/* ---------------------------------------------------------------- from events */

static const struct life *life_of(const struct space_cache *c, const struct space *s)
{
	return lives_find(c->lives, s->key.pid.pid,
			  s->key.start_ns ? s->key.start_ns
					  : pid_ns_of_ticks(s->key.pid.start_ticks));
}

static bool is_any(const struct space *s)
{
	return s->key.exec_id == SPACE_EXEC_ANY;
}

/* Which of the life's programs has these mappings. False if that is not known (any more). */
static bool program_of(const struct life *life, const struct space *s, uint32_t *ret)
{
	if (!is_any(s))
		return life_program_of(life, s->key.exec_id, ret);
	*ret = s->program;
	return true;
}

/* All that has happened up to now is told. */
static void catch_up(struct space_cache *c)
{
	if (c->catch_up)
		c->catch_up(c->catch_up_ctx);
}

/* A sample of @s has come: if there is only one program that it can be of, that is its exec id.
 */
static void learn(struct space_cache *c, const struct space *s)
{
	const struct life *life = life_of(c, s);
	uint32_t program;

	if (!life || is_any(s) || life_is_learned(life))
		return;
	if (!s->key.exec_id && life_is_counted(life))
		return; /* as any child */
	catch_up(c);
	life = life_of(c, s);
	if (!life || (c->lost_ns > c->since_ns && !life_birth_ns(life)))
		return;
	if (life_ran_only(life, c->since_ns, c->until_ns, &program))
		lives_learn(c->lives, life, program, s->key.exec_id);
	else if (life_birth_ns(life) && s->key.exec_id == 1)
		lives_learn(c->lives, life, 1, 1); /* no maker's are in it */
}

/* Whether the process has executed another program, or has ended and its pid has come back: what
 * /proc has is not of @s. */
static bool was_left(const struct space_cache *c, const struct space *s)
{
	const struct life *life = life_of(c, s);
	const struct life *newest = lives_find(c->lives, s->key.pid.pid, 0);

	if (life && life_is_past(c->lives, life))
		return true;
	if (newest && newest != life && s->key.start_ns)
		return life || life_birth_ns(newest) > s->key.start_ns;
	return life && !is_any(s) && life_is_counted(life) && life_exec_id(life) > s->key.exec_id;
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
	const struct life *life = life_of(c, s);
	struct finder finder = {0};
	int r;

	c->read_parent = (struct parent){0};
	r = life ? program_maps(c, life, program, UINT64_MAX, SPACE_ANCESTORS, &maps) : 1;
	if (r)
		return r < 0 ? r : 1;
	if (c->read_parent.pid) {
		catch_up(c); /* as for any that is read */
		life = life_of(c, s);
		if (!life || !is_untouched(c, &c->read_parent))
			return 1;
	}
	if (!maps.n || (pc && !maps_find(&maps, pc)))
		return 1;
	find_ancestors(c, life, &finder);
	s->program = program;
	return set_mappings(c, s, &finder, &maps);
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

/* Old mappings that new ones do not touch, and the new ones: sorted, as one list. */
static size_t merge(const struct space_mapping *old, size_t n_old, const struct space_mapping *new,
		    size_t n_new, struct space_mapping *ret)
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

/* What was mapped after the last read, of a process that cannot be read any more or was read a
 * moment ago. */
static int add_since(struct space_cache *c, struct space *s, const struct life *life)
{
	const uint64_t since = s->told_ns > s->read_boot_ns ? s->told_ns : s->read_boot_ns;
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct space_mapping *all, *fresh;
	struct finder finder = {0};
	size_t n_fresh, n;
	uint32_t program;
	int r;

	if (!program_of(life, s, &program))
		return 0;
	r = life_add_maps(life, program, since, UINT64_MAX, &maps);
	if (r || !maps.n)
		return r < 0 ? r : 0;
	s->told_ns = life_changed_ns(life);
	finder.likely[SPACE_ANCESTORS + 1] = s->gone ? 0 : s->key.pid.pid;
	find_ancestors(c, life, &finder);
	fresh = calloc(maps.n, sizeof(*fresh));
	all = calloc(maps.n + s->n, sizeof(*all));
	r = fresh && all ? fill_items(c, s, &finder, &maps, fresh, &n_fresh) : -ENOMEM;
	if (r) {
		free_items(fresh, fresh && all ? n_fresh : 0);
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

/* None was read of it. 0; 1 if nothing is known; -errno. */
static int try_events(struct space_cache *c, struct space *s, const struct life *life, uint64_t pc)
{
	uint32_t program;

	if (is_any(s))
		return try_programs(c, s, life_program(life), pc);
	if (!life_program_of(life, s->key.exec_id, &program))
		return 1;
	return try_program(c, s, program, 0);
}

/* The process has gone, or has left this program. */
static int read_events(struct space_cache *c, struct space *s, uint64_t pc)
{
	const struct life *life = life_of(c, s);
	int r = 1;

	s->gone = true;
	if (life && s->version)
		r = add_since(c, s, life);
	else if (life)
		r = try_events(c, s, life, pc);
	if (r < 0)
		return r;
	c->sources[r ? FROM_NOWHERE : FROM_EVENTS]++;
	return 0;
}

/* ---------------------------------------------------------------- from /proc */

/* Where it cannot be read only pcs tell of an exec. */
static bool exe_changed(const struct space_cache *c, const struct space *s)
{
	struct pid_exe exe;

	if (!is_any(s))
		return false;
	exe = pid_read_exe(c->proc, s->key.pid.pid);
	return exe.inode && (exe.inode != s->exe.inode || exe.device != s->exe.device);
}

/* Whether /proc shows the same program is not known: events are missing from the time that its
 * samples are of; or it has executed something then and was there before we listened, or may have
 * been made by one from whose number its own goes on. */
static bool is_uncertain(const struct space_cache *c, const struct space *s)
{
	const struct life *life = life_of(c, s);

	if (is_any(s))
		return false;
	if (life && (!life_is_counted(life) || life_exec_id(life) < s->key.exec_id))
		return true;
	if (life && s->key.exec_id && !life_is_learned(life))
		return true;
	if (life && life_is_past(c->lives, life)) /* a thread may have outlived its leader */
		return c->until_ns > life_exit_ns(life);
	return c->lost_ns > c->since_ns && (!life || !life_birth_ns(life));
}

/* Whether all that was read of it before is still there. */
static bool is_still_there(const struct space_cache *c, const struct space *s)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};

	if (maps_read(c->proc, &s->key.pid, &maps))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct space_mapping *m = &s->items[i];
		const struct maps_entry *e = maps_find(&maps, m->start);

		if (!e || e->start != m->start || e->limit != m->limit || e->offset != m->offset ||
		    e->device != m->device || e->inode != m->inode)
			return false;
	}
	return true;
}

/* Where events are missing: what has been mapped for long and still is was there all the time. */
static bool is_lasting(const struct space_cache *c, struct space *s)
{
	if (!s->n || c->since_ns < s->as_now_ns + SPACE_YOUNG_NS)
		return false;
	if (s->asked_ns != c->lost_ns)
		s->lasting = is_still_there(c, s);
	s->asked_ns = c->lost_ns;
	return s->lasting;
}

/* Reads the mappings. Where that fails, those that are known stay. */
static int read_space(struct space_cache *c, struct space *s, uint64_t now, uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	struct finder finder = {0};
	uint64_t begin_ns = nsec_boot();
	const struct life *life;
	struct pid_exe exe;
	int r;

	s->stale = is_uncertain(c, s);
	if (s->stale)
		return 0;
	s->read_ns = s->looked_ns = now;
	if (was_left(c, s))
		return read_events(c, s, pc);
	exe = is_any(s) ? pid_read_exe(c->proc, s->key.pid.pid) : (struct pid_exe){0};
	r = maps_read(c->proc, &s->key.pid, &maps);
	if (r == -ENOMEM)
		return r;
	catch_up(c);
	s->stale = is_uncertain(c, s);
	if (s->stale)
		return 0;
	/* One that has ended and was not waited for yet is there, but its memory is not. */
	if (!r && (!maps.n || was_left(c, s)))
		r = MAPS_GONE;
	s->outcome = r < 0 ? MAPS_GONE : r;
	if (r == MAPS_GONE)
		return read_events(c, s, pc);
	if (r)
		return 0;
	life = life_of(c, s);
	s->program = life ? life_program(life) : 0;
	s->read_boot_ns = begin_ns; /* what happens while we read may be in it or not */
	s->exe = exe;
	finder.via_pid = maps.via_pid;
	c->sources[FROM_PROC]++;
	return set_mappings(c, s, &finder, &maps);
}

/* The kernel told of mappings after the last read: they are added, and all are read again, though
 * not at each of many that are made one after the other. */
static int add_told(struct space_cache *c, struct space *s, uint64_t now, uint64_t pc)
{
	const struct life *life = life_of(c, s);

	if (!life || life_changed_ns(life) <= s->read_boot_ns || is_uncertain(c, s))
		return 0;
	if (now - s->read_ns >= SPACE_TOLD_NS)
		return read_space(c, s, now, pc);
	return life_changed_ns(life) > s->told_ns ? add_since(c, s, life) : 0;
}

static int look_again(struct space_cache *c, struct space *s, uint64_t now, uint64_t pc)
{
	int r;

	if (s->gone)
		return 0;
	if (s->stale || was_left(c, s))
		return read_space(c, s, now, pc);
	r = add_told(c, s, now, pc);
	if (r || now - s->looked_ns < SPACE_REREAD_NS)
		return r;
	s->looked_ns = now;
	return exe_changed(c, s) ? read_space(c, s, now, pc) : 0;
}

/* ---------------------------------------------------------------- the cache */

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
		drop_least_used(c, NULL, DROP_TARGETS);
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

int space_cache_get(struct space_cache *c, const struct space_who *who, struct space **ret)
{
	struct space_key key = key_of(who);
	struct space *s = find_space(c, &key);
	const struct life *life;
	int r = s ? 0 : add_space(c, who, &s);

	if (r)
		return r;
	s->used = ++c->tick;
	s->idle = 0;
	learn(c, s);
	r = look_again(c, s, nsec_monotonic(), who->pc);
	if (r)
		return r;
	life = life_of(c, s);
	s->ended = life && life_exit_ns(life);
	s->doubtful = !is_any(s) && life && life_changed_ns(life) > c->since_ns;
	s->unsure = is_uncertain(c, s) && !is_lasting(c, s);
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
		drop_space(c, s);
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
	const struct life *life = s->doubtful ? life_of(c, s) : NULL;
	uint32_t program;

	if (s->unsure)
		return true;
	return life && program_of(life, s, &program) &&
	       life_replaced(life, program, pc, c->since_ns);
}

int space_resolve(struct space_cache *c, struct space *s, uint64_t pc, struct frame *ret)
{
	uint64_t now = nsec_monotonic();
	const struct space_mapping *m = find_mapping(s, pc);

	if (!m && !s->gone && now - s->read_ns >= s->delay_ns) {
		int r = read_space(c, s, now, pc);

		if (r)
			return r;
		m = find_mapping(s, pc);
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
		if (s->key.pid.pid == pid && !s->gone && !is_any(s) &&
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
			drop_space(c, s);
}

void space_cache_sweep(struct space_cache *c)
{
	struct space *s, *next;

	HASH_ITER(hh, c->spaces, s, next) {
		s->stale = !s->gone;
		if (++s->idle > (s->gone ? 1 : SPACE_IDLE_SWEEPS))
			drop_space(c, s);
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
