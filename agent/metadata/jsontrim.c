// SPDX-License-Identifier: Apache-2.0
/*
 * Nine tenths of a pod's JSON are useless here: managed fields, volumes, probes, environment
 * variables (including secrets). Building a tree of all members takes five times as long as finding
 * their ends.
 */
#include "metadata/jsontrim.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_splitter.h"

/* State of one object. */
struct trimming {
	const struct jsontrim *wanted;
	json_t *object;
};

static int parse_all(const char *json, size_t n, json_t **ret)
{
	json_error_t error;

	*ret = json_loadb(json, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
	if (*ret)
		return 0;
	return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : JSONTRIM_MALFORMED;
}

/* Takes @value. */
static int add(json_t *object, const struct jsontrim *member, json_t *value)
{
	json_t *array;

	if (!member->array)
		return json_object_set_new(object, member->key, value) ? -ENOMEM : 0;
	array = json_object_get(object, member->key);
	if (!json_is_array(array)) {
		array = json_array();
		if (json_object_set_new(object, member->key, array)) {
			json_decref(value);
			return -ENOMEM;
		}
	}
	return json_array_append_new(array, value) ? -ENOMEM : 0;
}

static int trim_member(void *ctx, const char *key, const char *json, size_t n)
{
	struct trimming *trimming = ctx;
	const struct jsontrim *member = trimming->wanted;
	json_t *value;
	int r;

	while (strcmp(member->key, key) != 0)
		member++;
	r = member->below ? jsontrim_parse(json, n, member->below, &value)
			  : parse_all(json, n, &value);
	return r ? r : add(trimming->object, member, value);
}

static int trim(const char *json, size_t n, struct trimming *trimming)
{
	const char *keys[JSONTRIM_WANTED_MAX + 1] = {NULL};
	struct json_splitter cut;
	int r;

	for (size_t i = 0; i < JSONTRIM_WANTED_MAX && trimming->wanted[i].key; i++)
		keys[i] = trimming->wanted[i].key;
	json_splitter_init(&cut, JSON_SPLITTER_MEMBERS, n, trim_member, trimming);
	cut.wanted = keys;
	r = json_splitter_feed(&cut, json, n);
	if (!r)
		r = json_splitter_end(&cut);
	json_splitter_deinit(&cut);
	return r; /* JSON_SPLITTER_MALFORMED is the same number */
}

_Static_assert((int)JSON_SPLITTER_MALFORMED == (int)JSONTRIM_MALFORMED, "handed on as it is");

int jsontrim_parse(const char *json, size_t n, const struct jsontrim *wanted, json_t **ret)
{
	_cleanup_(json_decrefp) json_t *object = NULL;
	struct trimming trimming = {.wanted = wanted};
	size_t blank = 0;
	int r;

	while (blank < n && strchr(" \t\r\n", json[blank]) && json[blank])
		blank++;
	if (blank == n || json[blank] != '{')
		return parse_all(json, n, ret);
	object = json_object();
	if (!object)
		return -ENOMEM;
	trimming.object = object;
	r = trim(json, n, &trimming);
	if (!r)
		*ret = take_ptr(object);
	return r;
}
