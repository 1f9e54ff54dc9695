// SPDX-License-Identifier: Apache-2.0
/*
 * Defaults and refusals are Prometheus', with the names of labels from before its version 3:
 * [a-zA-Z_][a-zA-Z0-9_]*, because labels of profiles have such names. Prometheus 3 takes any text
 * for a name without its option "legacy". Some keys without effect are refused, also with the
 * default as their value.
 */
#include "relabel/rule.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/labels.h"

static const char *const action_names[RULE_ACTION_MAX] = {
	[RULE_REPLACE] = "replace",	[RULE_KEEP] = "keep",
	[RULE_DROP] = "drop",		[RULE_KEEPEQUAL] = "keepequal",
	[RULE_DROPEQUAL] = "dropequal", [RULE_HASHMOD] = "hashmod",
	[RULE_LOWERCASE] = "lowercase", [RULE_UPPERCASE] = "uppercase",
	[RULE_LABELMAP] = "labelmap",	[RULE_LABELDROP] = "labeldrop",
	[RULE_LABELKEEP] = "labelkeep",
};

#define DEFAULT_SEPARATOR   ";"
#define DEFAULT_REGEX	    "(.*)"
#define DEFAULT_REPLACEMENT "$1"

/* The object's members; NULL: missing. */
struct keys {
	const json_t *action;
	const json_t *source_labels;
	const json_t *separator;
	const json_t *regex;
	const json_t *target_label;
	const json_t *replacement;
	const json_t *modulus;
};

/* The members as text, with the defaults. */
struct texts {
	const char *separator;
	const char *regex;
	const char *target_label;
	const char *replacement;
};

const char *rule_action_name(enum rule_action action)
{
	return action_names[action];
}

static int __attribute__((format(printf, 2, 3)))
bad(struct relabel_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return RELABEL_BAD;
}

static int find_keys(const json_t *object, struct keys *ret, struct relabel_error *error)
{
	const struct {
		const char *name;
		const json_t **to;
	} known[] = {
		{"action", &ret->action},
		{"source_labels", &ret->source_labels},
		{"separator", &ret->separator},
		{"regex", &ret->regex},
		{"target_label", &ret->target_label},
		{"replacement", &ret->replacement},
		{"modulus", &ret->modulus},
	};
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return bad(error, "not a JSON object");
	json_object_foreach((json_t *)object, key, value) {
		size_t i = 0;

		while (i < array_size(known) && strcmp(known[i].name, key) != 0)
			i++;
		if (i == array_size(known))
			return bad(error, "%.60s: unknown key", key);
		*known[i].to = value;
	}
	return 0;
}

static int read_text(const json_t *value, const char *key, const char *otherwise, const char **ret,
		     struct relabel_error *error)
{
	if (value && !json_is_string(value))
		return bad(error, "%s: not a string", key);
	*ret = value ? json_string_value(value) : otherwise;
	return 0;
}

static int read_texts(const struct keys *keys, struct texts *ret, struct relabel_error *error)
{
	int r = read_text(keys->separator, "separator", DEFAULT_SEPARATOR, &ret->separator, error);

	if (!r)
		r = read_text(keys->regex, "regex", DEFAULT_REGEX, &ret->regex, error);
	if (!r)
		r = read_text(keys->target_label, "target_label", "", &ret->target_label, error);
	if (!r)
		r = read_text(keys->replacement, "replacement", DEFAULT_REPLACEMENT,
			      &ret->replacement, error);
	if (!r && strlen(ret->separator) > RULE_SEPARATOR_MAX)
		return bad(error, "separator: more than %d bytes", RULE_SEPARATOR_MAX);
	return r;
}

static int read_action(const json_t *value, enum rule_action *ret, struct relabel_error *error)
{
	const char *name = "";
	int r = read_text(value, "action", action_names[RULE_REPLACE], &name, error);

	if (r)
		return r;
	for (int i = 0; i < RULE_ACTION_MAX; i++)
		if (strcasecmp(name, action_names[i]) == 0) {
			*ret = (enum rule_action)i;
			return 0;
		}
	return bad(error, "action: unknown action '%.40s'", name);
}

static int read_modulus(const json_t *value, uint64_t *ret, struct relabel_error *error)
{
	if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
		return bad(error, "modulus: not a positive number");
	*ret = value ? (uint64_t)json_integer_value(value) : 0;
	return 0;
}

static int read_sources(const json_t *value, struct rule *rule, struct relabel_error *error)
{
	if (value && !json_is_array(value))
		return bad(error, "source_labels: not an array of strings");
	if (json_array_size(value) > RULE_SOURCES_MAX)
		return bad(error, "source_labels: more than %d", RULE_SOURCES_MAX);
	for (size_t i = 0; i < json_array_size(value); i++) {
		const char *name = json_string_value(json_array_get(value, i));

		if (!name || !labels_valid_name(name))
			return bad(error, "source_labels: '%.100s' is not a label name",
				   name ? name : "?");
		rule->sources[i] = strdup(name);
		if (!rule->sources[i])
			return -ENOMEM;
		rule->n_sources++;
	}
	return 0;
}

/* ---------------------------------------------------------------- what goes together */

#define BIT(action) (1u << (action))

static bool is_one_of(enum rule_action action, unsigned int actions)
{
	return BIT(action) & actions;
}

static bool is_word(char c)
{
	const char text[] = {c, '\0'};

	return (c >= '0' && c <= '9') || labels_valid_name(text);
}

/* "$1" or "${1}", without the '$'. */
static bool take_variable(const char **p)
{
	bool braces = **p == '{';

	*p += braces;
	if (!is_word(**p))
		return false;
	while (is_word(**p))
		(*p)++;
	if (braces && *(*p)++ != '}')
		return false;
	return true;
}

/* A label's name, possibly with variables, also in front. */
static bool is_name_template(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	while (*s) {
		if (*s == '$') {
			s++;
			if (!take_variable(&s))
				return false;
		} else if (!is_word(*s++)) {
			return false;
		}
	}
	return true;
}

static int check_target(enum rule_action action, const char *target, struct relabel_error *error)
{
	const unsigned int need = BIT(RULE_REPLACE) | BIT(RULE_HASHMOD) | BIT(RULE_LOWERCASE) |
				  BIT(RULE_UPPERCASE) | BIT(RULE_KEEPEQUAL) | BIT(RULE_DROPEQUAL);
	bool ok;

	if (!is_one_of(action, need))
		return 0;
	if (!*target)
		return bad(error, "target_label: missing, but %s needs it", action_names[action]);
	ok = action == RULE_REPLACE && strchr(target, '$') ? is_name_template(target)
							   : labels_valid_name(target);
	return ok ? 0 : bad(error, "target_label: '%.100s' is not a label name", target);
}

static int check_replacement(enum rule_action action, const char *replacement,
			     struct relabel_error *error)
{
	const unsigned int none = BIT(RULE_LOWERCASE) | BIT(RULE_UPPERCASE) | BIT(RULE_KEEPEQUAL) |
				  BIT(RULE_DROPEQUAL) | BIT(RULE_LABELDROP) | BIT(RULE_LABELKEEP);

	if (is_one_of(action, none) && strcmp(replacement, DEFAULT_REPLACEMENT) != 0)
		return bad(error, "replacement: not used by %s", action_names[action]);
	if (action == RULE_LABELMAP && !is_name_template(replacement))
		return bad(error, "replacement: '%.100s' is not a label name", replacement);
	return 0;
}

/* For the actions with the fewest keys. */
static int check_rest(enum rule_action action, const struct keys *keys, const struct texts *texts,
		      uint64_t modulus, struct relabel_error *error)
{
	const unsigned int equal = BIT(RULE_KEEPEQUAL) | BIT(RULE_DROPEQUAL);
	const unsigned int names = BIT(RULE_LABELDROP) | BIT(RULE_LABELKEEP);
	const char *odd = NULL;

	if (action == RULE_HASHMOD && !modulus)
		return bad(error, "modulus: missing, but hashmod needs it");
	if (!is_one_of(action, equal | names))
		return 0;
	if (modulus)
		odd = "modulus";
	if (strcmp(texts->separator, DEFAULT_SEPARATOR) != 0)
		odd = "separator";
	if (is_one_of(action, equal) && keys->regex)
		odd = "regex";
	if (is_one_of(action, names) && *texts->target_label)
		odd = "target_label";
	if (is_one_of(action, names) && keys->source_labels)
		odd = "source_labels";
	return odd ? bad(error, "%s: not used by %s", odd, action_names[action]) : 0;
}

/* ---------------------------------------------------------------- the rule */

static int refused(int r, const char *key, const struct pattern_error *why,
		   struct relabel_error *error)
{
	return r > 0 ? bad(error, "%s: %s", key, why->text) : r;
}

static int make_templates(struct rule *rule, const struct texts *texts, struct relabel_error *error)
{
	struct pattern_error why = {""};
	int r;

	if (rule->action != RULE_REPLACE && rule->action != RULE_LABELMAP)
		return 0;
	r = template_new(texts->replacement, rule->regex, &rule->replacement, &why);
	if (r)
		return refused(r, "replacement", &why, error);
	r = template_new(texts->target_label, rule->regex, &rule->target, &why);
	return refused(r, "target_label", &why, error);
}

static int make(struct rule *rule, const struct texts *texts, struct relabel_error *error)
{
	struct pattern_error why = {""};
	int r;

	rule->separator = strdup(texts->separator);
	rule->target_label = strdup(texts->target_label);
	if (!rule->separator || !rule->target_label)
		return -ENOMEM;
	r = pattern_new(texts->regex, &rule->regex, &why);
	if (r)
		return refused(r, "regex", &why, error);
	return make_templates(rule, texts, error);
}

int rule_read(const struct json_t *object, struct rule *ret, struct relabel_error *ret_error)
{
	struct keys keys = {0};
	struct texts texts = {0};
	int r = find_keys(object, &keys, ret_error);

	if (!r)
		r = read_action(keys.action, &ret->action, ret_error);
	if (!r)
		r = read_modulus(keys.modulus, &ret->modulus, ret_error);
	if (!r)
		r = read_sources(keys.source_labels, ret, ret_error);
	if (!r)
		r = read_texts(&keys, &texts, ret_error);
	if (!r)
		r = check_target(ret->action, texts.target_label, ret_error);
	if (!r)
		r = check_replacement(ret->action, texts.replacement, ret_error);
	if (!r)
		r = check_rest(ret->action, &keys, &texts, ret->modulus, ret_error);
	return r ? r : make(ret, &texts, ret_error);
}

void rule_deinit(struct rule *rule)
{
	for (size_t i = 0; i < rule->n_sources; i++)
		free(rule->sources[i]);
	free(rule->separator);
	free(rule->target_label);
	pattern_free(rule->regex);
	template_free(rule->target);
	template_free(rule->replacement);
	*rule = (struct rule){0};
}
