// SPDX-License-Identifier: Apache-2.0
/* Random cases from test/oracle/relabel, with the answers of Prometheus' own implementation. More
 * cases: make check-relabel. */
#include "support/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/labels.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "support/fixture.h"

DEFINE_CLEANUP(json_t *, json_freep, json_decref);
DEFINE_CLEANUP(struct relabel *, relabel_freep, relabel_free);
DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);

struct count {
	size_t n_rules;		/* lists of rules */
	size_t n_rules_refused; /* by both */
	size_t n_dropped;
	size_t n_rules_strict; /* refused by podprof alone, with a documented reason */
	size_t n_patterns;
	size_t n_patterns_refused;
	size_t n_patterns_strict;
	size_t n_matches;
	size_t n_groups; /* compared */
	size_t n_limits; /* matches given up */
	size_t n_wrong;
};

static void wrong(struct count *count, const char *line, const char *what, const char *more)
{
	count->n_wrong++;
	if (count->n_wrong <= 20)
		print_error("%s: %s\n  %s\n", what, more, line);
}

/* Rules accepted by Prometheus and refused by podprof, all in docs/relabelling.md. */
static bool is_known_refusal(const char *why)
{
	static const char *const known[] = {
		"two groups have the same name",
	};

	for (size_t i = 0; i < array_size(known); i++)
		if (strstr(why, known[i]))
			return true;
	return false;
}

static void read_labels(const json_t *object, struct labels *ret)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
		assert_int_equal(labels_set(ret, name, json_string_value(value)), 0);
}

static void text_of_labels(const struct labels *l, char *ret, size_t n)
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < l->n && used < n; i++)
		used += (size_t)snprintf(ret + used, n - used, "%s=\"%s\" ", l->items[i].name,
					 l->items[i].value);
}

static void compare_labels(struct count *count, const char *line, const json_t *c,
			   const struct relabel *relabel)
{
	_cleanup_(labels_deinit) struct labels ours = {.max = LABELS_META_MAX};
	_cleanup_(labels_deinit) struct labels theirs = {.max = LABELS_META_MAX};
	bool dropped = json_is_true(json_object_get(c, "dropped"));
	struct relabel_result result;
	char text[4096];
	int r;

	read_labels(json_object_get(c, "labels"), &ours);
	read_labels(json_object_get(c, "result"), &theirs);
	r = relabel_apply(relabel, &ours, NULL, &result);
	text_of_labels(&ours, text, sizeof(text));
	count->n_dropped += dropped;
	if (r == RELABEL_GAVE_UP) {
		count->n_limits++;
		return;
	}
	if (r != (dropped ? RELABEL_DROPPED : RELABEL_KEPT))
		wrong(count, line, "outcome", relabel_outcome_name(r));
	else if (dropped && json_integer_value(json_object_get(c, "rule")) != (int)result.rule)
		wrong(count, line, "dropped by another rule", text);
	else if (!labels_equal(&ours, &theirs))
		wrong(count, line, "other labels", text);
}

static void check_rules(struct count *count, const char *line, const json_t *c)
{
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	bool refused = json_is_true(json_object_get(c, "refused"));
	struct relabel_error error = {""};
	int r = relabel_new(json_object_get(c, "rules"), &relabel, &error);

	count->n_rules++;
	if (r && refused)
		count->n_rules_refused++;
	else if (r && is_known_refusal(error.text))
		count->n_rules_strict++;
	else if (r || refused)
		wrong(count, line, r ? "refused by us" : "refused by them", error.text);
	else
		compare_labels(count, line, c, relabel);
}

static void compare_group(struct count *count, const char *line, const struct pattern_match *m,
			  size_t i, const json_t *theirs)
{
	struct strview ours;
	bool is_set = pattern_match_group(m, i, &ours);
	char what[64];

	count->n_groups++;
	snprintf(what, sizeof(what), "group %zu", i);
	if (is_set != json_is_string(theirs) ||
	    (is_set && !strview_is(&ours, json_string_value(theirs))))
		wrong(count, line, what, is_set ? ours.p : "(not set)");
}

static void compare_match(struct count *count, const char *line, const json_t *c,
			  const struct pattern *p)
{
	const json_t *groups = json_object_get(c, "groups");
	const char *text = json_string_value(json_object_get(c, "text"));
	struct pattern_match m;
	int r = pattern_match(p, text, strlen(text), &m);

	if (r == PATTERN_LIMIT) {
		count->n_limits++;
		return;
	}
	if (r != (json_is_array(groups) ? PATTERN_OK : PATTERN_NO_MATCH)) {
		wrong(count, line, "match", r == PATTERN_OK ? "yes" : "no");
		return;
	}
	if (r)
		return;
	count->n_matches++;
	if (json_array_size(groups) != pattern_n_groups(p) + 1)
		wrong(count, line, "groups", "another number");
	for (size_t i = 0; i < json_array_size(groups); i++)
		compare_group(count, line, &m, i, json_array_get(groups, i));
}

static void check_pattern(struct count *count, const char *line, const json_t *c)
{
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	bool refused = json_is_true(json_object_get(c, "refused"));
	struct pattern_error error = {""};
	int r = pattern_new(json_string_value(json_object_get(c, "pattern")), &p, &error);

	count->n_patterns++;
	if (r && refused)
		count->n_patterns_refused++;
	else if (r && is_known_refusal(error.text))
		count->n_patterns_strict++;
	else if (r || refused)
		wrong(count, line, r ? "refused by us" : "refused by them", error.text);
	else
		compare_match(count, line, c, p);
}

static void check_line(struct count *count, const char *line)
{
	json_error_t error;
	_cleanup_(json_freep) json_t *c = json_loads(line, 0, &error);

	assert_non_null(c);
	if (json_object_get(c, "rules"))
		check_rules(count, line, c);
	else
		check_pattern(count, line, c);
}

static void test_cases(void **state)
{
	const char *path = getenv("PODPROF_TEST_RELABEL_CASES");
	_cleanup_(fclosep) FILE *file = NULL;
	_cleanup_(freep) char *line = NULL;
	char fixture[FIXTURE_PATH_MAX];
	struct count count = {0};
	size_t cap = 0;
	ssize_t n;

	(void)state;
	file = fopen(path ? path : fixture_path("relabel-cases.jsonl", fixture), "re");
	assert_non_null(file);
	while ((n = getline(&line, &cap, file)) > 0) {
		line[n - 1] = '\0';
		check_line(&count, line);
	}
	print_message("rules: %zu lists, %zu refused, %zu dropped, %zu refused by us alone\n",
		      count.n_rules, count.n_rules_refused, count.n_dropped, count.n_rules_strict);
	print_message("patterns: %zu, %zu refused, %zu matches with %zu groups, %zu "
		      "refused by us alone, %zu given up\n",
		      count.n_patterns, count.n_patterns_refused, count.n_matches, count.n_groups,
		      count.n_patterns_strict, count.n_limits);
	freep(&line);
	line = NULL;
	assert_int_equal(count.n_wrong, 0);
	assert_true(count.n_limits <= count.n_patterns / 10000);
	/* enough cases of each kind */
	assert_true(count.n_rules > 1000 && count.n_rules_refused * 2 < count.n_rules);
	assert_true(count.n_dropped > count.n_rules / 20);
	assert_true(count.n_matches > count.n_patterns / 10 && count.n_groups > count.n_matches);
	assert_true(count.n_rules_strict + count.n_patterns_strict < count.n_rules / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
