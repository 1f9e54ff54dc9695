/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_CONTENTION_H
#define PODPROF_GOHEAP_CONTENTION_H

/*
 * The block and mutex profiles of a Go process: the waits of its goroutines, if the program
 * records them. Read from outside, like the heap profile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/goruntime.h"
#include "goheap/kind.h"

struct contention;
struct memory;

/* Bytes of kept records of a process and kind. Each waiting stack has a record. */
#define CONTENTION_BYTES_DEFAULT (16u << 20)

/**
 * contention_new() - make a reader
 * @kind: GO_PROFILE_MUTEX or GO_PROFILE_BLOCK
 * @rt, @memory: borrowed; both outlive the reader
 *
 * Return: 0 or -ENOMEM.
 */
int contention_new(enum go_profile_kind kind, const struct goruntime *rt, struct memory *memory,
		   size_t max_bytes, struct contention **ret);
void contention_free(struct contention *c);

/* Memory held. */
size_t contention_bytes(const struct contention *c);

/**
 * struct contention_profile - the result of one read; borrows from the reader until its next read
 * @rate:     the program's present setting; 0: the program records nothing more
 * @first:    there was no earlier read, so the `before` counts of all records are 0
 * @measured: podprof measured the length of a tick itself, because the program has not done so yet
 */
struct contention_profile {
	const struct contention *reader;
	uint64_t rate;
	size_t n_records;
	bool first;
	bool measured;
};

/**
 * struct contention_record - a stack
 * @pcs: return addresses at run time, leaf first, valid until the next contention_record(); since
 *       Go 1.23 an address may stand for functions inlined there
 * @contentions, @delay_ns: as runtime/pprof would write them now
 * @before_contentions, @before_delay_ns: the same values of the read before
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
 * Return: GORUNTIME_OK; without records _NO_SAMPLES_YET if recording is on and _DISABLED_BY_PROGRAM
 * if recording is off; _UNKNOWN_LAYOUT, also if the variables were not found; _GONE; _DENIED;
 * _TOO_LARGE; -errno.
 */
int contention_read(struct contention *c, struct contention_profile *ret);
void contention_record(const struct contention_profile *p, size_t i, struct contention_record *ret);

#endif
