/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOHEAP_H
#define PODPROF_GOHEAP_GOHEAP_H

/*
 * The heap profile of one Go process, read from outside, without stopping it and as often as
 * wanted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/contention.h"
#include "goheap/force.h"
#include "goheap/gopacer.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/unsample.h"

struct frame;
struct goheap;
struct memory;
struct root;

/* Bytes of records kept for one process if the caller does not say: 350,000 records of 20 PCs. A
 * process with more is GORUNTIME_TOO_LARGE. */
#define GOHEAP_BYTES_DEFAULT (64u << 20)

struct goheap_opts {
	const struct root *proc; /* borrowed; must outlive the reader */
	struct pid_id id;
	/* As goruntimes_find() gave it; copied. The caller sees to it that the process has not
	 * executed another program between that and the return of goheap_new(), by a struct
	 * process_memory of its own. NULL: found here, the first one that can be read. */
	const struct goruntime *runtime;
	bool force;	  /* as goheap_set_force() */
	bool was_forced;  /* this runtime has had that done to it before: never twice */
	size_t max_bytes; /* 0: GOHEAP_BYTES_DEFAULT */
};

/**
 * goheap_new() - look at a process
 *
 * Always makes a reader, unless our own side fails; what the process is shows in goheap_state(). A
 * process that is no Go program costs the opening of its executable.
 *
 * Return: 0 or -errno.
 */
int goheap_new(const struct goheap_opts *opts, struct goheap **ret);
/* The same over memory that somebody else provides, for a recorded image. Takes nothing. */
int goheap_new_of_memory(const struct goruntime *rt, struct memory *memory, size_t max_bytes,
			 struct goheap **ret);
void goheap_free(struct goheap *h);

/* Of the last goheap_read(), or of goheap_new(). */
enum goruntime_state goheap_state(const struct goheap *h);
/* NULL unless the state of goheap_new() was GORUNTIME_OK or _UNKNOWN_LAYOUT. */
const struct goruntime *goheap_runtime(const struct goheap *h);
/* What is read from, for other profiles of the same runtime; NULL unless the state of goheap_new()
 * was GORUNTIME_OK. */
struct memory *goheap_memory(struct goheap *h);
/* The runtime's mutex or block profile, by a reader that this one keeps. As contention_read(), or
 * the state of goheap_new(). */
int goheap_contention(struct goheap *h, enum go_profile_kind kind, struct contention_profile *ret);
/* Whether the next read turns sampling on where it has never been on. */
void goheap_set_force(struct goheap *h, bool force);
/* Whether podprof has turned sampling on in this process, now or before. */
bool goheap_was_forced(const struct goheap *h);
/* What came of it in the last read; FORCE_OUTCOME_MAX if it was not tried. */
enum force_outcome goheap_force_outcome(const struct goheap *h);
/* Memory held. */
size_t goheap_bytes(const struct goheap *h);

/* Where a pc is that no mapped file has, in a program that was unpacked into memory. False for all
 * others. On true @ret owns a reference to the image. */
bool goheap_resolve(const struct goheap *h, uint64_t pc, struct frame *ret);

/* The allocator's own counters, whatever the state of the profile. 0, an outcome of
 * gototals_read(), -errno. */
int goheap_exact(struct goheap *h, struct gototals *ret);
/* Garbage collections since the process started, as the last goheap_read() has seen it. 0, or what
 * goheap_exact() returns. */
int goheap_cycles(const struct goheap *h, uint64_t *ret);

/**
 * struct goheap_gauges - what else the runtime counts
 * @has_pacer, @has_goroutines: whether it could be read
 */
struct goheap_gauges {
	bool has_pacer;
	struct gopacer pacer;
	bool has_goroutines;
	uint64_t goroutines;
};

/* After goheap_exact(). 0, also if nothing could be read; -errno. */
int goheap_gauges(struct goheap *h, struct goheap_gauges *ret);

/**
 * struct goheap_profile - what one read found; borrows from the reader until its next read
 * @rate: mean bytes between samples, for unsample()
 * @pcs: distinct return addresses at run time, @n_pcs of them
 * @first: nothing was read before, so that goheap_record.before_allocs is 0 everywhere
 * @settled: no garbage collection ended during the read. Where one did, a few records may be of the
 *           cycle before; their sums are right all the same.
 * @blank_label: a record without published allocations does not get its size as a label (as in Go
 *               up to 1.26)
 * @n_calls: system calls, and @n_bytes copied, by this read
 */
struct goheap_profile {
	const struct goheap *heap;
	int64_t rate;
	size_t n_records;
	const uint64_t *pcs;
	size_t n_pcs;
	bool first;
	bool settled;
	bool blank_label;
	uint64_t n_calls;
	uint64_t n_bytes;
};

/**
 * struct goheap_record - one stack and object size
 * @stack: numbers of goheap_profile.pcs, leaf first, as the runtime recorded them
 * @allocs, @frees: objects as runtime/pprof would count them now, that is, up to the end of the
 *                  garbage collection before the last one; allocs - frees is what was live then
 * @fresh_allocs: all up to now; never less than in the read before
 * @before_allocs: fresh_allocs of the read before
 *
 * Counts are of samples: see unsample().
 */
struct goheap_record {
	const uint32_t *stack;
	size_t n_pcs;
	uint64_t size;
	uint64_t allocs;
	uint64_t frees;
	uint64_t fresh_allocs;
	uint64_t before_allocs;
};

/**
 * goheap_read() - read the profile
 * @ret: set when the state is GORUNTIME_OK or GORUNTIME_FORCED; else untouched
 *
 * Return: an enum goruntime_state, which goheap_state() tells too, or -errno.
 */
int goheap_read(struct goheap *h, struct goheap_profile *ret);

/* A read has to go on: no state. */
#define GOHEAP_UNFINISHED GORUNTIME_STATE_MAX

/**
 * goheap_step() - goheap_read() in pieces, for processes with very many records
 * @budget: bytes to copy before it returns, about; 1 MiB takes below a millisecond
 *
 * Return: GOHEAP_UNFINISHED: call it again; else as goheap_read(), of the last step. An earlier
 * profile is of no use once a step has begun.
 */
int goheap_step(struct goheap *h, size_t budget, struct goheap_profile *ret);

/* Another ceiling for the next read. A process that was too large for the one before is looked at
 * again only when this one is larger by a quarter: records never become fewer. */
void goheap_set_max_bytes(struct goheap *h, size_t max_bytes);

void goheap_record(const struct goheap_profile *p, size_t i, struct goheap_record *ret);

/* Objects that were live at the last published garbage collection. */
static inline uint64_t goheap_record_inuse(const struct goheap_record *r)
{
	return r->allocs > r->frees ? r->allocs - r->frees : 0;
}

/* All records together, unsampled. */
struct goheap_totals {
	struct unsampled alloc; /* of fresh_allocs: never goes down while the process lives */
	struct unsampled inuse;
};

void goheap_totals(const struct goheap_profile *p, struct goheap_totals *ret);

#endif
