// SPDX-License-Identifier: Apache-2.0
/*
 * Memory is the limit: on a node with 200 forks a second, 20 seconds are 4,000 processes with five
 * mappings each. So a mapping has 48 bytes, and all mappings of a file share the file's record.
 * Mappings of long-lived processes are kept too, because any process may be sampled just before its
 * end, but only the last HISTORY_RECORD_MAPS_MAX of each.
 *
 * Pids are reused. The records of one pid are a list, newest first. A birth ends the record before,
 * in case the exit was lost. A process's start time is shortly before the event about its birth and
 * after every earlier birth with that pid. So the start time belongs to the first birth after it,
 * if that birth's record has not been dropped.
 *
 * A loss of events starts a new epoch: the history is discarded, and events of the old epoch are
 * ignored, because they are incomplete. A record that does not begin with a birth belongs to a
 * process older than the epoch. Such a process has none of the records of births within the epoch.
 * If a process ended in the old epoch, its pid may already belong to another process in the new
 * epoch.
 */
#include "procmap/process_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

/* Processes known at a time, the ended ones included: the default number of pids. The oldest is
 * evicted. Reached: `podprof_address_spaces_dropped_total{limit="history"}`. */
#define PROCESS_HISTORY_MAX	32768
/* Mappings of one process; a program with its libraries has 5 to 50. Reached: the oldest is
 * forgotten: unmapped if the process ends before it is read. */
#define HISTORY_RECORD_MAPS_MAX 128
/* Processes of one pid; a pid comes back after all others. Lookups go through them. The oldest is
 * evicted. Reached: `podprof_address_spaces_dropped_total{limit="history"}`. */
#define HISTORY_PID_RECORDS_MAX 16
/* Memory of the records: a file's name may have 4 KiB, and each process maps files with other
 * names. Processes with more than half of the mean lose the older half of their mappings. Reached:
 * `podprof_address_spaces_dropped_total{limit="history_bytes"}`. */
#define HISTORY_BYTES_MAX	((size_t)32 << 20)
/* After that. Each pass over all processes makes room for many further mappings. */
#define HISTORY_BYTES_LEFT	(HISTORY_BYTES_MAX / 8 * 7)
/* Records of an earlier epoch that are freed with an event, and in a sweep: 32,768 with all their
 * mappings take 45 ms. */
#define HISTORY_FREED_EACH	2
#define HISTORY_FREED_SWEEP	256
/* Programs of one process with known times. A shell that executes has two. */
#define HISTORY_RECORD_PROGRAMS 4

/* A file in the kernel's numbers. */
struct file_key {
	uint64_t device;
	uint64_t inode;
	uint64_t hash; /* of the name */
};

struct history_record_file {
	struct file_key key;
	uint32_t refs;
	uint32_t kind;
	int deleted;
	size_t bytes; /* memory */
	char *name;
	UT_hash_handle hh;
};

struct history_record_map {
	uint64_t start;
	uint64_t limit;
	uint64_t off;
	uint64_t time_ns;
	struct history_record_file *file; /* owns a reference */
	uint32_t program;
	bool replaces; /* something else of the same program, or maybe so */
};

struct history_record {
	uint32_t pid;
	uint32_t ppid;
	uint64_t birth_ns;
	uint64_t exit_ns; /* of the leader */
	uint64_t changed_ns;
	struct history_memory memory;
	uint64_t epoch_ns; /* the program at the time when the exec id became known */
	uint32_t program;
	bool counted;	   /* the next is known */
	bool learned;	   /* ... from a sample, or from the caller */
	uint64_t start_ns; /* of the process of that sample; 0: not known */
	uint64_t base;	   /* difference of exec id and program number, for executed programs */
	uint64_t exec_ns[HISTORY_RECORD_PROGRAMS]; /* of program i at i % HISTORY_RECORD_PROGRAMS;
						      [0] of birth */
	struct history_record_map *maps;	   /* in the order of time */
	size_t n_maps;
	size_t maps_cap;
	size_t maps_bytes;		     /* memory of the mappings, each with its file */
	struct history_record *older;	     /* of the same pid */
	TAILQ_ENTRY(history_record) by_age;  /* all */
	TAILQ_ENTRY(history_record) by_exit; /* records of ended processes */
};

TAILQ_HEAD(history_list, history_record);

struct pid_slot {
	uint32_t pid;
	uint64_t dropped_ns; /* birth of the last dropped record */
	struct history_record *newest;
	size_t n;
	UT_hash_handle hh;
};

struct process_history {
	struct pid_slot *pids;
	struct pid_slot *last; /* found by find_pid(); NULL: none */
	struct history_record_file *files;
	struct history_list all;
	struct history_list ended;
	struct history_list doomed; /* of an earlier epoch: no pid's, not counted, not freed yet */
	uint64_t epoch_ns;	    /* when events were found to be missing last; 0: never */
	struct process_history_stats stats;
};

/* ---------------------------------------------------------------- files */

static struct history_record_file *file_new(const char *name, struct maps_entry *e)
{
	struct history_record_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->name = strview_dup(maps_classify(strview_of(name), e));
	if (!file->name) {
		free(file);
		return NULL;
	}
	file->kind = e->kind;
	file->deleted = e->deleted;
	file->bytes = sizeof(*file) + strlen(file->name);
	return file;
}

static void file_free(struct history_record_file *file)
{
	free(file->name);
	free(file);
}

static struct history_record_file *file_get(struct process_history *history,
					    const struct process_event *event)
{
	struct file_key key = {event->map.device, event->map.inode,
			       hash_bytes(event->name, strlen(event->name))};
	struct maps_entry e = event->map;
	bool hash_oom = false;
	struct history_record_file *file;

	HASH_FIND(hh, history->files, &key, sizeof(key), file);
	if (!file) {
		file = file_new(event->name, &e);
		if (!file)
			return NULL;
		file->key = key;
		HASH_ADD(hh, history->files, key, sizeof(file->key), file);
		if (hash_oom) {
			file_free(file);
			return NULL;
		}
		history->stats.bytes += file->bytes;
	}
	file->refs++;
	return file;
}

static void file_put(struct process_history *history, struct history_record_file *file)
{
	if (--file->refs)
		return;
	HASH_DEL(history->files, file);
	history->stats.bytes -= file->bytes;
	file_free(file);
}

/* ---------------------------------------------------------------- lives */

/* The events of a process come one after another: an exec and its mappings. */
static struct pid_slot *find_pid(struct process_history *history, uint32_t pid)
{
	struct pid_slot *slot;

	if (history->last && history->last->pid == pid)
		return history->last;
	HASH_FIND(hh, history->pids, &pid, sizeof(pid), slot);
	if (slot)
		history->last = slot;
	return slot;
}

static size_t map_bytes(const struct history_record_map *map)
{
	return sizeof(*map) + map->file->bytes;
}

/* The mappings from @i on, @n of them. */
static void drop_maps(struct process_history *history, struct history_record *record, size_t i,
		      size_t n)
{
	if (!n)
		return;
	for (size_t k = i; k < i + n; k++) {
		record->maps_bytes -= map_bytes(&record->maps[k]);
		file_put(history, record->maps[k].file);
	}
	memmove(&record->maps[i], &record->maps[i + n],
		(record->n_maps - i - n) * sizeof(*record->maps));
	record->n_maps -= n;
}

static void drop_map(struct process_history *history, struct history_record *record, size_t i)
{
	drop_maps(history, record, i, 1);
}

static void unlink_record(struct process_history *history, struct history_record *record)
{
	struct pid_slot *slot = find_pid(history, record->pid);
	struct history_record **at = &slot->newest;

	while (*at != record)
		at = &(*at)->older;
	*at = record->older;
	slot->n--;
	if (record->birth_ns > slot->dropped_ns)
		slot->dropped_ns = record->birth_ns;
	if (!slot->newest) {
		HASH_DEL(history->pids, slot);
		if (history->last == slot)
			history->last = NULL;
		free(slot);
	}
}

static void remove_record(struct process_history *history, struct history_record *record)
{
	unlink_record(history, record);
	TAILQ_REMOVE(&history->all, record, by_age);
	if (record->exit_ns)
		TAILQ_REMOVE(&history->ended, record, by_exit);
	history->stats.n--;
}

static void free_record(struct process_history *history, struct history_record *record)
{
	drop_maps(history, record, 0, record->n_maps);
	history->stats.bytes -= sizeof(*record) + record->maps_cap * sizeof(*record->maps);
	free(record->maps);
	free(record);
}

static void drop_record(struct process_history *history, struct history_record *record)
{
	remove_record(history, record);
	free_record(history, record);
}

static void free_doomed(struct process_history *history, size_t n)
{
	struct history_record *record;

	for (; n && (record = TAILQ_FIRST(&history->doomed)); n--) {
		TAILQ_REMOVE(&history->doomed, record, by_age);
		free_record(history, record);
	}
}

static void end_record(struct process_history *history, struct history_record *record,
		       uint64_t time_ns)
{
	if (record->exit_ns)
		return;
	record->exit_ns = time_ns;
	TAILQ_INSERT_TAIL(&history->ended, record, by_exit);
}

static struct pid_slot *get_pid(struct process_history *history, uint32_t pid)
{
	struct pid_slot *slot = find_pid(history, pid);
	bool hash_oom = false;

	if (slot)
		return slot;
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->pid = pid;
	HASH_ADD(hh, history->pids, pid, sizeof(slot->pid), slot);
	if (hash_oom) {
		free(slot);
		return NULL;
	}
	return slot;
}

/* False if all processes live. If the record of a living process were dropped, the next event would
 * look like the first event of a new process. */
static bool make_room(struct process_history *history)
{
	if (history->stats.n < PROCESS_HISTORY_MAX)
		return true;
	history->stats.n_full++;
	if (TAILQ_EMPTY(&history->ended))
		return false;
	drop_record(history, TAILQ_FIRST(&history->ended));
	return true;
}

/* The older records of a pid are of ended processes. */
static void limit_pid(struct process_history *history, const struct pid_slot *slot)
{
	struct history_record *oldest = slot->newest;

	if (slot->n <= HISTORY_PID_RECORDS_MAX)
		return;
	while (oldest->older)
		oldest = oldest->older;
	history->stats.n_full++;
	drop_record(history, oldest);
}

static struct history_record *add_record(struct process_history *history, uint32_t pid)
{
	struct history_record *record = make_room(history) ? calloc(1, sizeof(*record)) : NULL;
	struct pid_slot *slot;

	if (!record)
		return NULL;
	slot = get_pid(history, pid);
	if (!slot) {
		free(record);
		return NULL;
	}
	record->pid = pid;
	record->epoch_ns = history->epoch_ns;
	record->older = slot->newest;
	slot->newest = record;
	slot->n++;
	TAILQ_INSERT_TAIL(&history->all, record, by_age);
	history->stats.n++;
	history->stats.bytes += sizeof(*record);
	limit_pid(history, slot);
	return record;
}

/* The record of a running process, or a new one for a process without earlier events. */
static struct history_record *get_record(struct process_history *history, uint32_t pid)
{
	struct pid_slot *slot = find_pid(history, pid);

	if (slot && !history_record_is_past(history, slot->newest))
		return slot->newest;
	return add_record(history, pid);
}

/* ---------------------------------------------------------------- events */

static bool born(struct process_history *history, const struct process_event *event)
{
	struct history_record *record = add_record(history, event->pid);

	if (!record)
		return false;
	if (record->older)
		end_record(history, record->older, event->time_ns);
	record->ppid = event->ppid;
	record->counted = true;
	record->birth_ns = record->changed_ns = record->exec_ns[0] = event->time_ns;
	return true;
}

static bool executed(struct process_history *history, const struct process_event *event)
{
	struct history_record *record = get_record(history, event->pid);

	if (!record)
		return false;
	/* A thread that executes a program ends the leader and becomes the leader. */
	if (record->exit_ns)
		TAILQ_REMOVE(&history->ended, record, by_exit);
	record->exit_ns = 0;
	record->program++;
	record->memory = (struct history_memory){0};
	record->changed_ns = record->exec_ns[record->program % HISTORY_RECORD_PROGRAMS] =
		event->time_ns;
	/* mappings of programs whose times are no longer known */
	for (size_t i = record->n_maps; i-- > 0;)
		if (record->maps[i].program + HISTORY_RECORD_PROGRAMS <= record->program)
			drop_map(history, record, i);
	return true;
}

/* A JIT compiler that makes memory writable and executable in turn causes an event each time. The
 * equal older mapping is removed, so that the newest comes last. */
static void drop_same(struct process_history *history, struct history_record *record,
		      const struct history_record_map *as)
{
	for (size_t i = record->n_maps; i-- > 0;) {
		struct history_record_map *m = &record->maps[i];

		if (m->start == as->start && m->limit == as->limit && m->off == as->off &&
		    m->file == as->file && m->program == as->program)
			drop_map(history, record, i);
	}
}

/* For a process older than the event log, the earlier mappings are unknown. */
static bool replaces_other(const struct history_record *record, const struct history_record_map *as)
{
	if (!record->birth_ns && !record->program && as->file->key.inode)
		return true;
	for (size_t i = 0; i < record->n_maps; i++) {
		const struct history_record_map *m = &record->maps[i];

		if (m->program == as->program && m->start < as->limit && m->limit > as->start &&
		    (m->file != as->file || m->off - m->start != as->off - as->start))
			return true;
	}
	return false;
}

/* Takes the reference to the file on success. */
static bool add_map(struct process_history *history, struct history_record *record,
		    const struct history_record_map *map)
{
	size_t was = record->maps_cap;

	if (record->n_maps >= HISTORY_RECORD_MAPS_MAX) {
		history->stats.n_maps++;
		drop_map(history, record, 0);
	}
	if (vec_grow_tight(&record->maps, &record->maps_cap, record->n_maps + 1,
			   sizeof(*record->maps), HISTORY_RECORD_MAPS_MAX))
		return false;
	history->stats.bytes += (record->maps_cap - was) * sizeof(*record->maps);
	record->maps[record->n_maps++] = *map;
	record->maps_bytes += map_bytes(map);
	return true;
}

/* The older half, and its memory. */
static void halve(struct process_history *history, struct history_record *record)
{
	const size_t n = (record->n_maps + 1) / 2;
	struct history_record_map *maps;

	history->stats.n_maps += n;
	history->stats.n_halved++;
	drop_maps(history, record, 0, n);
	if (record->n_maps) {
		maps = reallocarray(record->maps, record->n_maps, sizeof(*maps));
		if (!maps) /* as large as before */
			return;
	} else {
		free(record->maps);
		maps = NULL;
	}
	history->stats.bytes -= (record->maps_cap - record->n_maps) * sizeof(*maps);
	record->maps = maps;
	record->maps_cap = record->n_maps;
}

/* All processes with more than half of the mean: they have more than half of all mappings' memory,
 * so that a pass drops a share of the mappings. Small processes keep all. False: there are no
 * mappings. */
static bool halve_large(struct process_history *history)
{
	struct history_record *record;
	size_t bytes = 0, n = 0;

	TAILQ_FOREACH(record, &history->all, by_age)
	{
		bytes += record->maps_bytes;
		n += record->n_maps > 0;
	}
	TAILQ_FOREACH(record, &history->all, by_age)
	if (record->n_maps && record->maps_bytes * 2 * n >= bytes)
		halve(history, record);
	return n > 0;
}

static void limit_bytes(struct process_history *history)
{
	if (history->stats.bytes <= HISTORY_BYTES_MAX)
		return;
	while (history->stats.bytes > HISTORY_BYTES_LEFT && !TAILQ_EMPTY(&history->doomed))
		free_doomed(history, 1);
	while (history->stats.bytes > HISTORY_BYTES_LEFT && halve_large(history))
		;
}

static bool mapped(struct process_history *history, const struct process_event *event)
{
	struct history_record *record = get_record(history, event->pid);
	struct history_record_map map;

	if (!record)
		return false;
	if (event->map.inode)
		record->changed_ns = event->time_ns;
	else
		record->memory =
			(struct history_memory){event->map.start, event->map.limit, event->time_ns};
	map = (struct history_record_map){
		.start = event->map.start,
		.limit = event->map.limit,
		.off = event->map.offset,
		.time_ns = event->time_ns,
		.file = file_get(history, event),
		.program = record->program,
	};
	if (!map.file)
		return false;
	map.replaces = replaces_other(record, &map);
	drop_same(history, record, &map);
	if (add_map(history, record, &map))
		return true;
	file_put(history, map.file);
	return false;
}

/* Other threads may outlive the leader. The few samples after its exit do not matter here. */
static bool ended(struct process_history *history, const struct process_event *event)
{
	struct pid_slot *slot = find_pid(history, event->pid);

	if (slot && event->tid == event->pid && !history_record_is_past(history, slot->newest))
		end_record(history, slot->newest, event->time_ns);
	return true;
}

bool process_history_add(struct process_history *history, const struct process_event *event)
{
	bool ok = true;

	free_doomed(history, HISTORY_FREED_EACH);
	if (event->time_ns < history->epoch_ns)
		return true;
	switch (event->what) {
	case PROCESS_EVENT_BIRTH:
		ok = born(history, event);
		break;
	case PROCESS_EVENT_EXEC:
		ok = executed(history, event);
		break;
	case PROCESS_EVENT_MAP:
		ok = mapped(history, event);
		break;
	case PROCESS_EVENT_EXIT:
		ok = ended(history, event);
		break;
	}
	limit_bytes(history);
	history->stats.n_memory += !ok;
	return ok;
}

bool process_history_add_child(struct process_history *history, uint32_t pid, uint32_t ppid,
			       uint64_t birth_ns)
{
	const struct process_event event = {PROCESS_EVENT_BIRTH, pid, pid, ppid, birth_ns, {0}, ""};
	struct pid_slot *slot;

	if (!process_history_add(history, &event))
		return false;
	slot = find_pid(history, pid);
	if (slot && slot->newest->birth_ns == birth_ns)
		slot->newest->learned = true;
	return true;
}

void process_history_lost(struct process_history *history, uint64_t since_ns, uint64_t now_ns)
{
	struct history_record *record, *next;

	history->epoch_ns = now_ns;
	for (record = TAILQ_FIRST(&history->all); record; record = next) {
		next = TAILQ_NEXT(record, by_age);
		if (record->exit_ns && record->exit_ns < since_ns)
			continue;
		remove_record(history, record);
		TAILQ_INSERT_TAIL(&history->doomed, record, by_age);
	}
}

void process_history_sweep(struct process_history *history, uint64_t now_ns)
{
	struct history_record *record;

	while ((record = TAILQ_FIRST(&history->ended)) &&
	       record->exit_ns + PROCESS_HISTORY_KEEP_NS < now_ns)
		drop_record(history, record);
	free_doomed(history, HISTORY_FREED_SWEEP);
}

/* ---------------------------------------------------------------- questions */

static bool is_birth_of(const struct history_record *record, uint64_t start_ns)
{
	return record->birth_ns >= start_ns &&
	       record->birth_ns - start_ns <= PROCESS_HISTORY_BIRTH_NS &&
	       start_ns > record->epoch_ns;
}

/* Whether a record without a birth may be that of the process: at the time of the loss, or before
 * the log. Several processes with this pid may have started before; a sample then tells the
 * process. */
static bool was_there(const struct history_record *record, uint64_t start_ns)
{
	if (record->start_ns)
		return record->start_ns == start_ns;
	return (!record->epoch_ns || start_ns <= record->epoch_ns) &&
	       (!record->exit_ns || start_ns <= record->exit_ns);
}

const struct history_record *process_history_find(struct process_history *history, uint64_t pid,
						  uint64_t start_ns)
{
	const struct pid_slot *slot = pid <= UINT32_MAX ? find_pid(history, (uint32_t)pid) : NULL;
	const struct history_record *best = NULL;

	if (!slot || !start_ns)
		return slot ? slot->newest : NULL;
	for (const struct history_record *record = slot->newest; record; record = record->older)
		if (record->birth_ns ? start_ns > slot->dropped_ns && is_birth_of(record, start_ns)
				     : was_there(record, start_ns))
			best = record;
	return best;
}

const struct history_record *process_history_find_at(struct process_history *history, uint64_t pid,
						     uint64_t time_ns)
{
	const struct history_record *record = process_history_find(history, pid, 0);

	while (record && record->birth_ns > time_ns)
		record = record->older;
	return record;
}

uint32_t history_record_program(const struct history_record *record)
{
	return record->program;
}

bool history_record_is_counted(const struct history_record *record)
{
	return record->counted;
}

/* For any base of the count, a child without an exec is program 0. */
static uint64_t exec_id_of(const struct history_record *record, uint32_t program)
{
	return !program && record->birth_ns ? 0 : record->base + program;
}

uint64_t history_record_exec_id(const struct history_record *record)
{
	return exec_id_of(record, record->program);
}

bool history_record_program_of(const struct history_record *record, uint64_t exec_id, uint32_t *ret)
{
	if (!record->counted)
		return false;
	for (uint32_t i = 0; i < HISTORY_RECORD_PROGRAMS && i <= record->program; i++)
		if (exec_id_of(record, record->program - i) == exec_id) {
			*ret = record->program - i;
			return true;
		}
	return false;
}

/* The list and its records belong to this module. */
void process_history_learn(struct process_history *history, const struct history_record *record,
			   uint32_t program, uint64_t exec_id, uint64_t start_ns)
{
	struct history_record *own = find_pid(history, record->pid)->newest;

	while (own != record)
		own = own->older;
	if (exec_id < program || (!program && own->birth_ns))
		return;
	own->base = exec_id - program;
	own->counted = true;
	own->learned = exec_id > 0;
	own->start_ns = start_ns;
}

bool history_record_is_learned(const struct history_record *record)
{
	return record->learned;
}

uint64_t history_record_changed_ns(const struct history_record *record)
{
	return record->changed_ns;
}

struct history_memory history_record_memory(const struct history_record *record)
{
	return record->memory;
}

uint64_t history_record_exit_ns(const struct history_record *record)
{
	return record->exit_ns;
}

bool history_record_is_past(const struct process_history *history,
			    const struct history_record *record)
{
	return record->exit_ns && history->epoch_ns > record->epoch_ns;
}

uint64_t history_record_birth_ns(const struct history_record *record)
{
	return record->birth_ns;
}

uint32_t history_record_parent(const struct history_record *record)
{
	return record->ppid;
}

uint32_t history_record_program_at(const struct history_record *record, uint64_t time_ns)
{
	uint32_t program = record->program;

	for (int i = 1; i < HISTORY_RECORD_PROGRAMS && program; i++, program--)
		if (record->exec_ns[program % HISTORY_RECORD_PROGRAMS] <= time_ns)
			break;
	return program;
}

uint64_t history_record_exec_ns(const struct history_record *record, uint32_t program)
{
	const bool is_kept = program && program <= record->program &&
			     program + HISTORY_RECORD_PROGRAMS > record->program;

	return is_kept ? record->exec_ns[program % HISTORY_RECORD_PROGRAMS] : 0;
}

bool history_record_ran_only(const struct history_record *record, uint64_t since_ns,
			     uint64_t until_ns, uint32_t *ret)
{
	*ret = history_record_program_at(record, since_ns);
	if (*ret && record->exec_ns[*ret % HISTORY_RECORD_PROGRAMS] > since_ns)
		return false; /* an earlier program, before the known times */
	return history_record_program_at(record, until_ns) == *ret;
}

bool history_record_replaced(const struct history_record *record, uint32_t program, uint64_t pc,
			     uint64_t since_ns)
{
	for (size_t i = 0; i < record->n_maps; i++) {
		const struct history_record_map *m = &record->maps[i];

		if (m->replaces && m->program == program && m->time_ns > since_ns &&
		    pc >= m->start && pc < m->limit)
			return true;
	}
	return false;
}

int history_record_add_maps(const struct history_record *record, uint32_t program,
			    uint64_t since_ns, uint64_t until_ns, struct maps *maps)
{
	int r = 0;

	for (size_t i = 0; i < record->n_maps && !r; i++) {
		const struct history_record_map *m = &record->maps[i];
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

struct process_history_stats process_history_stats(const struct process_history *history)
{
	return history->stats;
}

/* ---------------------------------------------------------------- life */

int process_history_new(struct process_history **ret)
{
	struct process_history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	TAILQ_INIT(&history->all);
	TAILQ_INIT(&history->ended);
	TAILQ_INIT(&history->doomed);
	*ret = history;
	return 0;
}

void process_history_free(struct process_history *history)
{
	if (!history)
		return;
	while (!TAILQ_EMPTY(&history->all))
		drop_record(history, TAILQ_FIRST(&history->all));
	free_doomed(history, SIZE_MAX);
	free(history);
}
