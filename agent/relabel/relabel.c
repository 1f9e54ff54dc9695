// SPDX-License-Identifier: Apache-2.0
/*
 * One function for each action. Prometheus' rules for all of them: a missing label has the empty
 * value, to set a label to the empty value removes it, and rules about names see the names from
 * before the rule.
 *
 * Too much work for one match (pattern.h) drops the set, and so does the end of the CPU time for
 * all rules: the agent has one loop, and 256 rules over a pod's 512 names are 131,072 matches. To
 * assume a match, or none, could keep a set against a drop rule, or set wrong labels. A missing and
 * counted profile is the lesser evil. The authors of pods write the values and can leave their pods
 * out this way; an annotation does the same.
 *
 * Differences from Prometheus: names and numbers of labels have ceilings, values are cut at
 * LABELS_VALUE_MAX, and labelmap leaves out a wrong name (there it is set, and the target is
 * refused later).
 */
#include "relabel/relabel.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "relabel/letters.h"
#include "relabel/rule.h"

/* Bytes of the joined values of a rule's source labels, all of full length. Reached: -. */
#define JOINED_MAX ((size_t)RULE_SOURCES_MAX * (LABELS_VALUE_MAX + RULE_SEPARATOR_MAX))

/* Work of matches (pattern.h) between two readings of the clock: 6 ms at most. */
#define CLOCK_WORK ((size_t)1 << 20)

/* libiberty's MD5 (RFC 1321), without a header in Debian's package. Writes 16 bytes. */
void *md5_buffer(const char *data, size_t n, void *ret);

struct relabel {
	size_t n;
	struct rule rules[];
};

/**
 * struct application - one rule at work
 * @value:  of the source labels, NUL-terminated
 * @end_ns: end of the time for all rules, in the thread's CPU time
 * @work:   of matches since the last reading of the clock
 * @origin: "relabel_configs[N]"
 */
struct application {
	const struct rule *rule;
	struct labels *labels;
	struct labels *origins;
	struct relabel_result *result;
	struct buf value;
	uint64_t end_ns;
	size_t work;
	char origin[48];
};

const char *relabel_outcome_name(int outcome)
{
	static const char *const names[] = {"kept", "dropped", "gave_up", "bad"};

	return outcome >= 0 && outcome < (int)array_size(names) ? names[outcome] : "failed";
}

/* ---------------------------------------------------------------- actions */

static const char *value_of(const struct application *a, const char *name)
{
	const char *value = labels_get(a->labels, name);

	return value ? value : "";
}

static int set_label(struct application *a, const char *name, const char *value)
{
	int r = labels_set(a->labels, name, value);

	if (r < 0)
		return r;
	if (r) {
		a->result->n_left_out++;
		return 0;
	}
	if (a->origins)
		r = labels_set(a->origins, name, *value ? a->origin : "");
	return r < 0 ? r : 0;
}

static bool is_over(const struct application *a)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID) >= a->end_ns;
}

/* 0, PATTERN_NO_MATCH or PATTERN_LIMIT. A rule about names has up to a thousand matches, and a
 * reading of the clock costs as much as three short ones. */
static int match(struct application *a, const char *text, struct pattern_match *m)
{
	size_t n = strlen(text);

	a->work += pattern_work(a->rule->regex, n);
	if (a->work > CLOCK_WORK) {
		a->work = 0;
		if (is_over(a))
			return PATTERN_LIMIT;
	}
	return pattern_match(a->rule->regex, text, n, m);
}

static int outcome_of(int r)
{
	return r == PATTERN_LIMIT ? RELABEL_GAVE_UP : r == PATTERN_NO_MATCH ? 0 : r;
}

/* A name beyond its ceiling is a wrong name. labels_set() cuts a value, far below its ceiling here.
 */
static int apply_replace(struct application *a)
{
	_cleanup_(buf_deinit) struct buf name = BUF_INIT(RELABEL_NAME_MAX);
	_cleanup_(buf_deinit) struct buf value = BUF_INIT(JOINED_MAX + TEMPLATE_TEXT_MAX);
	struct pattern_match m;
	int r = match(a, a->value.data, &m);

	if (r)
		return outcome_of(r);
	r = template_expand(a->rule->target, &m, &name);
	if (r > 0)
		a->result->n_left_out++;
	/* a wrong name is not counted: people write such rules to set a label in some cases only */
	if (r || !name.data || !labels_valid_name(name.data))
		return r < 0 ? r : 0;
	r = template_expand(a->rule->replacement, &m, &value);
	return r < 0 ? r : set_label(a, name.data, value.data ? value.data : "");
}

static int apply_keep(struct application *a)
{
	int r = match(a, a->value.data, NULL);

	return r == PATTERN_NO_MATCH ? RELABEL_DROPPED : outcome_of(r);
}

static int apply_drop(struct application *a)
{
	int r = match(a, a->value.data, NULL);

	return r == 0 ? RELABEL_DROPPED : outcome_of(r);
}

static int apply_keepequal(struct application *a)
{
	return strcmp(value_of(a, a->rule->target_label), a->value.data) == 0 ? 0 : RELABEL_DROPPED;
}

static int apply_dropequal(struct application *a)
{
	return strcmp(value_of(a, a->rule->target_label), a->value.data) == 0 ? RELABEL_DROPPED : 0;
}

/* The last eight bytes of the MD5 sum, the first of them the most significant. */
static int apply_hashmod(struct application *a)
{
	uint8_t sum[16];
	uint64_t n = 0;
	char text[24];

	md5_buffer(a->value.data, a->value.len, sum);
	for (size_t i = 8; i < sizeof(sum); i++)
		n = n << 8 | sum[i];
	snprintf(text, sizeof(text), "%" PRIu64, n % a->rule->modulus);
	return set_label(a, a->rule->target_label, text);
}

static int change_case(struct application *a, int (*change)(const char *text, struct buf *to))
{
	/* a character of two bytes may become one of three */
	_cleanup_(buf_deinit) struct buf value = BUF_INIT(2 * JOINED_MAX);
	int r = change(a->value.data, &value);

	return r < 0 ? r : set_label(a, a->rule->target_label, value.data ? value.data : "");
}

static int apply_lowercase(struct application *a)
{
	return change_case(a, letters_lower);
}

static int apply_uppercase(struct application *a)
{
	return change_case(a, letters_upper);
}

/* Adds the new name of one label, with its value, to @mapped. The set changes after the last one.
 */
static int map_label(struct application *a, const struct label *label, struct labels *mapped)
{
	_cleanup_(buf_deinit) struct buf name = BUF_INIT(RELABEL_NAME_MAX);
	struct pattern_match m;
	int r = match(a, label->name, &m);

	if (r)
		return outcome_of(r);
	r = template_expand(a->rule->replacement, &m, &name);
	if (!r)
		r = name.data ? labels_set(mapped, name.data, label->value) : LABELS_BAD_NAME;
	if (r > 0)
		a->result->n_left_out++;
	return r < 0 ? r : 0;
}

static int apply_labelmap(struct application *a)
{
	_cleanup_(labels_deinit) struct labels mapped = {.max = LABELS_META_MAX};
	int r = 0;

	for (size_t i = 0; i < a->labels->n && !r; i++)
		r = map_label(a, &a->labels->items[i], &mapped);
	for (size_t i = 0; i < mapped.n && !r; i++)
		r = set_label(a, mapped.items[i].name, mapped.items[i].value);
	return r;
}

/* Removes the labels with this outcome of the match: PATTERN_OK or PATTERN_NO_MATCH. */
static int remove_labels(struct application *a, int unwanted)
{
	for (size_t i = a->labels->n; i-- > 0;) {
		_cleanup_(freep) char *name = NULL;
		int r = match(a, a->labels->items[i].name, NULL);

		if (r == PATTERN_LIMIT)
			return RELABEL_GAVE_UP;
		if (r != unwanted)
			continue;
		name = strdup(a->labels->items[i].name);
		if (!name)
			return -ENOMEM;
		r = set_label(a, name, "");
		if (r)
			return r;
	}
	return 0;
}

static int apply_labeldrop(struct application *a)
{
	return remove_labels(a, PATTERN_OK);
}

static int apply_labelkeep(struct application *a)
{
	return remove_labels(a, PATTERN_NO_MATCH);
}

static int (*const actions[RULE_ACTION_MAX])(struct application *a) = {
	[RULE_REPLACE] = apply_replace,	    [RULE_KEEP] = apply_keep,
	[RULE_DROP] = apply_drop,	    [RULE_KEEPEQUAL] = apply_keepequal,
	[RULE_DROPEQUAL] = apply_dropequal, [RULE_HASHMOD] = apply_hashmod,
	[RULE_LOWERCASE] = apply_lowercase, [RULE_UPPERCASE] = apply_uppercase,
	[RULE_LABELMAP] = apply_labelmap,   [RULE_LABELDROP] = apply_labeldrop,
	[RULE_LABELKEEP] = apply_labelkeep,
};

static int join_sources(struct application *a)
{
	int r = buf_puts(&a->value, "");

	for (size_t i = 0; i < a->rule->n_sources && !r; i++) {
		if (i)
			r = buf_puts(&a->value, a->rule->separator);
		if (!r)
			r = buf_puts(&a->value, value_of(a, a->rule->sources[i]));
	}
	return r < 0 ? r : 0;
}

static int apply_rule(struct application *a)
{
	int r = is_over(a) ? RELABEL_GAVE_UP : join_sources(a);

	return r ? r : actions[a->rule->action](a);
}

int relabel_apply(const struct relabel *relabel, struct labels *labels, struct labels *origins,
		  struct relabel_result *ret)
{
	const uint64_t end_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) + RELABEL_CPU_NS_MAX;

	*ret = (struct relabel_result){0};
	for (size_t i = 0; relabel && i < relabel->n; i++) {
		struct application a = {
			.rule = &relabel->rules[i],
			.labels = labels,
			.origins = origins,
			.result = ret,
			.value = BUF_INIT(JOINED_MAX),
			.end_ns = end_ns,
		};
		int r;

		snprintf(a.origin, sizeof(a.origin), "relabel_configs[%zu]", i);
		r = apply_rule(&a);
		buf_deinit(&a.value);
		ret->rule = i;
		if (r)
			return r;
	}
	return RELABEL_KEPT;
}

/* ---------------------------------------------------------------- the list */

DEFINE_CLEANUP(struct relabel *, relabel_freep, relabel_free);

static int read_rule(const json_t *object, size_t i, struct rule *ret, struct relabel_error *error)
{
	struct relabel_error why = {""};
	int r = rule_read(object, ret, &why);

	if (r > 0)
		snprintf(error->text, sizeof(error->text), "relabel_configs[%zu]%s%.360s", i,
			 json_is_object(object) ? "." : ": ", why.text);
	return r;
}

int relabel_new(const struct json_t *configs, struct relabel **ret, struct relabel_error *ret_error)
{
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	size_t n = json_array_size(configs);

	if ((configs && !json_is_array(configs)) || n > RELABEL_RULES_MAX) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			 "relabel_configs: not an array of up to %d objects", RELABEL_RULES_MAX);
		return RELABEL_BAD;
	}
	relabel = calloc(1, sizeof(*relabel) + n * sizeof(relabel->rules[0]));
	if (!relabel)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r;

		relabel->n = i + 1;
		r = read_rule(json_array_get(configs, i), i, &relabel->rules[i], ret_error);
		if (r)
			return r;
	}
	*ret = take_ptr(relabel);
	return 0;
}

void relabel_free(struct relabel *relabel)
{
	if (!relabel)
		return;
	for (size_t i = 0; i < relabel->n; i++)
		rule_deinit(&relabel->rules[i]);
	free(relabel);
}

size_t relabel_n_rules(const struct relabel *relabel)
{
	return relabel ? relabel->n : 0;
}

void relabel_describe(const struct relabel *relabel, size_t i, char ret[RELABEL_DESCRIPTION_MAX])
{
	const struct rule *rule = &relabel->rules[i];
	_cleanup_(buf_deinit) struct buf sources = BUF_INIT(100);

	for (size_t s = 0; s < rule->n_sources; s++)
		if (buf_printf(&sources, "%s%s", s ? "," : "", rule->sources[s]))
			break;
	snprintf(ret, RELABEL_DESCRIPTION_MAX, "relabel_configs[%zu] (%s%s%s, %s %.80s)", i,
		 rule_action_name(rule->action), sources.len ? ", source_labels " : "",
		 sources.len ? sources.data : "", *rule->target_label ? "target_label" : "regex",
		 *rule->target_label ? rule->target_label : pattern_text(rule->regex));
	utf8_make_printable(ret);
}
