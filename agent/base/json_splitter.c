// SPDX-License-Identifier: Apache-2.0
/*
 * A list of a node's pods may have 30 MB, and one pod 10 KB. A parser that builds a tree takes ten
 * times as much memory. The splitter therefore cuts the text between pods, for which brackets and
 * strings suffice, and a library parses the pieces.
 *
 * The splitter checks the outer structure (RFC 8259, except for the insides of names); the parser
 * of each value checks the value.
 */
#include "base/json_splitter.h"

#include <string.h>

#include "base/cleanup.h"

enum {
	AT_START,  /* JSON_SPLITTER_MEMBERS: before the object */
	AT_MEMBER, /* before a name, or the end of an object without members */
	AT_NEXT,   /* behind a comma: before a name */
	IN_NAME,
	AT_COLON,
	AT_VALUE,   /* before a mandatory value */
	AT_ELEMENT, /* before the first element, or the end of an array without elements */
	IN_VALUE,   /* inside brackets or a string */
	IN_WORD,    /* inside a number, true, false, null */
	BEHIND,	    /* behind a value, before a comma or a bracket */
	AT_END,	    /* behind the object */
};

void json_splitter_init(struct json_splitter *c, enum json_splitter_mode mode, size_t max,
			json_splitter_fn fn, void *ctx)
{
	*c = (struct json_splitter){
		.mode = mode,
		.fn = fn,
		.ctx = ctx,
		.value = BUF_INIT(max),
		.state = mode == JSON_SPLITTER_MEMBERS ? AT_START : AT_VALUE,
	};
}

void json_splitter_deinit(struct json_splitter *c)
{
	buf_deinit(&c->value);
}

static bool is_blank(char b)
{
	return b == ' ' || b == '\t' || b == '\n' || b == '\r';
}

static bool is_word(char b)
{
	return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || b == '-' || b == '+' ||
	       b == '.' || b == 'E';
}

/* ---------------------------------------------------------------- one value */

static int keep(struct json_splitter *c, const char *bytes, size_t n)
{
	int r = c->too_large || c->skipped ? 0 : buf_append(&c->value, bytes, n);

	if (r < 0)
		return r;
	c->too_large = c->too_large || r == BUF_FULL;
	return 0;
}

static int end_value(struct json_splitter *c)
{
	int r = 0;

	c->state = c->mode == JSON_SPLITTER_VALUES ? AT_VALUE : BEHIND;
	if (c->too_large) {
		c->n_too_large++;
	} else if (!c->skipped) {
		c->n_values++;
		r = c->fn(c->ctx, c->key, c->value.data, c->value.len);
	}
	c->too_large = false;
	buf_reset(&c->value);
	return r;
}

/* Find the end of the value; *@ret is the number of its bytes in @bytes. True if the value has
 * ended. */
static bool find_end(struct json_splitter *c, const char *bytes, size_t n, size_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		char b = bytes[i];

		if (c->in_string) {
			if (c->escaped)
				c->escaped = false;
			else if (b == '\\')
				c->escaped = true;
			else if (b == '"')
				c->in_string = false;
		} else if (b == '"') {
			c->in_string = true;
		} else if (b == '{' || b == '[') {
			c->depth++;
		} else if (b == '}' || b == ']') {
			c->depth--;
		}
		if (!c->in_string && c->depth == 0) {
			*ret = i + 1;
			return true;
		}
	}
	*ret = n;
	return false;
}

static int in_value(struct json_splitter *c, const char *bytes, size_t n, size_t *ret)
{
	bool ended = find_end(c, bytes, n, ret);
	int r = keep(c, bytes, *ret);

	return r || !ended ? r : end_value(c);
}

static int in_word(struct json_splitter *c, const char *bytes, size_t n, size_t *ret)
{
	size_t i = 0;
	int r;

	while (i < n && is_word(bytes[i]))
		i++;
	*ret = i;
	r = keep(c, bytes, i);
	return r || i == n ? r : end_value(c);
}

static bool is_wanted(const struct json_splitter *c)
{
	const char *const *key = c->wanted;

	while (key && *key && strcmp(*key, c->key) != 0)
		key++;
	return !key || *key;
}

static int begin_value(struct json_splitter *c, const char *bytes, size_t n, size_t *ret)
{
	if (*bytes == '[' && c->mode == JSON_SPLITTER_MEMBERS && !c->in_array) {
		c->in_array = true;
		c->state = AT_ELEMENT;
		*ret = 1;
		return 0;
	}
	c->skipped = !is_wanted(c);
	if (*bytes == '{' || *bytes == '[' || *bytes == '"') {
		c->depth = 0;
		c->state = IN_VALUE;
		return in_value(c, bytes, n, ret);
	}
	if (!is_word(*bytes))
		return JSON_SPLITTER_MALFORMED;
	c->state = IN_WORD;
	return in_word(c, bytes, n, ret);
}

/* ---------------------------------------------------------------- between values */

/* A name with an escape is never a wanted name. */
static void in_name(struct json_splitter *c, char b)
{
	bool escaped = c->escaped;

	c->escaped = !escaped && b == '\\';
	if (b == '"' && !escaped) {
		if (c->key_len >= JSON_SPLITTER_KEY_MAX)
			c->key_len = 0;
		c->key[c->key_len] = '\0';
		c->state = AT_COLON;
		return;
	}
	if (b == '\\' || c->key_len >= JSON_SPLITTER_KEY_MAX - 1)
		c->key_len = JSON_SPLITTER_KEY_MAX;
	else
		c->key[c->key_len++] = b;
}

static int behind(struct json_splitter *c, char b)
{
	if (b == ',')
		c->state = c->in_array ? AT_VALUE : AT_NEXT;
	else if (c->in_array && b == ']')
		c->in_array = false;
	else if (!c->in_array && b == '}')
		c->state = AT_END;
	else
		return JSON_SPLITTER_MALFORMED;
	return 0;
}

/* A byte outside of all values. */
static int between(struct json_splitter *c, char b)
{
	if (c->state == IN_NAME) {
		in_name(c, b);
		return 0;
	}
	if (is_blank(b))
		return 0;
	if (c->state == AT_START && b == '{') {
		c->state = AT_MEMBER;
	} else if ((c->state == AT_MEMBER || c->state == AT_NEXT) && b == '"') {
		c->key_len = 0;
		c->state = IN_NAME;
	} else if (c->state == AT_MEMBER && b == '}') {
		c->state = AT_END;
	} else if (c->state == AT_COLON && b == ':') {
		c->state = AT_VALUE;
	} else if (c->state == BEHIND) {
		return behind(c, b);
	} else {
		return JSON_SPLITTER_MALFORMED;
	}
	return 0;
}

static int step(struct json_splitter *c, const char *bytes, size_t n, size_t *ret)
{
	*ret = 1;
	switch (c->state) {
	case IN_VALUE:
		return in_value(c, bytes, n, ret);
	case IN_WORD:
		return in_word(c, bytes, n, ret);
	case AT_ELEMENT:
		if (*bytes == ']') {
			c->in_array = false;
			c->state = BEHIND;
			return 0;
		}
		return is_blank(*bytes) ? 0 : begin_value(c, bytes, n, ret);
	case AT_VALUE:
		return is_blank(*bytes) ? 0 : begin_value(c, bytes, n, ret);
	default:
		return between(c, *bytes);
	}
}

int json_splitter_feed(struct json_splitter *c, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t done;
		int r = step(c, bytes, n, &done);

		if (r)
			return r;
		bytes += done;
		n -= done;
	}
	return 0;
}

int json_splitter_end(struct json_splitter *c)
{
	if (c->mode == JSON_SPLITTER_MEMBERS)
		return c->state == AT_END ? 0 : JSON_SPLITTER_MALFORMED;
	if (c->state == IN_WORD)
		return end_value(c);
	return c->state == AT_VALUE ? 0 : JSON_SPLITTER_MALFORMED;
}
