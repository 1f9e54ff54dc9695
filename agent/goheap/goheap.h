/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOHEAP_H
#define PODPROF_GOHEAP_GOHEAP_H

/*
 * The heap profile of a Go process, read from outside, at any time and without stopping the
 * process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/contention.h"
#include "goheap/force.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"

struct frame;
struct goheap;
struct memory;
struct root;

/* Default bytes of kept records of a process: 350,000 records of 20 PCs. More records are
 * GORUNTIME_TOO_LARGE. */
#define GOHEAP_BYTES_DEFAULT (64u << 20)

struct goheap_opts {
	const struct root *proc; /* borrowed; must outlive the reader */
	struct pid_id id;
	/* As returned by goruntimes_find(); copied. The caller ensures with a struct
	 * process_memory of its own that the process does not exec between goruntimes_find() and
	 * the return of goheap_new(). NULL: goheap_new() takes the first readable runtime. */
	const struct goruntime *runtime;
	bool force;	  /* as goheap_set_force() */
	bool was_forced;  /* podprof has forced this runtime before: never twice */
	size_t max_bytes; /* 0: GOHEAP_BYTES_DEFAULT */
};

/**
 * goheap_new() - make a reader of a process
 *
 * Makes a reader unless podprof itself fails; goheap_state() gives the state of the process. For a
 * process other than Go the cost is the opening of its executable.
 *
 * Return: 0 or -errno.
 */
int goheap_new(const struct goheap_opts *opts, struct goheap **ret);
/* The same over @memory, for a recorded image. Borrows @memory; copies @rt. */
int goheap_new_of_memory(const struct goruntime *rt, struct memory *memory, size_t max_bytes,
			 struct goheap **ret);
void goheap_free(struct goheap *h);

/* Of the last goheap_read(), or of goheap_new(). */
enum goruntime_state goheap_state(const struct goheap *h);
/* NULL unless the state of goheap_new() was GORUNTIME_OK or _UNKNOWN_LAYOUT; NULL after
 * GORUNTIME_GONE. */
const struct goruntime *goheap_runtime(const struct goheap *h);
/* The memory to read other profiles of the same runtime from; NULL unless the state of
 * goheap_new() was GORUNTIME_OK; NULL after GORUNTIME_GONE. */
struct memory *goheap_memory(struct goheap *h);
/* Whether the process still runs the program: then all records read belong to its mappings.
 * 0, GORUNTIME_GONE, -errno. After a read with a profile. */
int goheap_check(struct goheap *h);
/* The runtime's mutex or block profile. The heap reader owns the contention reader. Returns as
 * contention_read(), or the state of goheap_new(), or GORUNTIME_GONE. */
int goheap_contention(struct goheap *h, enum go_profile_kind kind, struct contention_profile *ret);
/* Whether the next read turns sampling on in a program that never had sampling on. A reader makes a
 * single attempt. */
void goheap_set_force(struct goheap *h, bool force);
/* Whether podprof has turned sampling on in this process, now or before. */
bool goheap_was_forced(const struct goheap *h);
/* The outcome of forcing in the last read; FORCE_OUTCOME_MAX without an attempt. */
enum force_outcome goheap_force_outcome(const struct goheap *h);
/* Memory held. */
size_t goheap_bytes(const struct goheap *h);

/* Resolve a pc outside of all mapped files in a program that was unpacked into memory. False for
 * all other programs. On true @ret owns a reference to the image. */
bool goheap_resolve(const struct goheap *h, uint64_t pc, struct frame *ret);

/* The allocator's own counters, in any state of the profile. 0, an outcome of gototals_read(),
 * -errno. */
int goheap_exact(struct goheap *h, struct gototals *ret);
/* Garbage collections since the start of the process, as of the last goheap_read(). 0, or the
 * result of goheap_exact(). */
int goheap_cycles(const struct goheap *h, uint64_t *ret);

/**
 * struct goheap_gauges - further counters of the runtime
 * @has_pacer, @has_goroutines: whether the values could be read
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
 * struct goheap_profile - the result of one read; borrows from the reader until its next read
 * @rate: mean bytes between samples, for unsample()
 * @pcs: distinct return addresses at run time, @n_pcs of them
 * @first: there was no earlier read, so goheap_record.before_allocs is 0 everywhere
 * @settled: no garbage collection ended during the read. Otherwise a few records may be of the
 *           previous cycle; their sums are right all the same.
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
 * struct goheap_record - a stack and object size
 * @stack: numbers of goheap_profile.pcs, leaf first, as the runtime recorded them
 * @allocs, @frees: objects as runtime/pprof would count them now, up to the end of the garbage
 *                  collection before the last one; allocs - frees were live then
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
 * Return: an enum goruntime_state, as goheap_state(), or -errno.
 */
int goheap_read(struct goheap *h, struct goheap_profile *ret);

/* A read must continue. Not a state. */
#define GOHEAP_UNFINISHED GORUNTIME_STATE_MAX

/**
 * goheap_step() - goheap_read() in steps, for processes with very many records
 * @budget: bytes to copy in this step, approximately; 1 MiB takes less than a millisecond
 *
 * Return: GOHEAP_UNFINISHED: call again; else as goheap_read(), from the last step. A step
 * invalidates earlier profiles.
 */
int goheap_step(struct goheap *h, size_t budget, struct goheap_profile *ret);

/* Set the ceiling of the next read. After GORUNTIME_TOO_LARGE the process is read again only if
 * the new ceiling is a quarter larger, because the number of records never falls. */
void goheap_set_max_bytes(struct goheap *h, size_t max_bytes);

void goheap_record(const struct goheap_profile *p, size_t i, struct goheap_record *ret);

/* Live objects at the last published garbage collection. */
static inline uint64_t goheap_record_inuse(const struct goheap_record *r)
{
	return r->allocs > r->frees ? r->allocs - r->frees : 0;
}

/* Objects and bytes, as a profile shows them. */
struct unsampled {
	int64_t objects;
	int64_t bytes;
};

/**
 * unsample() - scale sampled counts up to estimates of all allocations
 * @count: sampled objects
 * @size:  bytes of each
 * @rate:  runtime.MemProfileRate, the mean number of bytes from one sample to the next
 *
 * Uses the formula of runtime/pprof for heap profiles. Results beyond int64 become its maximum.
 */
struct unsampled unsample(uint64_t count, uint64_t size, int64_t rate);

/* The sums of all records, unsampled. */
struct goheap_totals {
	struct unsampled alloc; /* of fresh_allocs: never goes down while the process lives */
	struct unsampled inuse;
};

void goheap_totals(const struct goheap_profile *p, struct goheap_totals *ret);

#endif
