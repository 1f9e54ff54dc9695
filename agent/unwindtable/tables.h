/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLES_H
#define PODPROF_UNWINDTABLE_TABLES_H

/*
 * The unwind tables that are in the kernel: numbers for executables, a place for each table, which
 * tables are worth it.
 *
 *	tables_exe_get(t, &key, now, &exe)     a process maps that image; its mappings get exe
 *	tables_wanted(t, ...)                  walkers came upon these, and they have no table
 *	tables_publish(t, exe, table, now)     here is one (compiled and packed on the worker)
 *	tables_tick(t, now)                    once a second
 *	tables_exe_put(t, exe, now)            no mapping table has exe any more
 *
 * Not for threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwindtable/page_pool.h"
#include "unwindtable/table.h"

struct tables;

/* What is given up is written again only after so long: a walk takes microseconds, but its virtual
 * CPU may be taken away in the middle. */
#define TABLES_QUIET_NS	   1000000000ull
/* A table that was loaded stays, and one that was evicted or refused is not asked for, at least so
 * long. */
#define TABLES_STAY_NS	   (30 * TABLES_QUIET_NS)
/* Tables that wait for a place that is not free yet; each may have TABLE_BYTES_MAX. Reached:
 * `TABLES_WAITING`: asked for again. */
#define TABLES_WAITING_MAX 16

/* Which image, as whoever knows images tells them apart. Padding must be set. */
struct tables_key {
	uint8_t bytes[32];
};

/* What walkers read, mapped (tablemaps.h); TABLE_EXES, TABLE_RULES and TABLE_RULE_RUNS of them,
 * zeros.
 */
struct tables_memory {
	struct table_exe *exes;
	struct table_use *uses;
	struct unwind_rule *rules;
	struct table_rule_run *rule_runs;
	struct page_pool_slabs slabs;
};

/* @budget_bytes: for slabs, rounded down to whole ones; mapping tables are in it, too. */
struct tables_opts {
	struct tables_memory memory;
	uint64_t budget_bytes;
};

enum tables_outcome {
	TABLES_OK = 0,
	TABLES_FULL,	/* no number, or nothing less important could give its place up */
	TABLES_WAITING, /* too many wait already */
	TABLES_UNKNOWN, /* no such executable */
	TABLES_OUTCOME_MAX,
};

/* @opts->memory is borrowed. 0 or -ENOMEM. */
int tables_new(const struct tables_opts *opts, struct tables **ret);
/* No walker may run any more. */
void tables_free(struct tables *t);

/* What walkers read, for one on this side. */
const struct tables_memory *tables_memory(const struct tables *t);
/* For mapping tables, which live in the same space. */
struct page_pool *tables_page_pool(struct tables *t);

/* The executable's number, one holder more. 0, TABLES_FULL, -ENOMEM. */
int tables_exe_get(struct tables *t, const struct tables_key *key, uint64_t now_ns, uint16_t *ret);
/* One holder less. Nothing that walkers read may have the number when the last one goes. The table
 * stays for a while, in case that the program comes back. */
void tables_exe_put(struct tables *t, uint16_t number, uint64_t now_ns);

/**
 * tables_publish() - the table of an executable, in place of the one it may have
 * @table: taken on any result but TABLES_WAITING and TABLES_UNKNOWN
 *
 * Where something must give up its place first, or the old one may still be read, it happens in a
 * later tick, where a slab must be made first, when it is there; and it may still fail then
 * (tables_stats.refused).
 *
 * Return: 0: done or to be done; TABLES_FULL, TABLES_WAITING, TABLES_UNKNOWN; -errno.
 */
int tables_publish(struct tables *t, uint16_t number, struct table *table, uint64_t now_ns);
/* There is no table for it and never will be: it is not wanted again. */
void tables_absent(struct tables *t, uint16_t number);
/* The slab that was to be made later (page_pool.h) is there, or cannot be made (-errno). Places
 * what waited for it. */
void tables_slab_made(struct tables *t, int result, uint64_t now_ns);
/* One is made, and waits for its place. */
bool tables_placing(const struct tables *t, uint16_t number);
/* There is none now, but one may come: nothing that is known speaks against it. */
bool tables_awaited(const struct tables *t, uint16_t number, uint64_t now_ns);
/* Walkers find a table. */
bool tables_live(const struct tables *t, uint16_t number);
/* It had to give way to others lately: not to be asked for yet. */
bool tables_cooling_down(const struct tables *t, uint16_t number, uint64_t now_ns);

struct tables_want {
	uint16_t exe;
	uint64_t recent_score;
};

/* Held executables that walkers came upon in vain, and whose table would be let in, the most
 * wanted first. Returns how many of at most @n. */
size_t tables_wanted(const struct tables *t, uint64_t now_ns, struct tables_want *ret, size_t n);

/* Read the counters, end what was given up, place what waits. Does nothing if called again within
 * a second. */
void tables_tick(struct tables *t, uint64_t now_ns);

struct tables_stats {
	size_t n_exes; /* with a number */
	size_t n_live; /* with a table */
	size_t n_waiting;
	size_t rows;	    /* in live tables */
	size_t table_bytes; /* of those */
	size_t slab_bytes;
	uint32_t rules, rule_runs; /* in use */
	uint64_t loads, evictions, refused;
	uint64_t rules_lost; /* rules and rule runs that had no number any more: gaps now */
	uint64_t failures;   /* the kernel's: no memory for a slab */
};
struct tables_stats tables_stats(const struct tables *t);

const char *tables_outcome_name(int outcome);

#endif
