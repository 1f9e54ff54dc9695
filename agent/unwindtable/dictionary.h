/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_DICTIONARY_H
#define PODPROF_UNWINDTABLE_DICTIONARY_H

/*
 * Deduplicated values of all tables of the node: rules and rule runs, each stored once under a
 * number (bpf/shared/table.h). References are counted. A number without holders keeps its value for
 * a grace period of DICTIONARY_QUIET_NS, because a walk may still read it. After that it may get
 * another value.
 */

#include <stdint.h>

struct dictionary;

#define DICTIONARY_QUIET_NS 1000000000ull

/**
 * struct dictionary_opts
 * @values:     where walkers read: @n values of @value_size bytes, zeros; borrowed
 * @n:          at most 65,536. Number 0 is the value of all zeros, and is not counted
 * @value_size: bytes
 */
struct dictionary_opts {
	void *values;
	uint32_t n;
	uint32_t value_size;
};

enum dictionary_outcome {
	DICTIONARY_OK = 0,
	DICTIONARY_FULL, /* all numbers are in use */
};

/* 0 or -ENOMEM. */
int dictionary_new(const struct dictionary_opts *opts, struct dictionary **ret);
void dictionary_free(struct dictionary *d);

/* Adds a holder of @value, and writes a new value. 0 or DICTIONARY_FULL. @now_ns: monotonic. */
int dictionary_take(struct dictionary *d, const void *value, uint64_t now_ns, uint16_t *ret);
/* Removes a holder. */
void dictionary_drop(struct dictionary *d, uint16_t number, uint64_t now_ns);

/* Count of numbers with holders. */
uint32_t dictionary_used(const struct dictionary *d);

#endif
