/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_JSONTRIM_H
#define PODPROF_METADATA_JSONTRIM_H

/* A JSON object of which a few members are wanted, parsed without the others. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Members of one object that may be wanted. Reached: -. */
#define JSONTRIM_WANTED_MAX 16

/**
 * struct jsontrim - a member that is wanted; a list of them ends with one without a key
 * @array: it is an array: its elements are parsed one by one
 * @below: what of it is wanted, where it is an object; NULL for all
 */
struct jsontrim {
	const char *key;
	bool array;
	const struct jsontrim *below;
};

enum jsontrim_outcome {
	JSONTRIM_OK = 0,
	JSONTRIM_MALFORMED,
};

/* What is passed over is only looked at for where it ends. What is no object though it should be
 * one is parsed as it is. *@ret is the caller's and borrows nothing. 0, JSONTRIM_MALFORMED,
 * -ENOMEM.
 */
int jsontrim_parse(const char *json, size_t n, const struct jsontrim *wanted, json_t **ret);

#endif
