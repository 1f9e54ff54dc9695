// SPDX-License-Identifier: Apache-2.0
/*
 * podprof reads the mappings from /proc at the first sample of a process, and again for one of
 * these reasons:
 *
 *	- An event reports a newer file mapping (process_history.h).
 *	- A pc is outside all mappings. This is also the fallback without events: the process has
 *	  loaded or moved a library.
 *	- A walk found no caller, and an event reports memory without a file that no mapping has.
 *	  V8's built-in functions find their caller by the frame pointer, and the walk drops a
 *	  caller outside all mappings. So the pc of a JIT compiler's function is not in the sample.
 *	- A sample belongs to another program of the process, after an exec. Callers without an exec
 *	  id (ADDRESS_SPACE_EXEC_ANY) compare /proc/PID/exe. Programs linked to a fixed address all
 *	  have their code there, so a pc need not be outside.
 *	- There was no room for one of its files, and there is room now.
 *	- A window has passed (address_space_cache_sweep()): a mapping may have replaced another.
 *	  Events tell of that, too, except of memory that moved (mremap()). So while all events
 *	  arrive, more and more windows pass between two reads. Events about code in memory are too
 *	  many for a read each; the end of a window looks whether one covers a file's mapping.
 *
 * Each read without a change doubles the delay before the next read for such a reason.
 *
 * After a loss of events, mappings give names again if two lists show them, one before the sample
 * and one after the sample or the loss. An ended process cannot be read again, and its last
 * mappings are unknown.
 *
 * /proc shows the present state of a process, perhaps another program or another process. So
 * podprof processes all events before the end of a read before it believes the result.
 */
#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/file_id.h"
#include "base/nsec.h"
#include "procmap/maps.h"
#include "procmap/process_history.h"
#include "procmap/space.h"

/* A re-read of a process's mappings waits for this many times the CPU time of its last read (2 % of
 * a CPU), and for a part of it after a read of any other process of its owner (5 %). A process with
 * 60,000 mappings takes 10 ms a read. */
#define ADDRESS_SPACE_READ_REST	      50
#define ADDRESS_SPACE_READ_REST_OWNER 20
/* Until the next look at the program of a process without exec ids. */
#define ADDRESS_SPACE_REREAD_NS	      NSEC_PER_SEC
/* The longest delay until the next read for a pc outside (ADDRESS_SPACE_SEEK_NS). */
#define ADDRESS_SPACE_SEEK_LONG_NS    (64 * NSEC_PER_SEC)
/* The delay after an event: a program that loads a hundred libraries does so within a moment. */
#define ADDRESS_SPACE_EVENTS_NS	      (100 * NSEC_PER_MSEC)
/* After a loss of events, in a process that replaces mappings: a mapping younger than this may have
 * replaced another one meanwhile. */
#define ADDRESS_SPACE_YOUNG_NS	      (20 * NSEC_PER_SEC)

/* Windows from the first read of a process's mappings to the next one without a reason, and at
 * most; twice as many after each read without a change, one after a change. */
#define ADDRESS_SPACE_SWEEPS	  8
#define ADDRESS_SPACE_SWEEPS_LONG 64

/* Without the right to read the link, only pcs reveal an exec. */
static bool exe_changed(const struct address_space_cache *c, const struct address_space *s)
{
	struct file_id exe;

	if (!space_is_any(s))
		return false;
	exe = pid_read_exe(c->proc, s->key.pid.pid);
	return exe.inode && !file_id_same_inode(&exe, &s->exe);
}

/* Whether /proc may show another program than that of the samples, by the events that are known: an
 * exec at this time by a process older than the event log, or a process that continues the exec
 * number of another process (CLONE_PARENT). */
static bool is_other_program(const struct address_space_cache *c, const struct address_space *s,
			     const struct history_record *record)
{
	if (!history_record_is_counted(record) || history_record_exec_id(record) < s->key.exec_id)
		return true;
	if (s->key.exec_id && !history_record_is_learned(record))
		return true;
	/* a thread may have outlived its leader */
	return history_record_is_past(c->history, record) &&
	       c->until_ns > history_record_exit_ns(record);
}

/* The same, or because events from the time of the samples are missing. */
static bool is_uncertain(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = space_record(c, s);

	if (space_is_any(s))
		return false;
	if (record && is_other_program(c, s, record))
		return true;
	if (record && history_record_is_past(c->history, record))
		return false;
	return c->lost_ns > c->since_ns && (!record || !history_record_birth_ns(record));
}

/* Whether the mappings predate a loss of events: later mappings are unknown. */
static bool is_old(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = space_record(c, s);

	if (!s->version || s->epoch_ns == c->lost_ns)
		return false;
	return !record ||
	       !history_record_birth_ns(record); /* a process with a known birth is complete */
}

/* Whether all mappings of the last read are in @maps. */
static bool is_still_there(const struct address_space *s, const struct maps *maps)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct address_space_mapping *m = &s->items[i];
		const struct maps_entry *e = maps_find(maps, m->start);

		if (!e || e->start != m->start || e->limit != m->limit || e->offset != m->offset ||
		    e->device != m->device || e->inode != m->inode)
			return false;
	}
	return true;
}

/* After a read of that cost. */
static void rest(struct address_space *s, uint64_t cpu_ns)
{
	uint64_t now_ns = nsec_monotonic();

	s->rest_ns = now_ns + ADDRESS_SPACE_READ_REST * cpu_ns;
	s->owner->rest_ns = now_ns + ADDRESS_SPACE_READ_REST_OWNER * cpu_ns;
}

static bool is_resting(const struct address_space *s, uint64_t now)
{
	return now < s->rest_ns || now < s->owner->rest_ns;
}

/* The mappings of @s are those of @maps. */
static void note_listed(struct address_space *s, const struct maps *maps)
{
	s->seen_ns = maps->begin_ns;
	if (!s->listed_ns)
		s->listed_ns = nsec_boot();
}

/* Before the mappings of @maps replace those of @s. */
static void plan_next_list(struct address_space *s, const struct maps *maps)
{
	if (!s->wait)
		s->wait = ADDRESS_SPACE_SWEEPS;
	else if (maps->n != s->n || !is_still_there(s, maps))
		s->wait = 1;
	else if (s->wait < ADDRESS_SPACE_SWEEPS_LONG)
		s->wait *= 2;
	s->sweeps = 0;
}

/* Whether memory without a file was mapped in the place of a file since the last list. */
static bool is_file_covered(const struct address_space_cache *c, const struct address_space *s)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct history_record *record = space_record(c, s);
	uint32_t program;
	size_t k = 0;

	if (!record || !space_program(record, s, &program) ||
	    history_record_add_maps(record, program, s->read_boot_ns, UINT64_MAX, &maps))
		return false;
	for (size_t i = 0; i < maps.n; i++) {
		const struct maps_entry *e = &maps.items[i];

		while (k < s->n && s->items[k].limit <= e->start)
			k++;
		for (size_t j = k; !e->inode && j < s->n && s->items[j].start < e->limit; j++)
			if (s->items[j].inode)
				return true;
	}
	return false;
}

bool space_is_due(const struct address_space_cache *c, struct address_space *s)
{
	if (!c->catch_up || space_is_any(s) || s->epoch_ns != c->lost_ns)
		return true;
	return ++s->sweeps >= s->wait || space_has_room(c, s) || is_file_covered(c, s);
}

static int set_list(struct address_space_cache *c, struct address_space *s,
		    const struct images_way *way, const struct maps *maps, const struct maps *news)
{
	int r;

	plan_next_list(s, maps);
	r = space_set_mappings(c, s, way, maps, news);
	if (!r) {
		space_queue_ahead(c, s);
		note_listed(s, maps);
	}
	c->sources[FROM_PROC]++;
	return r;
}

/* Takes a list that was read while events are missing: a list as before proves the mappings,
 * another one is the first of two. */
static void take_unsure_list(struct address_space_cache *c, struct address_space *s,
			     const struct maps *maps)
{
	const struct history_record *record = space_record(c, s);
	struct images_way way = {.via_pid = maps->via_pid, .inode = maps->inode};

	rest(s, maps->cpu_ns);
	if (s->n && maps->n <= s->n && is_still_there(s, maps)) {
		note_listed(s, maps);
	} else if (!record || !is_other_program(c, s, record)) {
		way.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->key.pid.pid;
		(void)set_list(c, s, &way, maps, NULL); /* without memory, with the next sample */
	}
}

static void read_despite_loss(struct address_space_cache *c, struct address_space *s)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const bool is_read = pid_id_equal(&c->read_of, &s->key.pid);
	int r;

	if (!is_read && is_resting(s, nsec_monotonic()))
		return;
	r = space_get_list(c, s, &s->key.pid, &maps);
	if (!r)
		take_unsure_list(c, s, &maps);
	else if (r != -EINPROGRESS)
		s->list_refused_ns = nsec_monotonic() + ADDRESS_SPACE_REREAD_NS;
}

/* Whether the mappings were there at the time of the samples although events are missing: they were
 * known before, with the same exec id, and a list after the samples, or after the loss, shows the
 * mappings. In a process that maps a file in the place of another file, this takes longer. */
static bool is_proven(struct address_space_cache *c, struct address_space *s)
{
	const uint64_t need_ns = c->lost_ns < c->until_ns ? c->lost_ns : c->until_ns;
	const struct history_record *record;

	if (s->seen_ns < need_ns && !s->gone)
		read_despite_loss(c, s);
	record = space_record(c, s);
	return s->n && s->listed_ns && s->seen_ns >= need_ns &&
	       c->since_ns >= s->listed_ns + (s->replaces ? ADDRESS_SPACE_YOUNG_NS : 0) &&
	       !(record && history_record_changed_ns(record) > s->seen_ns);
}

static int read_list(struct address_space_cache *c, struct address_space *s, uint64_t now,
		     uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {0}, news = {0};
	struct images_way way = {0};
	const struct history_record *record;
	struct file_id exe;
	int r;

	s->stale = is_uncertain(c, s);
	if (s->stale)
		return 0;
	s->read_ns = s->looked_ns = now;
	if (space_was_left(c, s))
		return space_read_events(c, s, pc);
	exe = space_is_any(s) ? pid_read_exe(c->proc, s->key.pid.pid) : (struct file_id){0};
	r = space_get_list(c, s, &s->key.pid, &maps);
	if (r == -ENOMEM || r == -EINPROGRESS)
		return r;
	s->stale = r == MAPS_SLOW;
	if (s->stale) {
		s->outcome = r;
		return 0;
	}
	space_catch_up(c);
	s->stale = is_uncertain(c, s) || (c->lister && maps.begin_ns < c->lost_ns);
	if (s->stale) {
		if (!r)
			take_unsure_list(c, s, &maps);
		return 0;
	}
	/* A zombie has a directory in /proc but no memory. */
	if (!r && (!maps.n || space_was_left(c, s)))
		r = MAPS_GONE;
	s->outcome = r < 0 ? MAPS_GONE : r;
	if (r == MAPS_GONE)
		return space_read_events(c, s, pc);
	if (r)
		return 0;
	record = space_record(c, s);
	if (record && s->n && history_record_changed_ns(record) > s->events_ns)
		r = space_get_news(s, record, &news);
	if (r < 0)
		return r;
	s->program = record ? history_record_program(record) : 0;
	s->epoch_ns = c->lost_ns;
	/* events during the read may or may not be included */
	s->read_boot_ns = maps.begin_ns;
	s->events_ns = 0;
	s->exe = exe;
	/* the process may have ended when its files are opened */
	if (record)
		space_find_ancestors(c, record, &way);
	way.likely[ADDRESS_SPACE_ANCESTORS + 1] = s->key.pid.pid;
	way.via_pid = maps.via_pid;
	way.inode = maps.inode;
	rest(s, maps.cpu_ns);
	return set_list(c, s, &way, &maps, &news);
}

/* Reads the mappings. On a failure, and until the list is there, the known mappings stay. @now:
 * monotonic. */
static int read_mappings(struct address_space_cache *c, struct address_space *s, uint64_t now,
			 uint64_t pc)
{
	int r = read_list(c, s, now, pc);

	return r == -EINPROGRESS ? 0 : r;
}

/* Adds mappings from events after the last read, and reads all again at a limited rate. */
static int add_events(struct address_space_cache *c, struct address_space *s, uint64_t now,
		      uint64_t pc)
{
	const struct history_record *record = space_record(c, s);
	int r;

	if (!record || history_record_changed_ns(record) <= s->read_boot_ns || is_uncertain(c, s))
		return 0;
	if (now - s->read_ns >= ADDRESS_SPACE_EVENTS_NS && !is_resting(s, now)) {
		r = read_mappings(c, s, now, pc);
		if (r || !space_is_reading(s))
			return r;
		record = space_record(c, s);
	}
	return record && history_record_changed_ns(record) > s->events_ns
		       ? space_add_since(c, s, record)
		       : 0;
}

/* The same where there is reason to. */
static int look_again(struct address_space_cache *c, struct address_space *s, uint64_t now,
		      uint64_t pc)
{
	const struct history_record *record;
	int r;

	if (s->gone) { /* its threads may still run */
		record = space_record(c, s);
		return record && s->version && history_record_changed_ns(record) > s->events_ns
			       ? space_add_since(c, s, record)
			       : 0;
	}
	if (s->stale || space_was_left(c, s))
		return read_mappings(c, s, now, pc);
	r = add_events(c, s, now, pc);
	if (r || now - s->looked_ns < ADDRESS_SPACE_REREAD_NS)
		return r;
	s->looked_ns = now;
	return exe_changed(c, s) ? read_mappings(c, s, now, pc) : 0;
}

/* Decides which mappings are credible, by all events so far. */
static void judge(struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = space_record(c, s);

	if (record)
		s->ended = history_record_exit_ns(record);
	s->doubtful = !space_is_any(s) && record && history_record_changed_ns(record) > c->since_ns;
	s->unsure = (is_uncertain(c, s) || is_old(c, s)) && !is_proven(c, s);
}

int space_refresh(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	int r;

	space_learn(c, s);
	space_find_beginning(c, s);
	r = look_again(c, s, nsec_monotonic(), pc);
	if (r)
		return r;
	judge(c, s);
	return 0;
}

/* The delay before the next read for a pc outside all mappings, after a read for @pc. */
static void adjust_delay(struct address_space *s, uint64_t pc)
{
	s->delay_ns = space_find(s, pc) ? ADDRESS_SPACE_SEEK_NS : 2 * s->delay_ns;
	if (s->delay_ns > ADDRESS_SPACE_SEEK_LONG_NS)
		s->delay_ns = ADDRESS_SPACE_SEEK_LONG_NS;
}

int space_seek(struct address_space_cache *c, struct address_space *s, uint64_t pc)
{
	uint64_t now = nsec_monotonic();
	int r;

	if (s->gone || space_is_reading(s) || now - s->read_ns < s->delay_ns || is_resting(s, now))
		return 0;
	r = read_mappings(c, s, now, pc);
	if (r)
		return r;
	judge(c, s);
	if (space_is_reading(s))
		s->sought_pc = pc;
	else
		adjust_delay(s, pc);
	return 0;
}

int space_seek_memory(struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = space_record(c, s);
	struct history_memory memory;

	if (!record || !s->version)
		return 0;
	memory = history_record_memory(record);
	if (memory.time_ns <= s->read_boot_ns)
		return 0;
	/* a JIT compiler's memory grows at either end */
	if (!space_find(s, memory.start))
		return space_seek(c, s, memory.start);
	return space_find(s, memory.limit - 1) ? 0 : space_seek(c, s, memory.limit - 1);
}

void space_use_list(struct address_space_cache *c, struct address_space *s, struct open_list *list)
{
	const uint64_t since_ns = c->since_ns, until_ns = c->until_ns;

	c->since_ns = s->list_since_ns;
	c->until_ns = UINT64_MAX;
	c->read_of = list->of;
	c->read = list->maps;
	c->read_outcome = list->outcome;
	list->maps = (struct maps){0};
	space_end_list(c, s);
	space_catch_up(c);
	/* without memory all is as before, and the next sample repeats it */
	if (s->gone)
		(void)space_read_events(c, s, 0);
	else
		(void)read_mappings(c, s, nsec_monotonic(), 0);
	judge(c, s);
	maps_deinit(&c->read);
	c->read_of = (struct pid_id){0};
	c->since_ns = since_ns;
	c->until_ns = until_ns;
	if (s->sought_pc)
		adjust_delay(s, s->sought_pc);
	s->sought_pc = 0;
}
