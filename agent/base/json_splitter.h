/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_JSON_SPLITTER_H
#define PODPROF_BASE_JSON_SPLITTER_H

/*
 * A JSON text that arrives in pieces and may be of any length, cut into values small enough to be
 * parsed one at a time. What is inside a value is not looked at, but for where it ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum json_splitter_mode {
	JSON_SPLITTER_VALUES,  /* values one after the other: the events of a watch */
	JSON_SPLITTER_MEMBERS, /* the members of one object; of a member that is an array, its
				  elements */
};

enum json_splitter_outcome {
	JSON_SPLITTER_OK = 0,
	JSON_SPLITTER_MALFORMED, /* no JSON of that shape, or it ended too early */
};

/* Bytes of a member's name that are told apart; a longer one is "". Reached: no name. */
#define JSON_SPLITTER_KEY_MAX 32

/* One value, borrowed. @key: the member that it is, or is an element of; "" in
 * JSON_SPLITTER_VALUES. Not 0 ends the cutting. */
typedef int (*json_splitter_fn)(void *ctx, const char *key, const char *json, size_t n);

/**
 * struct json_splitter - how far it is
 * @wanted:      names of members, NULL behind the last: values of all others are passed over and
 * not kept. NULL: all are wanted. Borrowed, set after json_splitter_init().
 * @n_values:    handed over
 * @n_too_large: left out, being larger than the ceiling
 */
struct json_splitter {
	enum json_splitter_mode mode;
	json_splitter_fn fn;
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
	char key[JSON_SPLITTER_KEY_MAX];
	size_t key_len;
};

/* @max: bytes of one value. */
void json_splitter_init(struct json_splitter *c, enum json_splitter_mode mode, size_t max,
			json_splitter_fn fn, void *ctx);
void json_splitter_deinit(struct json_splitter *c);

/* 0, JSON_SPLITTER_MALFORMED, what the callback returned, -ENOMEM: on everything but 0 it is over.
 */
int json_splitter_feed(struct json_splitter *c, const char *bytes, size_t n);
/* There is no more. 0, or JSON_SPLITTER_MALFORMED where something is missing. */
int json_splitter_end(struct json_splitter *c);

#endif
