// SPDX-License-Identifier: Apache-2.0
/*
 * A record (tgid, start, exec) points at a table of mappings in page space. Records are replaced as
 * a whole, so a walker sees the old or the new record. A table is complete before a record points
 * at it. Its space has a grace period of PROCESSES_QUIET_NS after the last record is gone. So no
 * lock is needed, and no walk reads half of a table.
 *
 * Tables are deduplicated by content: 500 forked workers of a server share a table, and so do all
 * runs of a program without address randomization. A hash finds equal tables. If two different
 * tables have the same hash, the second is not shared.
 *
 * Allocation: a table of up to 256 entries lies within a page, divided into slots of one size: 4,
 * 8, ... 256 entries. A bitmap marks the free slots. A longer table has pages of its own. The pages
 * come from the owner of the space and return there when all their slots are free.
 */
#include "unwindtable/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"

#define ENTRIES	      PROCESS_MAPPINGS_PER_PAGE
/* Slot sizes: 4 << size entries. */
#define SLOT_SIZES    7
#define SLOT_SMALLEST 4u
_Static_assert(SLOT_SMALLEST << (SLOT_SIZES - 1) == ENTRIES, "the largest is a page");
_Static_assert(ENTRIES / SLOT_SMALLEST == 64, "slots of a page have a bit each");

/* Pages for slots: enough for a whole page per record. Reached:
 * `podprof_unwind_processes_total{outcome="no_space"}`. */
#define PROCESSES_SHELVES_MAX PROCESS_RECORDS

/* A page divided into slots. */
struct shelf {
	uint32_t table_page;
	unsigned int size;
	uint64_t free; /* a bit for each slot */
};

struct mapping_table {
	uint64_t hash; /* hash of the content: the key of a shared table */
	uint32_t first;
	uint32_t n;
	uint32_t refs;
	bool shared;
	uint64_t given_up_ns;
	struct mapping_table *next; /* in the queue of released tables */
	UT_hash_handle hh;
};

struct record {
	uint32_t tgid;
	struct process value;
	uint64_t version;
	struct exe_key exe;
	struct mapping_table *table;
	UT_hash_handle hh;
};

struct processes {
	struct processes_kernel kernel;
	struct record *records;
	struct mapping_table *tables;
	struct mapping_table *quiet; /* the oldest first */
	struct mapping_table **quiet_end;
	struct shelf *shelves;
	size_t n_shelves;
	size_t shelves_cap;
	struct processes_stats stats;
};

static const char *const outcome_names[PROCESSES_OUTCOME_MAX] = {
	[PROCESSES_OK] = "ok",
	[PROCESSES_FULL] = "full",
	[PROCESSES_NO_SPACE] = "no_space",
	[PROCESSES_CUT] = "truncated",
};

const char *processes_outcome_name(int outcome)
{
	return outcome >= 0 && outcome < PROCESSES_OUTCOME_MAX ? outcome_names[outcome] : "error";
}

/* ---------------------------------------------------------------- places */

/* A table without entries has a place too: 0 is as good as any other number. */
static unsigned int size_of(size_t n)
{
	unsigned int size = 0;

	while ((SLOT_SMALLEST << size) < n)
		size++;
	return size;
}

static uint64_t all_slots(unsigned int size)
{
	unsigned int n = ENTRIES / (SLOT_SMALLEST << size);

	return n == 64 ? UINT64_MAX : (1ull << n) - 1;
}

static uint32_t whole_pages(size_t n)
{
	return (uint32_t)((n + ENTRIES - 1) / ENTRIES);
}

static int reserve(struct processes *p, uint32_t n, uint32_t *ret)
{
	if (p->kernel.reserve(p->kernel.ctx, n, ret))
		return PROCESSES_NO_SPACE;
	p->stats.n_table_pages += n;
	return 0;
}

static void release(struct processes *p, uint32_t first, uint32_t n)
{
	p->kernel.release(p->kernel.ctx, first, n);
	p->stats.n_table_pages -= n;
}

static struct shelf *find_shelf(struct processes *p, unsigned int size)
{
	for (size_t i = 0; i < p->n_shelves; i++)
		if (p->shelves[i].size == size && p->shelves[i].free)
			return &p->shelves[i];
	return NULL;
}

static int add_shelf(struct processes *p, unsigned int size, struct shelf **ret)
{
	uint32_t table_page;
	int r = vec_grow(&p->shelves, &p->shelves_cap, p->n_shelves + 1, sizeof(*p->shelves),
			 PROCESSES_SHELVES_MAX);

	if (r)
		return r < 0 ? r : PROCESSES_NO_SPACE;
	r = reserve(p, 1, &table_page);
	if (r)
		return r;
	*ret = &p->shelves[p->n_shelves++];
	**ret = (struct shelf){.table_page = table_page, .size = size, .free = all_slots(size)};
	return 0;
}

/* Allocates room for @n entries and returns the number of the first. */
static int take_place(struct processes *p, size_t n, uint32_t *ret)
{
	unsigned int size, slot;
	struct shelf *shelf;
	uint32_t table_page;
	int r;

	if (n > ENTRIES) {
		r = reserve(p, whole_pages(n), &table_page);
		if (!r)
			*ret = table_page * ENTRIES;
		return r;
	}
	size = size_of(n);
	shelf = find_shelf(p, size);
	if (!shelf) {
		r = add_shelf(p, size, &shelf);
		if (r)
			return r;
	}
	slot = (unsigned int)__builtin_ctzll(shelf->free);
	shelf->free &= ~(1ull << slot);
	*ret = shelf->table_page * ENTRIES + slot * (SLOT_SMALLEST << size);
	return 0;
}

static void give_place(struct processes *p, uint32_t first, size_t n)
{
	uint32_t table_page = first / ENTRIES;

	if (n > ENTRIES) {
		release(p, table_page, whole_pages(n));
		return;
	}
	for (size_t i = 0; i < p->n_shelves; i++) {
		struct shelf *shelf = &p->shelves[i];

		if (shelf->table_page != table_page)
			continue;
		shelf->free |= 1ull << (first % ENTRIES / (SLOT_SMALLEST << shelf->size));
		if (shelf->free != all_slots(shelf->size))
			return;
		release(p, table_page, 1);
		*shelf = p->shelves[--p->n_shelves];
		return;
	}
}

/* ---------------------------------------------------------------- tables */

/* The entry with this number. */
static struct process_mapping *entry(const struct processes *p, uint32_t number)
{
	return p->kernel.table_page(p->kernel.ctx, number / ENTRIES) + number % ENTRIES;
}

/* Entries from @number on within one page, at most @n. */
static size_t piece(uint32_t number, size_t n)
{
	size_t in_page = ENTRIES - number % ENTRIES;

	return n < in_page ? n : in_page;
}

static bool equal(const struct processes *p, const struct mapping_table *t,
		  const struct process_mapping *maps, size_t n)
{
	size_t part;

	if (t->n != n)
		return false;
	for (size_t i = 0; i < n; i += part) {
		part = piece(t->first + (uint32_t)i, n - i);
		if (memcmp(entry(p, t->first + (uint32_t)i), maps + i, part * sizeof(*maps)) != 0)
			return false;
	}
	return true;
}

static void write_entries(struct processes *p, const struct mapping_table *t,
			  const struct process_mapping *maps)
{
	size_t part;

	for (size_t i = 0; i < t->n; i += part) {
		part = piece(t->first + (uint32_t)i, t->n - i);
		memcpy(entry(p, t->first + (uint32_t)i), maps + i, part * sizeof(*maps));
	}
	/* Completes the table before the record points at it. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Makes a table for @maps; shared from now on if @hash is free. */
static int new_table(struct processes *p, const struct process_mapping *maps, size_t n,
		     uint64_t hash, bool shared, struct mapping_table **ret)
{
	_cleanup_(freep) struct mapping_table *t = calloc(1, sizeof(*t));
	bool hash_oom = false;
	int r;

	if (!t)
		return -ENOMEM;
	t->hash = hash;
	t->n = (uint32_t)n;
	t->shared = shared;
	r = take_place(p, n, &t->first);
	if (r)
		return r;
	if (shared)
		HASH_ADD(hh, p->tables, hash, sizeof(t->hash), t);
	if (hash_oom) {
		give_place(p, t->first, n);
		return -ENOMEM;
	}
	write_entries(p, t, maps);
	p->stats.n_tables++;
	*ret = take_ptr(t);
	return 0;
}

static int get_table(struct processes *p, const struct process_mapping *maps, size_t n,
		     struct mapping_table **ret)
{
	uint64_t hash = hash_bytes(maps, n * sizeof(*maps));
	struct mapping_table *t;
	int r;

	HASH_FIND(hh, p->tables, &hash, sizeof(hash), t);
	if (t && equal(p, t, maps, n)) {
		p->stats.shared++;
	} else {
		r = new_table(p, maps, n, hash, !t, &t);
		if (r)
			return r;
	}
	t->refs++;
	*ret = t;
	return 0;
}

/* The last reference starts the grace period. */
static void put_table(struct processes *p, struct mapping_table *t, uint64_t now_ns)
{
	if (--t->refs)
		return;
	if (t->shared)
		HASH_DEL(p->tables, t);
	p->stats.n_tables--;
	p->stats.n_quiet++;
	t->given_up_ns = now_ns;
	t->next = NULL;
	*p->quiet_end = t;
	p->quiet_end = &t->next;
}

static void drop_oldest_quiet(struct processes *p)
{
	struct mapping_table *t = p->quiet;

	p->quiet = t->next;
	if (!p->quiet)
		p->quiet_end = &p->quiet;
	give_place(p, t->first, t->n);
	p->stats.n_quiet--;
	free(t);
}

void processes_sweep(struct processes *p, uint64_t now_ns)
{
	while (p->quiet && now_ns - p->quiet->given_up_ns >= PROCESSES_QUIET_NS)
		drop_oldest_quiet(p);
}

/* ---------------------------------------------------------------- records */

static struct record *find_record(const struct processes *p, uint32_t tgid)
{
	struct record *rec;

	HASH_FIND(hh, p->records, &tgid, sizeof(tgid), rec);
	return rec;
}

static int get_record(struct processes *p, uint32_t tgid, struct record **ret)
{
	struct record *rec = find_record(p, tgid);
	bool hash_oom = false;

	if (!rec) {
		if (HASH_COUNT(p->records) >= PROCESS_RECORDS)
			return PROCESSES_FULL;
		rec = calloc(1, sizeof(*rec));
		if (!rec)
			return -ENOMEM;
		rec->tgid = tgid;
		HASH_ADD(hh, p->records, tgid, sizeof(rec->tgid), rec);
		if (hash_oom) {
			free(rec);
			return -ENOMEM;
		}
	}
	*ret = rec;
	return 0;
}

static void drop_record(struct processes *p, struct record *rec, uint64_t now_ns)
{
	if (rec->table) {
		p->kernel.remove(p->kernel.ctx, rec->tgid);
		put_table(p, rec->table, now_ns);
	}
	HASH_DEL(p->records, rec);
	free(rec);
}

static bool is_program(const struct record *rec, const struct processes_id *id)
{
	return rec->table && rec->value.start_boottime_ns == id->start_boottime_ns &&
	       rec->value.exec_id == id->exec_id;
}

/* Points the record at @t and takes the caller's reference. */
static int point(struct processes *p, struct record *rec, const struct processes_id *id,
		 struct mapping_table *t, uint64_t now_ns)
{
	struct process value = {
		.start_boottime_ns = id->start_boottime_ns,
		.exec_id = id->exec_id,
		.first = t->first,
		.n_mappings = (__u16)t->n,
		.runtime = (__u16)id->runtime,
	};
	int r = p->kernel.record(p->kernel.ctx, id->tgid, &value);

	if (r) {
		put_table(p, t, now_ns);
		return r == -E2BIG ? PROCESSES_FULL : r;
	}
	if (id->exe.inode || !is_program(rec, id))
		rec->exe = id->exe;
	if (rec->table)
		put_table(p, rec->table, now_ns);
	rec->table = t;
	rec->value = value;
	rec->version = id->version;
	return 0;
}

static int publish(struct processes *p, const struct processes_id *id,
		   const struct process_mapping *maps, size_t n, uint64_t now_ns)
{
	struct mapping_table *t;
	struct record *rec;
	int r = get_record(p, id->tgid, &rec);

	if (r)
		return r;
	r = get_table(p, maps, n, &t);
	if (!r)
		r = point(p, rec, id, t, now_ns);
	if (r && !rec->table)
		drop_record(p, rec, now_ns);
	return r;
}

int processes_publish(struct processes *p, const struct processes_id *id,
		      const struct process_mapping *maps, size_t n, uint64_t now_ns)
{
	const size_t most = (size_t)PROCESS_PAGES_MAX * ENTRIES;
	int r;

	processes_sweep(p, now_ns);
	r = publish(p, id, maps, n < most ? n : most, now_ns);
	if (!r && n > most)
		r = PROCESSES_CUT;
	if (r >= 0)
		p->stats.outcomes[r]++;
	return r;
}

bool processes_set_runtime(struct processes *p, uint32_t tgid, uint32_t runtime)
{
	struct record *rec = find_record(p, tgid);
	struct process value;

	if (!rec)
		return false;
	value = rec->value;
	value.runtime = (__u16)runtime;
	if (p->kernel.record(p->kernel.ctx, tgid, &value))
		return false;
	rec->value = value;
	return true;
}

void processes_withdraw(struct processes *p, uint32_t tgid, uint64_t now_ns)
{
	struct record *rec = find_record(p, tgid);

	if (rec)
		drop_record(p, rec, now_ns);
}

static struct processes_id id_of(const struct record *rec)
{
	return (struct processes_id){
		.tgid = rec->tgid,
		.runtime = rec->value.runtime,
		.start_boottime_ns = rec->value.start_boottime_ns,
		.exec_id = rec->value.exec_id,
		.version = rec->version,
		.exe = rec->exe,
	};
}

bool processes_find(const struct processes *p, uint32_t tgid, struct processes_id *ret)
{
	const struct record *rec = find_record(p, tgid);

	if (rec)
		*ret = id_of(rec);
	return rec;
}

void processes_for_each(struct processes *p, void (*fn)(void *ctx, const struct processes_id *id),
			void *ctx)
{
	struct record *rec, *next;

	HASH_ITER(hh, p->records, rec, next) {
		struct processes_id id = id_of(rec);

		fn(ctx, &id);
	}
}

static void mark_table(const struct processes *p, const struct mapping_table *t, bool *used,
		       size_t n)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t exe = entry(p, t->first + i)->exe;

		if (exe < n)
			used[exe] = true;
	}
}

void processes_mark(const struct processes *p, bool *used, size_t n)
{
	for (const struct record *rec = p->records; rec; rec = rec->hh.next)
		if (rec->table)
			mark_table(p, rec->table, used, n);
	for (const struct mapping_table *t = p->quiet; t; t = t->next)
		mark_table(p, t, used, n);
}

struct processes_stats processes_stats(const struct processes *p)
{
	struct processes_stats stats = p->stats;

	stats.n_records = HASH_COUNT(p->records);
	return stats;
}

/* ---------------------------------------------------------------- life */

int processes_new(const struct processes_kernel *kernel, struct processes **ret)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->kernel = *kernel;
	p->quiet_end = &p->quiet;
	*ret = p;
	return 0;
}

void processes_free(struct processes *p)
{
	struct record *rec, *next;

	if (!p)
		return;
	HASH_ITER(hh, p->records, rec, next)
		drop_record(p, rec, 0);
	while (p->quiet)
		drop_oldest_quiet(p);
	free(p->shelves);
	free(p);
}
