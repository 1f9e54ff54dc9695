/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_JSONCUT_H
#define PODPROF_BASE_JSONCUT_H

/*
 * A JSON text that arrives in pieces and may be of any length, cut into values small enough to be
 * parsed one at a time. What is inside a value is not looked at, but for where it ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum jsoncut_mode {
	JSONCUT_VALUES,	 /* values one after the other: the events of a watch */
	JSONCUT_MEMBERS, /* the members of one object; of a member that is an array, its elements */
};

enum jsoncut_outcome {
	JSONCUT_OK = 0,
	JSONCUT_MALFORMED, /* no JSON of that shape, or it ended too early */
};

/* Bytes of a member's name that are told apart; a longer one is "". Reached: no name. */
#define JSONCUT_KEY_MAX 32

/* One value, borrowed. @key: the member that it is, or is an element of; "" in JSONCUT_VALUES. Not
 * 0 ends the cutting. */
typedef int (*jsoncut_fn)(void *ctx, const char *key, const char *json, size_t n);

/**
 * struct jsoncut - how far it is
 * @wanted:      names of members, NULL behind the last: values of all others are passed over and
 * not kept. NULL: all are wanted. Borrowed, set after jsoncut_init().
 * @n_values:    handed over
 * @n_too_large: left out, being larger than the ceiling
 */
struct jsoncut {
	enum jsoncut_mode mode;
	jsoncut_fn fn;
	void *ctx;
	const char *const *wanted;
	struct buf value;
	uint64_t n_values;
	uint64_t n_too_large;

	int state;
	size_t depth; /* of brackets open inside the value */
	bool in_string;
	bool escaped;
	bool in_array;
	bool too_large;
	bool skipped; /* the value that is being read is not wanted */
	char key[JSONCUT_KEY_MAX];
	size_t key_len;
};

/* @max: bytes of one value. */
void jsoncut_init(struct jsoncut *c, enum jsoncut_mode mode, size_t max, jsoncut_fn fn, void *ctx);
void jsoncut_deinit(struct jsoncut *c);

/* 0, JSONCUT_MALFORMED, what the callback returned, -ENOMEM: on everything but 0 it is over. */
int jsoncut_feed(struct jsoncut *c, const char *bytes, size_t n);
/* There is no more. 0, or JSONCUT_MALFORMED where something is missing. */
int jsoncut_end(struct jsoncut *c);

#endif
