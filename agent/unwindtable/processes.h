/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_PROCESSES_H
#define PODPROF_UNWINDTABLE_PROCESSES_H

/* The processes that the walker knows, and their mapping tables (bpf/shared/process.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/process.h"

struct processes;

/* A place that was given up is written again only after so long: a walk takes microseconds, a
 * virtual CPU may be taken away in the middle of one. */
#define PROCESSES_QUIET_NS 1000000000ull

/**
 * struct processes_kernel - where tables and records are kept
 * @reserve: @n consecutive pages of 4 KiB; their numbers begin at *@ret. 0, or other if there
 *           are none
 * @release: the same back
 * @table_page: where one of them is mapped; stays there while it is reserved
 * @record:  write the record of @tgid, replacing what there is; 0 or -errno (-E2BIG: no room)
 * @remove:  delete it
 */
struct processes_kernel {
	void *ctx;
	int (*reserve)(void *ctx, uint32_t n, uint32_t *ret);
	void (*release)(void *ctx, uint32_t first, uint32_t n);
	struct process_mapping *(*table_page)(void *ctx, uint32_t number);
	int (*record)(void *ctx, uint32_t tgid, const struct process *process);
	void (*remove)(void *ctx, uint32_t tgid);
};

/* Who is meant: what a sample carries; and a number of the caller's that says which of its lists of
 * mappings was published; and @runtime, an enum frame_runtime. */
struct processes_id {
	uint32_t tgid;
	uint32_t runtime;
	uint64_t start_boottime_ns;
	uint64_t exec_id;
	uint64_t version;
};

enum processes_outcome {
	PROCESSES_OK = 0,
	PROCESSES_FULL,	    /* no more records */
	PROCESSES_NO_SPACE, /* no more pages for tables */
	PROCESSES_CUT,	    /* more mappings than a table can have: the first ones were published */
	PROCESSES_OUTCOME_MAX,
};

/* @kernel is copied; what its ctx points to is borrowed. */
int processes_new(const struct processes_kernel *kernel, struct processes **ret);
/* Removes all records. The pages are released at once: no walker may run any more. */
void processes_free(struct processes *p);

/**
 * processes_publish() - the walker shall know these mappings of a process
 * @maps:   sorted, not overlapping
 * @now_ns: monotonic
 *
 * Processes with equal mappings share a table. A record of an earlier program or process of that
 * tgid is replaced, and stays if there is no room.
 *
 * Return: 0, an outcome (counted), -ENOMEM or what @record returned.
 */
int processes_publish(struct processes *p, const struct processes_id *id,
		      const struct process_mapping *maps, size_t n, uint64_t now_ns);
/* Forget it. Nothing happens if it is not known. */
void processes_withdraw(struct processes *p, uint32_t tgid, uint64_t now_ns);
/* What is recorded for @tgid; false if nothing is. */
bool processes_find(const struct processes *p, uint32_t tgid, struct processes_id *ret);

/* Calls @fn for each record; it may withdraw that one. */
void processes_for_each(struct processes *p, void (*fn)(void *ctx, const struct processes_id *id),
			void *ctx);

/* Once a second or so: places that were given up long enough ago are free again. */
void processes_sweep(struct processes *p, uint64_t now_ns);

/* Set @used[exe] for every executable that some table, given up or not, refers to. */
void processes_mark(const struct processes *p, bool *used, size_t n);

struct processes_stats {
	size_t n_records;
	size_t n_tables;      /* different ones, in use */
	size_t n_quiet;	      /* given up and not free yet */
	size_t n_table_pages; /* reserved */
	uint64_t outcomes[PROCESSES_OUTCOME_MAX];
	uint64_t shared; /* publications that found their table there */
};
struct processes_stats processes_stats(const struct processes *p);
const char *processes_outcome_name(int outcome);

#endif
