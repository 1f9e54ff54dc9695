// SPDX-License-Identifier: Apache-2.0
/*
 * /proc shows a process as it is now, which may be another program already, or another process.
 * So all events of before the end of a read are looked at before what was read is believed.
 */
#include "procmap/address_space_state.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/root.h"

/* The same where the kernel has told of a change: a program that loads a hundred libraries does it
 * within a moment. */
#define ADDRESS_SPACE_EVENTS_NS (100 * NSEC_PER_MSEC)
/* What was mapped for less than this when events were lost may have been something else meanwhile.
 */
#define ADDRESS_SPACE_YOUNG_NS	(20 * NSEC_PER_SEC)

/* Where it cannot be read only pcs tell of an exec. */
static bool exe_changed(const struct address_space_cache *c, const struct address_space *s)
{
	struct pid_exe exe;

	if (!address_space_is_any(s))
		return false;
	exe = pid_read_exe(c->proc, s->key.pid.pid);
	return exe.inode && (exe.inode != s->exe.inode || exe.device != s->exe.device);
}

/* Whether /proc shows the same program is not known: events are missing from the time that its
 * samples are of; or it has executed something then and was there before we listened, or may have
 * been made by one from whose number its own goes on. */
bool address_space_is_uncertain(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	if (address_space_is_any(s))
		return false;
	if (record &&
	    (!history_record_is_counted(record) || history_record_exec_id(record) < s->key.exec_id))
		return true;
	if (record && s->key.exec_id && !history_record_is_learned(record))
		return true;
	if (record &&
	    history_record_is_past(c->history, record)) /* a thread may have outlived its leader */
		return c->until_ns > history_record_exit_ns(record);
	return c->lost_ns > c->since_ns && (!record || !history_record_birth_ns(record));
}

bool address_space_is_old(const struct address_space_cache *c, const struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	if (!s->version || s->epoch_ns == c->lost_ns)
		return false;
	return !record || !history_record_birth_ns(record); /* of one with a birth all is known */
}

/* Whether all that was read of it before is still there. */
static bool is_still_there(const struct address_space_cache *c, const struct address_space *s)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};

	if (maps_read(c->proc, &s->key.pid, &maps))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct address_space_mapping *m = &s->items[i];
		const struct maps_entry *e = maps_find(&maps, m->start);

		if (!e || e->start != m->start || e->limit != m->limit || e->offset != m->offset ||
		    e->device != m->device || e->inode != m->inode)
			return false;
	}
	return true;
}

bool address_space_is_lasting(const struct address_space_cache *c, struct address_space *s)
{
	if (!s->n || c->since_ns < s->as_now_ns + ADDRESS_SPACE_YOUNG_NS)
		return false;
	if (s->asked_ns != c->lost_ns)
		s->lasting = is_still_there(c, s);
	s->asked_ns = c->lost_ns;
	return s->lasting;
}

int address_space_read(struct address_space_cache *c, struct address_space *s, uint64_t now,
		       uint64_t pc)
{
	_cleanup_(maps_deinit) struct maps maps = {.only_prot = MAPS_X};
	struct finder finder = {0};
	uint64_t begin_ns = nsec_boot();
	const struct history_record *record;
	struct pid_exe exe;
	int r;

	s->stale = address_space_is_uncertain(c, s);
	if (s->stale)
		return 0;
	s->read_ns = s->looked_ns = now;
	if (address_space_was_left(c, s))
		return address_space_read_events(c, s, pc);
	exe = address_space_is_any(s) ? pid_read_exe(c->proc, s->key.pid.pid) : (struct pid_exe){0};
	r = maps_read(c->proc, &s->key.pid, &maps);
	if (r == -ENOMEM)
		return r;
	address_space_catch_up(c);
	s->stale = address_space_is_uncertain(c, s);
	if (s->stale)
		return 0;
	/* One that has ended and was not waited for yet is there, but its memory is not. */
	if (!r && (!maps.n || address_space_was_left(c, s)))
		r = MAPS_GONE;
	s->outcome = r < 0 ? MAPS_GONE : r;
	if (r == MAPS_GONE)
		return address_space_read_events(c, s, pc);
	if (r)
		return 0;
	record = address_space_record(c, s);
	s->program = record ? history_record_program(record) : 0;
	s->epoch_ns = c->lost_ns;
	s->read_boot_ns = begin_ns; /* what happens while we read may be in it or not */
	s->exe = exe;
	finder.via_pid = maps.via_pid;
	c->sources[FROM_PROC]++;
	return address_space_set(c, s, &finder, &maps);
}

/* One that cannot be read any more, but may have threads that live on. */
static int add_to_gone(struct address_space_cache *c, struct address_space *s)
{
	const struct history_record *record = address_space_record(c, s);

	if (!record || !s->version || history_record_changed_ns(record) <= s->events_ns)
		return 0;
	return address_space_add_since(c, s, record);
}

/* The kernel told of mappings after the last read: they are added, and all are read again, though
 * not at each of many that are made one after the other. */
static int add_events(struct address_space_cache *c, struct address_space *s, uint64_t now,
		      uint64_t pc)
{
	const struct history_record *record = address_space_record(c, s);

	if (!record || history_record_changed_ns(record) <= s->read_boot_ns ||
	    address_space_is_uncertain(c, s))
		return 0;
	if (now - s->read_ns >= ADDRESS_SPACE_EVENTS_NS)
		return address_space_read(c, s, now, pc);
	return history_record_changed_ns(record) > s->events_ns
		       ? address_space_add_since(c, s, record)
		       : 0;
}

int address_space_look_again(struct address_space_cache *c, struct address_space *s, uint64_t now,
			     uint64_t pc)
{
	int r;

	if (s->gone)
		return add_to_gone(c, s);
	if (s->stale || address_space_was_left(c, s))
		return address_space_read(c, s, now, pc);
	r = add_events(c, s, now, pc);
	if (r || now - s->looked_ns < ADDRESS_SPACE_REREAD_NS)
		return r;
	s->looked_ns = now;
	return exe_changed(c, s) ? address_space_read(c, s, now, pc) : 0;
}
