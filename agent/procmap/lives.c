// SPDX-License-Identifier: Apache-2.0
/*
 * Memory is what this may not take: on a node that forks 200 times a second, 20 seconds are 4,000
 * lives of five mappings. So a mapping is 48 bytes and the file behind it is shared by all that
 * ever mapped it; what long-lived processes map is kept too, since nobody knows which of them will
 * be sampled just before its end, but only their last LIFE_MAPS_MAX mappings.
 *
 * PIDs come back. Lives of one pid are a list, the newest first; a birth ends the one before,
 * should its exit have been lost. A process's start time is shortly before the event that tells of
 * its birth and after every earlier birth with that pid: so it belongs to the first birth after it.
 *
 * Where events were lost all that lived is forgotten, and a line is drawn: nothing of before it is
 * taken any more, since other things of then are missing. A life that begins with something else
 * than a birth is of a process that was there at the line; a process that was born before the line
 * has none of the lives that were born after it, and what an ended life's pid does after the line
 * another one may be doing.
 */
#include "procmap/lives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

/* Lives known at a time, the ended ones included: as many as pids by default. The oldest one goes,
 * counted as "lives". Reached: `podprof_space_dropped_total{ceiling="lives"}`. */
#define LIVES_MAX     32768
/* Mappings of one life; a program with its libraries has 5 to 50. The oldest one goes, counted as
 * "maps". Reached: the oldest is forgotten: unmapped if the process ends before it is read. */
#define LIFE_MAPS_MAX 128
/* Programs of one life whose times are known. A shell that executes has two. */
#define LIFE_PROGRAMS 4

/* A file as the kernel shows it. */
struct file_key {
	uint64_t device;
	uint64_t inode;
	uint64_t hash; /* of the name */
};

struct life_file {
	struct file_key key;
	uint32_t refs;
	uint32_t kind;
	int deleted;
	char *name;
	UT_hash_handle hh;
};

struct life_map {
	uint64_t start;
	uint64_t limit;
	uint64_t off;
	uint64_t time_ns;
	struct life_file *file; /* owns a reference */
	uint32_t program;
	bool replaces; /* something else of the same program, or maybe so */
};

struct life {
	uint32_t pid;
	uint32_t ppid;
	uint64_t birth_ns;
	uint64_t exit_ns; /* of the leader */
	uint64_t changed_ns;
	uint64_t line_ns; /* as it was when this came to be known */
	uint32_t program;
	bool counted;  /* the next is known */
	bool learned;  /* ... because a sample has said it */
	uint64_t base; /* what is added to the numbers of programs it has executed */
	uint64_t exec_ns[LIFE_PROGRAMS]; /* of program i at i % LIFE_PROGRAMS; [0] of birth */
	struct life_map *maps;		 /* in the order of time */
	size_t n_maps;
	size_t maps_cap;
	struct life *older;	   /* of the same pid */
	TAILQ_ENTRY(life) by_age;  /* all */
	TAILQ_ENTRY(life) by_exit; /* those that have ended */
};

TAILQ_HEAD(life_list, life);

struct pid_slot {
	uint32_t pid;
	struct life *newest;
	UT_hash_handle hh;
};

struct lives {
	struct pid_slot *pids;
	struct life_file *files;
	struct life_list all;
	struct life_list ended;
	uint64_t line_ns; /* when events were found to be missing last; 0: never */
	struct lives_stats stats;
};

/* ---------------------------------------------------------------- files */

static uint64_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3ull;
	return hash;
}

static struct life_file *file_new(const char *name, struct maps_entry *e)
{
	struct life_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->name = strview_dup(maps_classify(strview_of(name), e));
	if (!file->name) {
		free(file);
		return NULL;
	}
	file->kind = e->kind;
	file->deleted = e->deleted;
	return file;
}

static void file_free(struct life_file *file)
{
	free(file->name);
	free(file);
}

static struct life_file *file_get(struct lives *lives, const struct lives_event *event)
{
	struct file_key key = {event->map.device, event->map.inode, hash_name(event->name)};
	struct maps_entry e = event->map;
	bool hash_oom = false;
	struct life_file *file;

	HASH_FIND(hh, lives->files, &key, sizeof(key), file);
	if (!file) {
		file = file_new(event->name, &e);
		if (!file)
			return NULL;
		file->key = key;
		HASH_ADD(hh, lives->files, key, sizeof(file->key), file);
		if (hash_oom) {
			file_free(file);
			return NULL;
		}
		lives->stats.bytes += sizeof(*file) + strlen(file->name);
	}
	file->refs++;
	return file;
}

static void file_put(struct lives *lives, struct life_file *file)
{
	if (--file->refs)
		return;
	HASH_DEL(lives->files, file);
	lives->stats.bytes -= sizeof(*file) + strlen(file->name);
	file_free(file);
}

/* ---------------------------------------------------------------- lives */

static struct pid_slot *find_pid(const struct lives *lives, uint32_t pid)
{
	struct pid_slot *slot;

	HASH_FIND(hh, lives->pids, &pid, sizeof(pid), slot);
	return slot;
}

static void drop_map(struct lives *lives, struct life *life, size_t i)
{
	file_put(lives, life->maps[i].file);
	memmove(&life->maps[i], &life->maps[i + 1], (life->n_maps - i - 1) * sizeof(*life->maps));
	life->n_maps--;
}

static void unlink_life(struct lives *lives, struct life *life)
{
	struct pid_slot *slot = find_pid(lives, life->pid);
	struct life **at = &slot->newest;

	while (*at != life)
		at = &(*at)->older;
	*at = life->older;
	if (!slot->newest) {
		HASH_DEL(lives->pids, slot);
		free(slot);
	}
}

static void drop_life(struct lives *lives, struct life *life)
{
	unlink_life(lives, life);
	TAILQ_REMOVE(&lives->all, life, by_age);
	if (life->exit_ns)
		TAILQ_REMOVE(&lives->ended, life, by_exit);
	while (life->n_maps)
		drop_map(lives, life, life->n_maps - 1);
	lives->stats.bytes -= sizeof(*life) + life->maps_cap * sizeof(*life->maps);
	lives->stats.n--;
	free(life->maps);
	free(life);
}

static void end_life(struct lives *lives, struct life *life, uint64_t time_ns)
{
	if (life->exit_ns)
		return;
	life->exit_ns = time_ns;
	TAILQ_INSERT_TAIL(&lives->ended, life, by_exit);
}

static struct pid_slot *get_pid(struct lives *lives, uint32_t pid)
{
	struct pid_slot *slot = find_pid(lives, pid);
	bool hash_oom = false;

	if (slot)
		return slot;
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->pid = pid;
	HASH_ADD(hh, lives->pids, pid, sizeof(slot->pid), slot);
	if (hash_oom) {
		free(slot);
		return NULL;
	}
	return slot;
}

/* False if all live: without one that does, we would take its next event for its first. */
static bool make_room(struct lives *lives)
{
	if (lives->stats.n < LIVES_MAX)
		return true;
	lives->stats.n_full++;
	if (TAILQ_EMPTY(&lives->ended))
		return false;
	drop_life(lives, TAILQ_FIRST(&lives->ended));
	return true;
}

static struct life *add_life(struct lives *lives, uint32_t pid)
{
	struct life *life = make_room(lives) ? calloc(1, sizeof(*life)) : NULL;
	struct pid_slot *slot;

	if (!life)
		return NULL;
	slot = get_pid(lives, pid);
	if (!slot) {
		free(life);
		return NULL;
	}
	life->pid = pid;
	life->line_ns = lives->line_ns;
	life->older = slot->newest;
	slot->newest = life;
	TAILQ_INSERT_TAIL(&lives->all, life, by_age);
	lives->stats.n++;
	lives->stats.bytes += sizeof(*life);
	return life;
}

/* The one that goes on, or one of which nothing is known before now. */
static struct life *get_life(struct lives *lives, uint32_t pid)
{
	struct pid_slot *slot = find_pid(lives, pid);

	if (slot && !life_is_past(lives, slot->newest))
		return slot->newest;
	return add_life(lives, pid);
}

/* ---------------------------------------------------------------- events */

static bool born(struct lives *lives, const struct lives_event *event)
{
	struct life *life = add_life(lives, event->pid);

	if (!life)
		return false;
	if (life->older)
		end_life(lives, life->older, event->time_ns);
	life->ppid = event->ppid;
	life->counted = true;
	life->birth_ns = life->changed_ns = life->exec_ns[0] = event->time_ns;
	return true;
}

/* Mappings of programs whose times are not known any more. */
static void drop_old_programs(struct lives *lives, struct life *life)
{
	for (size_t i = life->n_maps; i-- > 0;)
		if (life->maps[i].program + LIFE_PROGRAMS <= life->program)
			drop_map(lives, life, i);
}

static bool executed(struct lives *lives, const struct lives_event *event)
{
	struct life *life = get_life(lives, event->pid);

	if (!life)
		return false;
	/* A thread that executes ends its leader and takes its place. */
	if (life->exit_ns)
		TAILQ_REMOVE(&lives->ended, life, by_exit);
	life->exit_ns = 0;
	life->program++;
	life->changed_ns = life->exec_ns[life->program % LIFE_PROGRAMS] = event->time_ns;
	drop_old_programs(lives, life);
	return true;
}

/* Memory that is made writable and executable in turn, as compilers at run time do it, is told of
 * each time. What was mapped before in the same way is taken out, so that the last one comes last.
 */
static void drop_same(struct lives *lives, struct life *life, const struct life_map *as)
{
	for (size_t i = life->n_maps; i-- > 0;) {
		struct life_map *m = &life->maps[i];

		if (m->start == as->start && m->limit == as->limit && m->off == as->off &&
		    m->file == as->file && m->program == as->program)
			drop_map(lives, life, i);
	}
}

/* Of a process that was there before we listened it is not known what was there. */
static bool replaces_other(const struct life *life, const struct life_map *as)
{
	if (!life->birth_ns && !life->program && as->file->key.inode)
		return true;
	for (size_t i = 0; i < life->n_maps; i++) {
		const struct life_map *m = &life->maps[i];

		if (m->program == as->program && m->start < as->limit && m->limit > as->start &&
		    (m->file != as->file || m->off - m->start != as->off - as->start))
			return true;
	}
	return false;
}

/* Takes the reference to the file on success. */
static bool add_map(struct lives *lives, struct life *life, const struct life_map *map)
{
	size_t was = life->maps_cap;

	if (life->n_maps >= LIFE_MAPS_MAX) {
		lives->stats.n_maps++;
		drop_map(lives, life, 0);
	}
	if (vec_grow(&life->maps, &life->maps_cap, life->n_maps + 1, sizeof(*life->maps),
		     LIFE_MAPS_MAX))
		return false;
	lives->stats.bytes += (life->maps_cap - was) * sizeof(*life->maps);
	life->maps[life->n_maps++] = *map;
	return true;
}

static bool mapped(struct lives *lives, const struct lives_event *event)
{
	struct life *life = get_life(lives, event->pid);
	struct life_map map;

	if (!life)
		return false;
	if (event->map.inode)
		life->changed_ns = event->time_ns;
	map = (struct life_map){
		.start = event->map.start,
		.limit = event->map.limit,
		.off = event->map.offset,
		.time_ns = event->time_ns,
		.file = file_get(lives, event),
		.program = life->program,
	};
	if (!map.file)
		return false;
	map.replaces = replaces_other(life, &map);
	drop_same(lives, life, &map);
	if (add_map(lives, life, &map))
		return true;
	file_put(lives, map.file);
	return false;
}

/* The others of a group may live on when the leader has ended. What counts here is only that the
 * samples after it are few. */
static bool ended(struct lives *lives, const struct lives_event *event)
{
	struct pid_slot *slot = find_pid(lives, event->pid);

	if (slot && event->tid == event->pid && !life_is_past(lives, slot->newest))
		end_life(lives, slot->newest, event->time_ns);
	return true;
}

bool lives_tell(struct lives *lives, const struct lives_event *event)
{
	bool ok = true;

	if (event->time_ns < lives->line_ns)
		return true;
	switch (event->what) {
	case LIVES_BIRTH:
		ok = born(lives, event);
		break;
	case LIVES_EXEC:
		ok = executed(lives, event);
		break;
	case LIVES_MAP:
		ok = mapped(lives, event);
		break;
	case LIVES_EXIT:
		ok = ended(lives, event);
		break;
	}
	lives->stats.n_memory += !ok;
	return ok;
}

void lives_lost(struct lives *lives, uint64_t since_ns, uint64_t now_ns)
{
	struct life *life, *next;

	lives->line_ns = now_ns;
	for (life = TAILQ_FIRST(&lives->all); life; life = next) {
		next = TAILQ_NEXT(life, by_age);
		if (!life->exit_ns || life->exit_ns >= since_ns)
			drop_life(lives, life);
	}
}

void lives_sweep(struct lives *lives, uint64_t now_ns)
{
	struct life *life;

	while ((life = TAILQ_FIRST(&lives->ended)) && life->exit_ns + LIVES_KEEP_NS < now_ns)
		drop_life(lives, life);
}

/* ---------------------------------------------------------------- questions */

static bool is_birth_of(const struct life *life, uint64_t start_ns)
{
	return life->birth_ns >= start_ns && life->birth_ns - start_ns <= LIVES_BIRTH_NS &&
	       start_ns > life->line_ns;
}

/* At the line, or, where none was drawn, before we listened. */
static bool was_there(const struct life *life, uint64_t start_ns)
{
	return (!life->line_ns || start_ns <= life->line_ns) &&
	       (!life->exit_ns || start_ns <= life->exit_ns);
}

const struct life *lives_find(const struct lives *lives, uint64_t pid, uint64_t start_ns)
{
	const struct pid_slot *slot = pid <= UINT32_MAX ? find_pid(lives, (uint32_t)pid) : NULL;
	const struct life *best = NULL;

	if (!slot || !start_ns)
		return slot ? slot->newest : NULL;
	for (const struct life *life = slot->newest; life; life = life->older)
		if (life->birth_ns ? is_birth_of(life, start_ns) : was_there(life, start_ns))
			best = life;
	return best;
}

const struct life *lives_find_at(const struct lives *lives, uint64_t pid, uint64_t time_ns)
{
	const struct life *life = lives_find(lives, pid, 0);

	while (life && life->birth_ns > time_ns)
		life = life->older;
	return life;
}

uint32_t life_program(const struct life *life)
{
	return life->program;
}

bool life_is_counted(const struct life *life)
{
	return life->counted;
}

/* A child is program 0 under that number, whatever is counted from. */
static uint64_t exec_id_of(const struct life *life, uint32_t program)
{
	return !program && life->birth_ns ? 0 : life->base + program;
}

uint64_t life_exec_id(const struct life *life)
{
	return exec_id_of(life, life->program);
}

bool life_program_of(const struct life *life, uint64_t exec_id, uint32_t *ret)
{
	if (!life->counted)
		return false;
	for (uint32_t i = 0; i < LIFE_PROGRAMS && i <= life->program; i++)
		if (exec_id_of(life, life->program - i) == exec_id) {
			*ret = life->program - i;
			return true;
		}
	return false;
}

/* The list is ours, and so is what is in it. */
void lives_learn(struct lives *lives, const struct life *life, uint32_t program, uint64_t exec_id)
{
	struct life *own = find_pid(lives, life->pid)->newest;

	while (own != life)
		own = own->older;
	if (exec_id < program || (!program && own->birth_ns))
		return;
	own->base = exec_id - program;
	own->counted = true;
	own->learned = exec_id > 0;
}

bool life_is_learned(const struct life *life)
{
	return life->learned;
}

uint64_t life_changed_ns(const struct life *life)
{
	return life->changed_ns;
}

uint64_t life_exit_ns(const struct life *life)
{
	return life->exit_ns;
}

bool life_is_past(const struct lives *lives, const struct life *life)
{
	return life->exit_ns && lives->line_ns > life->line_ns;
}

uint64_t life_birth_ns(const struct life *life)
{
	return life->birth_ns;
}

uint32_t life_parent(const struct life *life)
{
	return life->ppid;
}

uint32_t life_program_at(const struct life *life, uint64_t time_ns)
{
	uint32_t program = life->program;

	for (int i = 1; i < LIFE_PROGRAMS && program; i++, program--)
		if (life->exec_ns[program % LIFE_PROGRAMS] <= time_ns)
			break;
	return program;
}

bool life_ran_only(const struct life *life, uint64_t since_ns, uint64_t until_ns, uint32_t *ret)
{
	*ret = life_program_at(life, since_ns);
	if (*ret && life->exec_ns[*ret % LIFE_PROGRAMS] > since_ns)
		return false; /* another one, before those whose times are known */
	return life_program_at(life, until_ns) == *ret;
}

bool life_replaced(const struct life *life, uint32_t program, uint64_t pc, uint64_t since_ns)
{
	for (size_t i = 0; i < life->n_maps; i++) {
		const struct life_map *m = &life->maps[i];

		if (m->replaces && m->program == program && m->time_ns > since_ns &&
		    pc >= m->start && pc < m->limit)
			return true;
	}
	return false;
}

int life_add_maps(const struct life *life, uint32_t program, uint64_t since_ns, uint64_t until_ns,
		  struct maps *maps)
{
	int r = 0;

	for (size_t i = 0; i < life->n_maps && !r; i++) {
		const struct life_map *m = &life->maps[i];
		struct maps_entry e = {
			.start = m->start,
			.limit = m->limit,
			.offset = m->off,
			.device = m->file->key.device,
			.inode = m->file->key.inode,
			.prot = MAPS_R | MAPS_X,
			.kind = m->file->kind,
			.path = m->file->name,
			.deleted = m->file->deleted,
		};

		if (m->program == program && m->time_ns > since_ns && m->time_ns <= until_ns)
			r = maps_cover(maps, &e);
	}
	return r;
}

struct lives_stats lives_stats(const struct lives *lives)
{
	return lives->stats;
}

/* ---------------------------------------------------------------- life */

int lives_new(struct lives **ret)
{
	struct lives *lives = calloc(1, sizeof(*lives));

	if (!lives)
		return -ENOMEM;
	TAILQ_INIT(&lives->all);
	TAILQ_INIT(&lives->ended);
	*ret = lives;
	return 0;
}

void lives_free(struct lives *lives)
{
	if (!lives)
		return;
	while (!TAILQ_EMPTY(&lives->all))
		drop_life(lives, TAILQ_FIRST(&lives->all));
	free(lives);
}
