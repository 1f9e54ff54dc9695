/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLES_H
#define PODPROF_UNWINDTABLE_TABLES_H

/*
 * The unwind tables in the kernel: numbers for executables, a place for each table, and the
 * eviction policy.
 *
 *	tables_exe_get(t, &key, now, &exe)     a process maps that image; its mappings get exe
 *	tables_wanted(t, ...)                  executables that walkers met and that have no table
 *	tables_publish(t, exe, table, now)     a table, compiled and packed on the worker
 *	tables_tick(t, now)                    once a second
 *	tables_exe_put(t, exe, now)            no mapping table has exe any more
 *
 * Not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "unwindtable/page_pool.h"
#include "unwindtable/table.h"

struct tables;

/* Grace period before released memory is written again. A walk takes microseconds, but a virtual
 * CPU may lose the time slice in the middle. */
#define TABLES_QUIET_NS	   1000000000ull
/* Minimum stay of a loaded table, and cooldown of an evicted or refused one. */
#define TABLES_STAY_NS	   (30 * TABLES_QUIET_NS)
/* Tables in the queue for a place; each may have TABLE_BYTES_MAX. Reached: `TABLES_WAITING`: asked
 * for again. */
#define TABLES_WAITING_MAX 16

/* The walkers' maps, mapped as memory (tablemaps.h): TABLE_EXES, TABLE_RULES and TABLE_RULE_RUNS
 * entries, initially zeros. */
struct tables_memory {
	struct table_exe *exes;
	struct table_use *uses;
	struct unwind_rule *rules;
	struct table_rule_run *rule_runs;
	struct page_pool_slabs slabs;
};

/* @budget_bytes: for slabs, rounded down to whole slabs; includes the mapping tables. */
struct tables_opts {
	struct tables_memory memory;
	uint64_t budget_bytes;
};

enum tables_outcome {
	TABLES_OK = 0,
	TABLES_FULL,	/* no number left, or no table with a lower score to evict */
	TABLES_WAITING, /* too many wait already */
	TABLES_UNKNOWN, /* no such executable */
};

/* @opts->memory is borrowed. 0 or -ENOMEM. */
int tables_new(const struct tables_opts *opts, struct tables **ret);
/* No walker may run any more. */
void tables_free(struct tables *t);

/* The memory that the walkers read, for a walker in the agent. */
const struct tables_memory *tables_memory(const struct tables *t);
/* Shared with the mapping tables. */
struct page_pool *tables_page_pool(struct tables *t);

/* Adds a holder of @file's table and returns the executable's number. 0, TABLES_FULL, -ENOMEM. */
int tables_exe_get(struct tables *t, const struct file_id *file, uint64_t now_ns, uint16_t *ret);
/* Removes a holder. Before the last call, no memory of the walkers may refer to the number. The
 * table stays for a grace period, in case the program returns. */
void tables_exe_put(struct tables *t, uint16_t number, uint64_t now_ns);

/**
 * tables_publish() - publish the table of an executable, replacing an old one
 * @table: taken on any result but TABLES_WAITING and TABLES_UNKNOWN
 *
 * A later tick completes the publication if it needs an eviction, or if walkers may still read the
 * old table. If the table needs a new slab, tables.c completes the placing when the slab arrives.
 * Both may still fail (tables_stats.refused).
 *
 * Return: 0: done or to be done; TABLES_FULL, TABLES_WAITING, TABLES_UNKNOWN; -errno.
 */
int tables_publish(struct tables *t, uint16_t number, struct table *table, uint64_t now_ns);
/* Marks an executable without any possible table; it is no longer wanted. */
void tables_absent(struct tables *t, uint16_t number);
/* Reports the slab after PAGE_POOL_LATER (page_pool.h): made, or failed (-errno). Places the
 * waiting tables. */
void tables_slab_made(struct tables *t, int result, uint64_t now_ns);
/* Whether a finished table waits for its place. */
bool tables_placing(const struct tables *t, uint16_t number);
/* Whether the table is missing but may still come: no known reason prevents it. */
bool tables_awaited(const struct tables *t, uint16_t number, uint64_t now_ns);
/* Walkers find a table. */
bool tables_live(const struct tables *t, uint16_t number);
/* Whether the table was evicted or refused lately and is in its cooldown. */
bool tables_cooling_down(const struct tables *t, uint16_t number, uint64_t now_ns);

struct tables_want {
	uint16_t exe;
	uint64_t recent_score;
};

/* Held executables that walkers met without a table, and whose score suffices for a place; highest
 * score first. Returns their number, at most @n. */
size_t tables_wanted(const struct tables *t, uint64_t now_ns, struct tables_want *ret, size_t n);

/* Reads the counters, ends grace periods and places waiting tables. A second call within a second
 * does nothing. */
void tables_tick(struct tables *t, uint64_t now_ns);

struct tables_stats {
	size_t n_exes; /* with a number */
	size_t n_live; /* with a table */
	size_t n_waiting;
	size_t rows;	    /* in live tables */
	size_t table_bytes; /* used bytes of the slabs */
	size_t slab_bytes;
	uint32_t rules, rule_runs; /* in use */
	uint64_t loads, evictions, refused;
	uint64_t rules_lost; /* rules and rule runs without a free number; these are gaps */
	uint64_t failures;   /* the kernel's: no memory for a slab */
};
struct tables_stats tables_stats(const struct tables *t);

#endif
