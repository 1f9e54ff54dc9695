/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_PROCESSES_H
#define PODPROF_UNWINDTABLE_PROCESSES_H

/* The walker's processes and their mapping tables (bpf/shared/process.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/process.h"
#include "shared/stack_dump.h"

struct processes;

/* Grace period before released page space is written again. A walk takes microseconds, but a
 * virtual CPU may lose its time slice in the middle of a walk. */
#define PROCESSES_QUIET_NS 1000000000ull

/**
 * struct processes_kernel - storage of tables and records
 * @reserve: @n consecutive pages of 4 KiB; their numbers begin at *@ret. 0, or another value
 *           without room
 * @release: the same back
 * @table_page: address of a reserved page; stable while the page is reserved
 * @record:  write the record of @tgid, replacing the old record; 0 or -errno (-E2BIG: no room)
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

/* Identity of a process as in its samples, the caller's version of the published mappings,
 * @runtime, an enum frame_runtime, and @exe, as in its stack dumps; inode 0: not known, so a record
 * of the same program keeps its own. */
struct processes_id {
	uint32_t tgid;
	uint32_t runtime;
	uint64_t start_boottime_ns;
	uint64_t exec_id;
	uint64_t version;
	struct exe_key exe;
};

enum processes_outcome {
	PROCESSES_OK = 0,
	PROCESSES_FULL,	    /* no more records */
	PROCESSES_NO_SPACE, /* no more pages for tables */
	PROCESSES_CUT,	    /* more mappings than a table can have: the first ones were published */
	PROCESSES_OUTCOME_MAX,
};

/* @kernel is copied; its ctx is borrowed. */
int processes_new(const struct processes_kernel *kernel, struct processes **ret);
/* Removes all records. The pages are released at once: no walker may run any more. */
void processes_free(struct processes *p);

/**
 * processes_publish() - give the walker the mappings of a process
 * @maps:   sorted, not overlapping
 * @now_ns: monotonic
 *
 * Processes with equal mappings share a table. The call replaces a record of an earlier program or
 * process of that tgid. Without room the old record stays.
 *
 * Return: 0, an outcome (counted), -ENOMEM or the error of @record.
 */
int processes_publish(struct processes *p, const struct processes_id *id,
		      const struct process_mapping *maps, size_t n, uint64_t now_ns);
/* The record of @tgid gets another runtime; its mappings stay. False without a record, or if it
 * cannot be written. */
bool processes_set_runtime(struct processes *p, uint32_t tgid, uint32_t runtime);
/* Removes the record, if there is one. */
void processes_withdraw(struct processes *p, uint32_t tgid, uint64_t now_ns);
/* The record of @tgid; false without a record. */
bool processes_find(const struct processes *p, uint32_t tgid, struct processes_id *ret);

/* Calls @fn for each record; @fn may withdraw that record. */
void processes_for_each(struct processes *p, void (*fn)(void *ctx, const struct processes_id *id),
			void *ctx);

/* Once a second or so: frees released tables after their grace period. */
void processes_sweep(struct processes *p, uint64_t now_ns);

/* Sets @used[exe] for every executable in a table, released tables included. */
void processes_mark(const struct processes *p, bool *used, size_t n);

struct processes_stats {
	size_t n_records;
	size_t n_tables;      /* distinct tables in use */
	size_t n_quiet;	      /* given up and not free yet */
	size_t n_table_pages; /* reserved */
	uint64_t outcomes[PROCESSES_OUTCOME_MAX];
	uint64_t shared; /* publications with an existing table */
};
struct processes_stats processes_stats(const struct processes *p);
const char *processes_outcome_name(int outcome);

#endif
