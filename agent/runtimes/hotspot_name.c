// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

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

/* ---------------------------------------------------------------- other languages */

/* An operator in a name, as a compiler writes it. */
struct token {
	const char *from;
	char to;
};

static const struct token scala_tokens[] = {
	{"$tilde", '~'}, {"$eq", '='},	    {"$less", '<'},    {"$greater", '>'}, {"$bang", '!'},
	{"$hash", '#'},	 {"$percent", '%'}, {"$up", '^'},      {"$amp", '&'},	  {"$bar", '|'},
	{"$times", '*'}, {"$div", '/'},	    {"$plus", '+'},    {"$minus", '-'},	  {"$colon", ':'},
	{"$qmark", '?'}, {"$at", '@'},	    {"$bslash", '\\'},
};

static const struct token clojure_tokens[] = {
	{"_PLUS_", '+'},	 {"_GT_", '>'},	     {"_LT_", '<'},	{"_EQ_", '='},
	{"_TILDE_", '~'},	 {"_BANG_", '!'},    {"_CIRCA_", '@'},	{"_SHARP_", '#'},
	{"_SINGLEQUOTE_", '\''}, {"_PERCENT_", '%'}, {"_CARET_", '^'},	{"_AMPERSAND_", '&'},
	{"_STAR_", '*'},	 {"_BAR_", '|'},     {"_LBRACE_", '{'}, {"_RBRACE_", '}'},
	{"_LBRACK_", '['},	 {"_RBRACK_", ']'},  {"_SLASH_", '/'},	{"_BSLASH_", '\\'},
	{"_QMARK_", '?'},	 {"_COLON_", ':'},   {"_", '-'},
};

/* The compiler of a class, by its source: how its names are read. */
struct language {
	const char *ending; /* of the source */
	const struct token *tokens;
	size_t n_tokens;
	bool ends_words; /* a token before a small letter is none: part of a word */
};

static const struct language languages[] = {
	{".scala", scala_tokens, array_size(scala_tokens), true},
	{".clj", clojure_tokens, array_size(clojure_tokens), false},
	{".cljc", clojure_tokens, array_size(clojure_tokens), false},
};

/* NULL: names are as they are. */
static const struct language *language_of(const char *source)
{
	const char *ending = strrchr(source, '.');

	for (size_t i = 0; ending && i < array_size(languages); i++)
		if (strcmp(ending, languages[i].ending) == 0)
			return &languages[i];
	return NULL;
}

/* The token at the beginning of the @n bytes at @at, or NULL. */
static const struct token *token_at(const struct language *language, const char *at, size_t n)
{
	for (size_t i = 0; language && i < language->n_tokens; i++) {
		const struct token *token = &language->tokens[i];
		const size_t bytes = strlen(token->from);

		if (bytes > n || strncmp(at, token->from, bytes) != 0)
			continue;
		if (!language->ends_words || bytes == n || at[bytes] < 'a' || at[bytes] > 'z')
			return token;
	}
	return NULL;
}

/* ---------------------------------------------------------------- classes */

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

/* The same, without a number that differs from run to run. */
static size_t without_number(const char *class)
{
	static const char *const markers[] = {
		"$$Lambda$",
		"$Proxy",
		"GeneratedMethodAccessor",
		"GeneratedConstructorAccessor",
		"GeneratedSerializationConstructorAccessor",
	};
	const size_t all = without_address(class);
	size_t n = all;

	while (n && class[n - 1] >= '0' && class[n - 1] <= '9')
		n--;
	for (size_t i = 0; n < all && i < array_size(markers); i++) {
		const size_t bytes = strlen(markers[i]);

		if (n >= bytes && strncmp(class + n - bytes, markers[i], bytes) == 0)
			return class[n - 1] == '$' ? n - 1 : n;
	}
	return all;
}

/* A name in the form of its language. */
static void put_name(struct text *t, const struct language *language, const char *name, size_t n)
{
	for (size_t i = 0; i < n && t->room;) {
		const struct token *token = token_at(language, name + i, n - i);

		put(t, token ? &token->to : name[i] == '/' ? "." : &name[i], 1);
		i += token ? strlen(token->from) : 1;
	}
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

void hotspot_name(const char *class, const char *method, const char *signature, const char *source,
		  char *ret, size_t n)
{
	const struct language *language = language_of(source);
	struct text t = {ret, n - 1};

	*ret = 0;
	put_name(&t, language, class, without_number(class));
	put_text(&t, ".");
	put_name(&t, language, method, strlen(method));
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
