// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot_name.h"

#include <stdbool.h>
#include <string.h>

/* Dimensions of an array type: the class file format's limit. Reached: the list of parameters ends
 * with "...". */
#define DIMENSIONS_MAX 255

struct text {
	char *to;
	size_t room; /* without the NUL */
};

static void put(struct text *t, const char *from, size_t n)
{
	n = n < t->room ? n : t->room;
	memcpy(t->to, from, n);
	t->to += n;
	t->room -= n;
	*t->to = 0;
}

static void put_text(struct text *t, const char *from)
{
	put(t, from, strlen(from));
}

/* The bytes of a class's name before the address in it. */
static size_t without_address(const char *class)
{
	const char *at = class;

	while ((at = strstr(at, "0x"))) {
		if (at > class && (at[-1] == '/' || at[-1] == '+' || at[-1] == '.'))
			return (size_t)(at - class) - 1;
		at += 2;
	}
	return strlen(class);
}

static void put_class(struct text *t, const char *class, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(t, class[i] == '/' ? "." : &class[i], 1);
}

static const char *primitive(char code)
{
	static const char codes[] = "BCDFIJSZV";
	static const char *const names[] = {"byte", "char",  "double",	"float", "int",
					    "long", "short", "boolean", "void"};
	const char *at = code ? strchr(codes, code) : NULL;

	return at ? names[at - codes] : NULL;
}

/* A class without its package; returns the end, or NULL. */
static const char *put_object(struct text *t, const char *at)
{
	const char *end = strchr(at, ';'), *name = at;

	if (!end)
		return NULL;
	for (const char *c = at; c < end; c++)
		if (*c == '/')
			name = c + 1;
	put(t, name, (size_t)(end - name));
	return end + 1;
}

/* The type at @at; returns its end, or NULL. */
static const char *put_type(struct text *t, const char *at)
{
	const char *name;
	size_t dimensions = 0;

	for (; *at == '[' && dimensions < DIMENSIONS_MAX; at++)
		dimensions++;
	name = primitive(*at);
	if (name) {
		put_text(t, name);
		at++;
	} else if (*at == 'L') {
		at = put_object(t, at + 1);
	} else {
		at = NULL;
	}
	while (at && dimensions--)
		put_text(t, "[]");
	return at;
}

static void put_parameters(struct text *t, const char *signature)
{
	const char *at = signature + 1;
	bool first = true;

	if (*signature != '(')
		return;
	put_text(t, "(");
	while (at && *at && *at != ')' && t->room) {
		if (!first)
			put_text(t, ", ");
		first = false;
		at = put_type(t, at);
	}
	put_text(t, at && *at == ')' ? ")" : "...)");
}

void hotspot_name(const char *class, const char *method, const char *signature, char *ret, size_t n)
{
	struct text t = {ret, n - 1};

	*ret = 0;
	put_class(&t, class, without_address(class));
	put_text(&t, ".");
	put_text(&t, method);
	put_parameters(&t, signature);
}

void hotspot_file(const char *class, const char *source, char *ret, size_t n)
{
	const char *end = strrchr(class, '/');
	const size_t bytes = without_address(class);
	struct text t = {ret, n - 1};

	*ret = 0;
	if (!*source)
		return;
	while (end && (size_t)(end - class) >= bytes) { /* of the address */
		const char *c = end;

		for (end = NULL; c > class && !end; c--)
			end = c[-1] == '/' ? c - 1 : NULL;
	}
	if (end)
		put(&t, class, (size_t)(end - class) + 1);
	put_text(&t, source);
}
