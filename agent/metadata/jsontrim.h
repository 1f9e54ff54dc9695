/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_JSONTRIM_H
#define PODPROF_METADATA_JSONTRIM_H

/* A JSON parser for a few members of an object. It skips the others. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Wanted members of one object. Reached: -. */
#define JSONTRIM_WANTED_MAX 16

/**
 * struct jsontrim - a wanted member; a list ends with an entry without a key
 * @array: the member is an array, and its elements are parsed separately
 * @below: wanted members of the value, for an object; NULL for all
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

/* Parses the wanted members. The parser only searches for the end of skipped members. A value other
 * than an object is parsed whole. *@ret is owned and borrows nothing. 0, JSONTRIM_MALFORMED,
 * -ENOMEM. */
int jsontrim_parse(const char *json, size_t n, const struct jsontrim *wanted, json_t **ret);

#endif
