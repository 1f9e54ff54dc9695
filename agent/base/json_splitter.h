/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_JSON_SPLITTER_H
#define PODPROF_BASE_JSON_SPLITTER_H

/*
 * Splits a JSON text of any length, arriving in pieces, into values small enough to be parsed
 * singly. The splitter examines the inside of a value only to find its end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum json_splitter_mode {
	JSON_SPLITTER_VALUES,  /* consecutive values: the events of a watch */
	JSON_SPLITTER_MEMBERS, /* the members of one object; of an array member, its elements */
};

enum json_splitter_outcome {
	JSON_SPLITTER_OK = 0,
	JSON_SPLITTER_MALFORMED, /* no JSON of this shape, or an early end */
};

/* Bytes of a member's name; longer names are not distinguished. Reached: the name is "". */
#define JSON_SPLITTER_KEY_MAX 32

/* Receives one value, borrowed. @key: the value's member, or the member whose array the value is
 * in; "" in JSON_SPLITTER_VALUES. A result other than 0 ends the splitting. */
typedef int (*json_splitter_fn)(void *ctx, const char *key, const char *json, size_t n);

/**
 * struct json_splitter - the state of a splitter
 * @wanted:      names of members, ended by NULL: values of all others are skipped and not kept.
 *               NULL: every member. Borrowed, set after json_splitter_init().
 * @n_values:    values passed to the callback
 * @n_too_large: values left out because of their size
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
	bool skipped; /* the current value is not wanted */
	char key[JSON_SPLITTER_KEY_MAX];
	size_t key_len;
};

/* @max: bytes of one value. */
void json_splitter_init(struct json_splitter *c, enum json_splitter_mode mode, size_t max,
			json_splitter_fn fn, void *ctx);
void json_splitter_deinit(struct json_splitter *c);

/* 0, JSON_SPLITTER_MALFORMED, the callback's result, -ENOMEM. Any result but 0 is final. */
int json_splitter_feed(struct json_splitter *c, const char *bytes, size_t n);
/* Ends the text. 0, or JSON_SPLITTER_MALFORMED for an incomplete text. */
int json_splitter_end(struct json_splitter *c);

#endif
