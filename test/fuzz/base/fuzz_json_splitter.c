// SPDX-License-Identifier: Apache-2.0
/* A server's JSON: any division into pieces gives the same values, including all objects that a
 * parser would accept. The first byte selects the division. */
#include "fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_splitter.h"

#define VALUE_MAX 4096

struct seen {
	uint64_t hash;
	size_t n;
};

static int see(void *ctx, const char *key, const char *json, size_t n)
{
	struct seen *seen = ctx;

	for (size_t i = 0; i < strlen(key); i++)
		seen->hash = seen->hash * 31 + (uint8_t)key[i];
	for (size_t i = 0; i < n; i++)
		seen->hash = seen->hash * 37 + (uint8_t)json[i];
	seen->n++;
	return 0;
}

static int cut(enum json_splitter_mode mode, const char *json, size_t n, size_t step,
	       struct seen *ret)
{
	struct json_splitter c;
	int r = 0;

	*ret = (struct seen){0};
	json_splitter_init(&c, mode, VALUE_MAX, see, ret);
	for (size_t i = 0; i < n && !r; i += step)
		r = json_splitter_feed(&c, json + i, n - i < step ? n - i : step);
	if (!r)
		r = json_splitter_end(&c);
	if (c.n_values != ret->n)
		abort();
	json_splitter_deinit(&c);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, pieces;
	enum json_splitter_mode mode;
	const char *json;
	json_t *object;
	int r;

	if (size < 1)
		return 0;
	mode = data[0] & 1 ? JSON_SPLITTER_MEMBERS : JSON_SPLITTER_VALUES;
	json = (const char *)data + 1;
	r = cut(mode, json, size - 1, size, &whole);
	if (cut(mode, json, size - 1, (data[0] >> 1) + 1u, &pieces) != r ||
	    whole.hash != pieces.hash || whole.n != pieces.n)
		abort();
	if (memchr(json, '\0', size - 1))
		return 0; /* the parser skips this between values */
	object = json_loadb(json, size - 1, JSON_ALLOW_NUL, NULL);
	if (object && r && (json_is_object(object) || mode == JSON_SPLITTER_VALUES))
		abort();
	json_decref(object);
	return 0;
}
