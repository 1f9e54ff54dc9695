// SPDX-License-Identifier: Apache-2.0
/* Effects of rules, and errors of invalid rules. test_prometheus.c compares the effects with
 * Prometheus. */
#include "support/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/labels.h"
#include "relabel/relabel.h"
#include "relabel/rule.h"
#include "support/allocfail.h"

DEFINE_CLEANUP(json_t *, json_freep, json_decref);
DEFINE_CLEANUP(struct relabel *, relabel_freep, relabel_free);

static int read_rules(const char *text, struct relabel **ret, struct relabel_error *error)
{
	json_error_t where;
	_cleanup_(json_freep) json_t *rules = json_loads(text, JSON_DECODE_ANY, &where);

	assert_non_null(rules);
	return relabel_new(rules, ret, error);
}

static void rules_of(const char *text, struct relabel **ret)
{
	struct relabel_error error = {""};
	int r = read_rules(text, ret, &error);

	print_message("%s\n", error.text);
	assert_int_equal(r, 0);
}

/* "a=1 b=2" */
static int set_labels(struct labels *l, const char *text)
{
	struct strview rest = strview_of(text), word, name;

	while (strview_word(&rest, &word)) {
		char name_copy[64], value[64];
		int r;

		if (!strview_until(&word, '=', &name))
			break;
		snprintf(name_copy, sizeof(name_copy), "%.*s", (int)strview_len(&name), name.p);
		snprintf(value, sizeof(value), "%.*s", (int)strview_len(&word), word.p);
		r = labels_set(l, name_copy, value);
		if (r)
			return r;
	}
	return 0;
}

static void assert_labels(const struct labels *l, const char *text)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(10000);

	for (size_t i = 0; i < l->n; i++)
		assert_int_equal(buf_printf(&b, "%s%s=%s", i ? " " : "", l->items[i].name,
					    l->items[i].value),
				 0);
	assert_string_equal(b.data ? b.data : "", text);
}

static void test_actions(void **state)
{
	static const struct {
		const char *rules, *before;
		int outcome;
		const char *after;
	} rows[] = {
		{"[]", "a=1", RELABEL_KEPT, "a=1"},
		/* the defaults */
		{"[{\"source_labels\":[\"a\",\"b\"],\"target_label\":\"c\"}]", "a=1 b=2",
		 RELABEL_KEPT, "a=1 b=2 c=1;2"},
		{"[{\"target_label\":\"c\",\"replacement\":\"x\"}]", "", RELABEL_KEPT, "c=x"},
		{"[{\"target_label\":\"a\",\"replacement\":\"\"}]", "a=1", RELABEL_KEPT, ""},
		{"[{\"source_labels\":[\"a\"],\"target_label\":\"x_$1\",\"replacement\":\"1\"}]",
		 "a=b", RELABEL_KEPT, "a=b x_b=1"},
		{"[{\"source_labels\":[\"a\"],\"target_label\":\"$1\",\"replacement\":\"1\"}]",
		 "a=1b", RELABEL_KEPT, "a=1b"},
		{"[{\"source_labels\":[\"a\"],\"regex\":\"b.*\",\"target_label\":\"c\"}]", "a=1",
		 RELABEL_KEPT, "a=1"},
		{"[{\"action\":\"keep\",\"source_labels\":[\"a\"],\"regex\":\"1|2\"}]", "a=2",
		 RELABEL_KEPT, "a=2"},
		{"[{\"action\":\"keep\",\"source_labels\":[\"a\"],\"regex\":\"1\"}]", "b=1",
		 RELABEL_DROPPED, "b=1"},
		{"[{\"action\":\"drop\",\"source_labels\":[\"a\"],\"regex\":\"\"}]", "b=1",
		 RELABEL_DROPPED, "b=1"},
		{"[{\"action\":\"keepequal\",\"source_labels\":[\"a\"],\"target_label\":\"b\"}]",
		 "a=1 b=1", RELABEL_KEPT, "a=1 b=1"},
		{"[{\"action\":\"dropequal\",\"source_labels\":[\"a\"],\"target_label\":\"b\"}]",
		 "", RELABEL_DROPPED, ""},
		{"[{\"action\":\"hashmod\",\"source_labels\":[\"a\"],\"target_label\":\"b\","
		 "\"modulus\":1000}]",
		 "a=abc", RELABEL_KEPT, "a=abc b=458"},
		{"[{\"action\":\"lowercase\",\"source_labels\":[\"a\"],\"target_label\":\"a\"}]",
		 "a=W\xc3\x84H", RELABEL_KEPT, "a=w\xc3\xa4h"},
		{"[{\"action\":\"UpperCase\",\"source_labels\":[\"a\"],\"target_label\":\"a\"}]",
		 "a=stra\xc3\x9f\xc3\xa9\xce\xbc", RELABEL_KEPT, "a=STRA\xc3\x9f\xc3\x89\xce\x9c"},
		{"[{\"action\":\"labelmap\",\"regex\":\"__(.+)\"}]", "__a=1 __b=2 b=3",
		 RELABEL_KEPT, "__a=1 __b=2 a=1 b=2"},
		/* by the labels before the rule */
		{"[{\"action\":\"labelmap\",\"regex\":\"(.*)\",\"replacement\":\"a$1\"}]",
		 "a=1 aa=2", RELABEL_KEPT, "a=1 aa=1 aaa=2"},
		{"[{\"action\":\"labeldrop\",\"regex\":\"__.*|c\"}]", "__a=1 b=2 c=3", RELABEL_KEPT,
		 "b=2"},
		{"[{\"action\":\"labelkeep\",\"regex\":\"__.*|c\"}]", "__a=1 b=2 c=3", RELABEL_KEPT,
		 "__a=1 c=3"},
		/* earlier effects stay */
		{"[{\"target_label\":\"a\",\"replacement\":\"x\"},"
		 "{\"action\":\"drop\",\"source_labels\":[\"a\"],\"regex\":\"x\"},"
		 "{\"target_label\":\"b\",\"replacement\":\"x\"}]",
		 "", RELABEL_DROPPED, "a=x"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_result result;

		row_begin(rows[i].rules);
		rules_of(rows[i].rules, &relabel);
		assert_int_equal(set_labels(&l, rows[i].before), 0);
		assert_int_equal(relabel_apply(relabel, &l, NULL, &result), rows[i].outcome);
		assert_labels(&l, rows[i].after);
		assert_int_equal(result.n_left_out, 0);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *rules, *error;
	} rows[] = {
		{"{}", "relabel_configs: not an array of up to 256 objects"},
		{"null", "relabel_configs: not an array of up to 256 objects"},
		{"[{\"target_label\":\"a\"},7]", "relabel_configs[1]: not a JSON object"},
		{"[{\"sourcelabels\":[]}]", "relabel_configs[0].sourcelabels: unknown key"},
		{"[{\"action\":\"kepp\"}]", "relabel_configs[0].action: unknown action 'kepp'"},
		{"[{\"action\":7}]", "relabel_configs[0].action: not a string"},
		{"[{\"regex\":null}]", "relabel_configs[0].regex: not a string"},
		{"[{\"action\":\"keep\",\"regex\":\"a(?=b)\"}]",
		 "relabel_configs[0].regex: invalid perl operator: (?="},
		{"[{}]", "relabel_configs[0].target_label: missing, but replace needs it"},
		{"[{\"action\":\"hashmod\",\"target_label\":\"a\"}]",
		 "relabel_configs[0].modulus: missing, but hashmod needs it"},
		{"[{\"action\":\"hashmod\",\"target_label\":\"a\",\"modulus\":-1}]",
		 "relabel_configs[0].modulus: not a positive number"},
		{"[{\"action\":\"hashmod\",\"target_label\":\"a$1\",\"modulus\":2}]",
		 "relabel_configs[0].target_label: 'a$1' is not a label name"},
		{"[{\"target_label\":\"a-b\"}]",
		 "relabel_configs[0].target_label: 'a-b' is not a label name"},
		{"[{\"target_label\":\"${1\"}]",
		 "relabel_configs[0].target_label: '${1' is not a label name"},
		{"[{\"action\":\"labelmap\",\"replacement\":\"a.b\"}]",
		 "relabel_configs[0].replacement: 'a.b' is not a label name"},
		{"[{\"source_labels\":\"a\",\"target_label\":\"a\"}]",
		 "relabel_configs[0].source_labels: not an array of strings"},
		{"[{\"source_labels\":[\"a.b\"],\"target_label\":\"a\"}]",
		 "relabel_configs[0].source_labels: 'a.b' is not a label name"},
		{"[{\"source_labels\":[7],\"target_label\":\"a\"}]",
		 "relabel_configs[0].source_labels: '?' is not a label name"},
		{"[{\"action\":\"labeldrop\",\"source_labels\":[]}]",
		 "relabel_configs[0].source_labels: not used by labeldrop"},
		{"[{\"action\":\"labelkeep\",\"target_label\":\"a\"}]",
		 "relabel_configs[0].target_label: not used by labelkeep"},
		{"[{\"action\":\"labelkeep\",\"modulus\":1}]",
		 "relabel_configs[0].modulus: not used by labelkeep"},
		{"[{\"action\":\"keepequal\",\"target_label\":\"a\",\"regex\":\"(.*)\"}]",
		 "relabel_configs[0].regex: not used by keepequal"},
		{"[{\"action\":\"dropequal\",\"target_label\":\"a\",\"separator\":\"\"}]",
		 "relabel_configs[0].separator: not used by dropequal"},
		{"[{\"action\":\"lowercase\",\"target_label\":\"a\",\"replacement\":\"x\"}]",
		 "relabel_configs[0].replacement: not used by lowercase"},
		{"[{\"target_label\":\"a\",\"separator\":"
		 "\"01234567890123456789012345678901234567890"
		 "123456789012345678901234\"}]",
		 "relabel_configs[0].separator: more than 64 bytes"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_error error = {""};

		row_begin(rows[i].rules);
		assert_int_equal(read_rules(rows[i].rules, &relabel, &error), RELABEL_BAD);
		print_message("%s\n", error.text);
		assert_non_null(strstr(error.text, rows[i].error));
	}
}

static void test_ceilings(void **state)
{
	static const struct {
		const char *name, *before, *piece, *after;
		size_t n;
		int outcome;
	} rows[] = {
		{"rules", "[{\"target_label\":\"a\"}", ",{\"target_label\":\"a\"}", "]",
		 RELABEL_RULES_MAX - 1, 0},
		{"one more", "[{\"target_label\":\"a\"}", ",{\"target_label\":\"a\"}", "]",
		 RELABEL_RULES_MAX, RELABEL_BAD},
		{"sources", "[{\"target_label\":\"a\",\"source_labels\":[\"a\"", ",\"a\"", "]}]",
		 RULE_SOURCES_MAX - 1, 0},
		{"one more source", "[{\"target_label\":\"a\",\"source_labels\":[\"a\"", ",\"a\"",
		 "]}]", RULE_SOURCES_MAX, RELABEL_BAD},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(1 << 20);
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_error error = {""};

		row_begin(rows[i].name);
		assert_int_equal(buf_puts(&b, rows[i].before), 0);
		for (size_t n = 0; n < rows[i].n; n++)
			assert_int_equal(buf_puts(&b, rows[i].piece), 0);
		assert_int_equal(buf_puts(&b, rows[i].after), 0);
		assert_int_equal(read_rules(b.data, &relabel, &error), rows[i].outcome);
	}
}

static const char three_rules[] =
	"[{\"source_labels\":[\"namespace\",\"pod\"],\"target_label\":\"a\"},"
	"{\"action\":\"labelmap\",\"regex\":\"__(.*)\"},"
	"{\"action\":\"drop\",\"source_labels\":[\"namespace\"],\"regex\":\"kube-.*\"},"
	"{\"action\":\"labeldrop\",\"regex\":\"pod|__.*\"}]";

static void test_origins(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(labels_deinit) struct labels origins = {.max = LABELS_META_MAX};
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	struct relabel_result result;

	(void)state;
	rules_of(three_rules, &relabel);
	assert_int_equal(set_labels(&l, "namespace=web pod=web-0 __a=x __b=y"), 0);
	assert_int_equal(set_labels(&origins, "namespace=kubelet pod=kubelet other=me"), 0);
	assert_int_equal(relabel_apply(relabel, &l, &origins, &result), RELABEL_KEPT);
	assert_labels(&l, "a=x b=y namespace=web");
	assert_labels(&origins, "a=relabel_configs[1] b=relabel_configs[1] namespace=kubelet "
				"other=me");
}

static void test_dropped_by(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	char text[RELABEL_DESCRIPTION_MAX];
	struct relabel_result result;

	(void)state;
	rules_of(three_rules, &relabel);
	assert_int_equal(relabel_n_rules(relabel), 4);
	assert_int_equal(set_labels(&l, "namespace=kube-system"), 0);
	assert_int_equal(relabel_apply(relabel, &l, NULL, &result), RELABEL_DROPPED);
	assert_int_equal(result.rule, 2);
	relabel_describe(relabel, 2, text);
	assert_string_equal(text, "relabel_configs[2] (drop, source_labels namespace, "
				  "regex kube-.*)");
	relabel_describe(relabel, 0, text);
	assert_string_equal(text, "relabel_configs[0] (replace, source_labels namespace,pod, "
				  "target_label a)");
	relabel_describe(relabel, 3, text);
	assert_string_equal(text, "relabel_configs[3] (labeldrop, regex pod|__.*)");
}

static void fill(struct labels *l, size_t n)
{
	char name[32];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "__l%zu", i);
		assert_int_equal(labels_set(l, name, "x"), 0);
	}
}

static void test_left_out(void **state)
{
	static const struct {
		const char *name, *rules;
		size_t n, n_left_out, n_after;
	} rows[] = {
		{"it fits", "[{\"action\":\"labelmap\",\"regex\":\"__(.*)\"}]", LABELS_META_MAX / 2,
		 0, LABELS_META_MAX},
		{"the set is full", "[{\"action\":\"labelmap\",\"regex\":\"__(.*)\"}]",
		 LABELS_META_MAX / 2 + 2, 4, LABELS_META_MAX},
		{"no names", "[{\"action\":\"labelmap\",\"regex\":\"__l(.*)\"}]", 3, 3, 3},
		{"empty names", "[{\"action\":\"labelmap\",\"regex\":\"__l.*\"}]", 3, 3, 3},
		{"one that is full", "[{\"target_label\":\"a\",\"replacement\":\"b\"}]",
		 LABELS_META_MAX, 1, LABELS_META_MAX},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_result result;

		row_begin(rows[i].name);
		rules_of(rows[i].rules, &relabel);
		fill(&l, rows[i].n);
		assert_int_equal(relabel_apply(relabel, &l, NULL, &result), RELABEL_KEPT);
		assert_int_equal(result.n_left_out, rows[i].n_left_out);
		assert_int_equal(l.n, rows[i].n_after);
	}
}

static void long_value(char *ret, size_t n)
{
	memset(ret, 'a', n - 1);
	ret[n - 1] = '\0';
}

static void test_long(void **state)
{
	static const char rules[] = "[{\"source_labels\":[\"a\",\"a\"],\"target_label\":\"b\","
				    "\"replacement\":\"<$1$1>\"},"
				    "{\"source_labels\":[\"a\"],\"target_label\":\"$1\"}]";
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	char value[LABELS_VALUE_MAX + 1];
	struct relabel_result result;

	(void)state;
	rules_of(rules, &relabel);
	long_value(value, sizeof(value));
	assert_int_equal(labels_set(&l, "a", value), 0);
	assert_int_equal(relabel_apply(relabel, &l, NULL, &result), RELABEL_KEPT);
	/* a value is cut, a name is not used */
	assert_int_equal(strlen(labels_get(&l, "b")), LABELS_VALUE_MAX);
	assert_int_equal(labels_get(&l, "b")[0], '<');
	assert_int_equal(l.n, 2);
	assert_int_equal(result.n_left_out, 1);
}

/* A match beyond the permitted work: a program of 6,000 instructions and a text of 2,000 bytes, for
 * any action. */
static void test_gave_up(void **state)
{
	static const char *const rows[] = {
		"[{\"target_label\":\"x\"},{\"action\":\"drop\",\"source_labels\":[\"a\"],"
		"\"regex\":\".{1000}b\"}]",
		"[{\"target_label\":\"x\"},{\"action\":\"keep\",\"source_labels\":[\"a\"],"
		"\"regex\":\".{1000}b\"}]",
		"[{\"target_label\":\"x\"},{\"source_labels\":[\"a\"],\"regex\":\".{1000}b\","
		"\"target_label\":\"b\",\"replacement\":\"b\"}]",
	};
	char value[2000];

	(void)state;
	long_value(value, sizeof(value));
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_result result;

		row_begin(rows[i]);
		rules_of(rows[i], &relabel);
		assert_int_equal(labels_set(&l, "a", value), 0);
		assert_int_equal(relabel_apply(relabel, &l, NULL, &result), RELABEL_GAVE_UP);
		assert_int_equal(result.rule, 1);
	}
}

/* No single rule takes too long, but all together do: 256 rules of some milliseconds each, and 256
 * rules over each name of a pod with the largest metadata. */
static void test_gave_up_after_many(void **state)
{
	static const char *const rules[] = {
		"{\"source_labels\":[\"a\"],\"regex\":\"[ab]*a[ab]{999}c\",\"target_label\":\"x\"}",
		"{\"action\":\"labelmap\",\"regex\":\".*0.{200}l.*\"}"};
	char value[2000], name[300];

	(void)state;
	long_value(value, sizeof(value));
	for (size_t i = 0; i < array_size(rules); i++) {
		_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
		_cleanup_(buf_deinit) struct buf text = BUF_INIT(1u << 20);
		_cleanup_(relabel_freep) struct relabel *relabel = NULL;
		struct relabel_result result;

		assert_int_equal(buf_puts(&text, "["), 0);
		for (int k = 0; k < RELABEL_RULES_MAX; k++)
			assert_int_equal(buf_printf(&text, "%s%s", k ? "," : "", rules[i]), 0);
		assert_int_equal(buf_puts(&text, "]"), 0);
		rules_of(text.data, &relabel);
		assert_int_equal(labels_set(&l, "a", value), 0);
		for (int k = 0; k < 512; k++) {
			snprintf(name, sizeof(name), "__meta_kubernetes_pod_label_%0250d", k);
			assert_int_equal(labels_set(&l, name, "v"), 0);
		}
		assert_int_equal(relabel_apply(relabel, &l, NULL, &result), RELABEL_GAVE_UP);
		assert_true(result.rule < RELABEL_RULES_MAX - 1);
	}
}

static void test_none(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	struct relabel_result result;

	(void)state;
	assert_int_equal(set_labels(&l, "a=1"), 0);
	assert_int_equal(relabel_apply(NULL, &l, NULL, &result), RELABEL_KEPT);
	assert_int_equal(l.n, 1);
	assert_int_equal(relabel_n_rules(NULL), 0);
	assert_string_equal(relabel_outcome_name(RELABEL_GAVE_UP), "gave_up");
}

static const char all_rules[] =
	"[{\"source_labels\":[\"a\",\"b\"],\"target_label\":\"c\"},"
	"{\"action\":\"hashmod\",\"source_labels\":[\"a\"],\"target_label\":\"d\",\"modulus\":8},"
	"{\"action\":\"uppercase\",\"source_labels\":[\"a\"],\"target_label\":\"e\"},"
	"{\"action\":\"labelmap\",\"regex\":\"__(.*)\"},"
	"{\"action\":\"dropequal\",\"source_labels\":[\"a\"],\"target_label\":\"b\"},"
	"{\"action\":\"keep\",\"source_labels\":[\"a\"],\"regex\":\"x.*\"},"
	"{\"action\":\"labelkeep\",\"regex\":\"[a-z]\"}]";

static int read_all(void *ctx)
{
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	struct relabel_error error;

	return relabel_new(ctx, &relabel, &error);
}

static int apply_all(void *ctx)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	_cleanup_(labels_deinit) struct labels origins = {.max = LABELS_META_MAX};
	struct relabel_result result;
	int r = set_labels(&l, "a=x1 b=y __f=z");

	return r ? r : relabel_apply(ctx, &l, &origins, &result);
}

static void test_no_memory(void **state)
{
	_cleanup_(json_freep) json_t *json = json_loads(all_rules, 0, NULL);
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;

	(void)state;
	assert_true(allocfail_each(read_all, json) > 25);
	rules_of(all_rules, &relabel);
	assert_true(allocfail_each(apply_all, relabel) > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_dropped_by),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_gave_up),
		cmocka_unit_test(test_gave_up_after_many),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
