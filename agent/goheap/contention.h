/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_CONTENTION_H
#define PODPROF_GOHEAP_CONTENTION_H

/*
 * What the goroutines of one Go process have waited for, where the program has that recorded: its
 * block and mutex profiles, read from outside as the heap profile is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/goruntime.h"
#include "goheap/kind.h"

struct contention;
struct memory;

/* Bytes of records kept of one process and kind: there is one for each place that waits. */
#define CONTENTION_BYTES_DEFAULT (16u << 20)

/**
 * contention_new() - a reader
 * @kind: GO_PROFILE_MUTEX or GO_PROFILE_BLOCK
 * @rt, @memory: borrowed; they outlive it
 *
 * Return: 0 or -ENOMEM.
 */
int contention_new(enum go_profile_kind kind, const struct goruntime *rt, struct memory *memory,
		   size_t max_bytes, struct contention **ret);
void contention_free(struct contention *c);

/* Memory held. */
size_t contention_bytes(const struct contention *c);

/**
 * struct contention_profile - what one read found; borrows from the reader until its next read
 * @rate: as the program has set it now: 0 means that nothing more is recorded
 * @first: nothing was read before, so that what records had before is 0 everywhere
 * @measured: how long a tick is was measured here, since the program has not done so yet
 */
struct contention_profile {
	const struct contention *reader;
	uint64_t rate;
	size_t n_records;
	bool first;
	bool measured;
};

/**
 * struct contention_record - one stack
 * @pcs: return addresses at run time, leaf first, until the next record is asked for; since Go 1.23
 *       an address may stand for functions that are inlined there
 * @contentions, @delay_ns: as runtime/pprof would write them now
 * @before_contentions, @before_delay_ns: the same of the read before
 */
struct contention_record {
	const uint64_t *pcs;
	size_t n_pcs;
	int64_t contentions;
	int64_t delay_ns;
	int64_t before_contentions;
	int64_t before_delay_ns;
};

/**
 * contention_read() - read the profile
 * @ret: set on GORUNTIME_OK
 *
 * Return: GORUNTIME_OK; _NO_SAMPLES_YET and _DISABLED_BY_PROGRAM when there are no records, and
 * recording is on or off; _UNKNOWN_LAYOUT, also where the variables were not found; _GONE; _DENIED;
 * _TOO_LARGE; -errno.
 */
int contention_read(struct contention *c, struct contention_profile *ret);
void contention_record(const struct contention_profile *p, size_t i, struct contention_record *ret);

#endif
