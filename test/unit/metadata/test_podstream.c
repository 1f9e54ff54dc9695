// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "metadata/pods.h"
#include "metadata/podstream.h"
#include "support/allocfail.h"

#define POD(uid, version)                                                        \
	"{\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"s\",\"name\":\"" uid \
	"\",\"resourceVersion\":\"" version "\"}}"
#define LIST(kind, version, items)                                              \
	"{\"kind\":\"" kind                                                     \
	"\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version \
	"\"},\"items\":" items "}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

/* Every row begins with the pods "a" and "b" in the table. */
struct row {
	const char *name;
	enum podstream_kind kind;
	const char *json;
	int outcome;
	const char *want; /* the known pods of a, b, c, d, then the version */
	size_t n_odd;
};

static const struct row rows[] = {
	{"list", PODSTREAM_LIST, LIST("PodList", "7", "[" POD("a", "1") "," POD("c", "2") "]"), 0,
	 "ac 7", 0},
	{"empty list", PODSTREAM_LIST, LIST("PodList", "7", "[]"), 0, " 7", 0},
	{"null for a list", PODSTREAM_LIST, LIST("PodList", "", "null"), 0, " ", 0},
	{"kind at the end", PODSTREAM_LIST, "{\"items\":[" POD("a", "1") "],\"kind\":\"PodList\"}",
	 0, "a ", 0},
	{"odd pods are left out", PODSTREAM_LIST,
	 LIST("PodList", "7", "[{},7,null," POD("d", "1") "]"), 0, "d 7", 2},
	{"half a list changes nothing but what it has", PODSTREAM_LIST,
	 "{\"kind\":\"PodList\",\"items\":[" POD("c", "1") ",", PODSTREAM_MALFORMED, "abc ", 0},
	{"another list", PODSTREAM_LIST, LIST("NodeList", "7", "[" POD("c", "1") "]"),
	 PODSTREAM_MALFORMED, "ab ", 0},
	{"an error", PODSTREAM_LIST, "{\"kind\":\"Status\",\"code\":403}", PODSTREAM_MALFORMED,
	 "ab ", 0},
	{"no kind", PODSTREAM_LIST, "{\"items\":[]}", PODSTREAM_MALFORMED, "ab ", 0},
	{"a page", PODSTREAM_LIST, "<html>hello</html>", PODSTREAM_MALFORMED, "ab ", 0},
	{"nothing", PODSTREAM_LIST, "", PODSTREAM_MALFORMED, "ab ", 0},

	{"no event", PODSTREAM_WATCH, "", 0, "ab 5", 0},
	{"added", PODSTREAM_WATCH, EVENT("ADDED", POD("c", "6")), 0, "abc 6", 0},
	{"modified", PODSTREAM_WATCH, EVENT("MODIFIED", POD("a", "6")), 0, "ab 6", 0},
	{"deleted", PODSTREAM_WATCH, EVENT("DELETED", POD("a", "6")), 0, "b 6", 0},
	{"deleted, unknown", PODSTREAM_WATCH, EVENT("DELETED", POD("x", "6")), 0, "ab 6", 0},
	{"bookmark", PODSTREAM_WATCH,
	 EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}"), 0, "ab 9", 0},
	{"several", PODSTREAM_WATCH,
	 EVENT("ADDED", POD("c", "6")) EVENT("DELETED", POD("c", "7"))
		 EVENT("ADDED", POD("d", "8")),
	 0, "abd 8", 0},
	{"one that is not known yet", PODSTREAM_WATCH, EVENT("RENAMED", POD("c", "6")), 0, "ab 6",
	 0},
	{"odd pods", PODSTREAM_WATCH, EVENT("ADDED", "{}") EVENT("DELETED", "{}"), 0, "ab 5", 2},
	{"version too long", PODSTREAM_WATCH,
	 EVENT("ADDED",
	       POD("c", "0123456789012345678901234567890123456789012345678901234567890123")),
	 0, "abc 5", 0},
	{"too old", PODSTREAM_WATCH, EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"),
	 PODSTREAM_EXPIRED, "ab 5", 0},
	{"refused", PODSTREAM_WATCH, EVENT("ERROR", "{\"kind\":\"Status\",\"code\":500}"),
	 PODSTREAM_REFUSED, "ab 5", 0},
	{"no type", PODSTREAM_WATCH, "{\"object\":{}}", PODSTREAM_MALFORMED, "ab 5", 0},
	{"no object", PODSTREAM_WATCH, "{\"type\":\"ADDED\"}", PODSTREAM_MALFORMED, "ab 5", 0},
	{"half an event", PODSTREAM_WATCH,
	 EVENT("ADDED", POD("c", "6")) "{\"type\":", PODSTREAM_MALFORMED, "abc 6", 0},
};

static struct pods *two(void)
{
	static const char *const json[] = {POD("a", "1"), POD("b", "2")};
	struct pods *pods;
	struct pod *pod;

	assert_int_equal(pods_new(&pods), 0);
	for (size_t i = 0; i < array_size(json); i++) {
		assert_int_equal(pod_parse(json[i], strlen(json[i]), &pod), 0);
		assert_int_equal(pods_put(pods, pod), 0);
	}
	return pods;
}

static int stream(const struct row *row, struct pods *pods, size_t step, char ret[96],
		  size_t *ret_odd)
{
	size_t n = strlen(row->json), len = 0;
	struct podstream s;
	int r = 0;

	podstream_init(&s, row->kind, pods, row->kind == PODSTREAM_WATCH ? "5" : NULL);
	for (size_t i = 0; i < n && !r; i += step)
		r = podstream_feed(&s, row->json + i, n - i < step ? n - i : step);
	if (!r)
		r = podstream_end(&s);
	for (char uid[] = "a"; *uid <= 'd'; ++*uid)
		if (pods_by_uid(pods, uid))
			ret[len++] = *uid;
	snprintf(ret + len, 96 - len, " %s", s.version);
	*ret_odd = s.n_odd;
	podstream_deinit(&s);
	return r;
}

static void test_rows(void **state)
{
	static const size_t steps[] = {1, 3, 17, 4096};

	(void)state;
	for (size_t i = 0; i < array_size(rows) * array_size(steps); i++) {
		const struct row *row = &rows[i / array_size(steps)];
		struct pods *pods = two();
		size_t n_odd;
		char seen[96];

		row_begin(row->name);
		assert_int_equal(stream(row, pods, steps[i % array_size(steps)], seen, &n_odd),
				 row->outcome);
		assert_string_equal(seen, row->want);
		assert_int_equal(n_odd, row->n_odd);
		pods_free(pods);
	}
}

/* A list in another order changes nothing; of a changed list only the change is seen. */
static void the_same_again(void **state)
{
	static const struct row in_order = {
		.kind = PODSTREAM_LIST,
		.json = LIST("PodList", "7", "[" POD("a", "1") "," POD("b", "2") "]")};
	static const struct row turned = {
		.kind = PODSTREAM_LIST,
		.json = LIST("PodList", "8", "[" POD("b", "2") "," POD("a", "1") "]")};
	static const struct row changed = {
		.kind = PODSTREAM_LIST,
		.json = LIST("PodList", "9",
			     "[" POD("b", "2") ",{\"metadata\":{\"uid\":\"a\",\"namespace\":"
					       "\"s\",\"name\":\"other\"}}]")};
	struct pods *pods = two();
	uint64_t a, b;
	size_t n_odd;
	char seen[96];

	(void)state;
	assert_int_equal(stream(&in_order, pods, 7, seen, &n_odd), 0);
	a = pods_by_uid(pods, "a")->version;
	b = pods_by_uid(pods, "b")->version;
	assert_int_equal(stream(&turned, pods, 7, seen, &n_odd), 0);
	assert_string_equal(seen, "ab 8");
	assert_int_equal(pods_by_uid(pods, "a")->version, a);
	assert_int_equal(stream(&changed, pods, 7, seen, &n_odd), 0);
	assert_string_equal(seen, "ab 9");
	assert_int_equal(pods_by_uid(pods, "b")->version, b);
	assert_true(pods_by_uid(pods, "a")->version > a);
	assert_string_equal(pods_by_uid(pods, "a")->name, "other");
	pods_free(pods);
}

/* A pod above the ceiling is skipped, and its neighbours are known. */
static void too_large(void **state)
{
	struct buf b = BUF_INIT(2 * PODSTREAM_VALUE_MAX);
	struct row row = {.kind = PODSTREAM_LIST};
	struct pods *pods = two();
	size_t n_odd;
	char seen[96];

	(void)state;
	assert_int_equal(
		buf_puts(&b, "{\"kind\":\"PodList\",\"items\":[" POD("c", "1") ",{\"x\":\""), 0);
	for (size_t i = 0; i < PODSTREAM_VALUE_MAX; i++)
		assert_int_equal(buf_putc(&b, 'x'), 0);
	assert_int_equal(buf_puts(&b, "\"}," POD("d", "1") "]}"), 0);
	row.json = b.data;
	assert_int_equal(stream(&row, pods, 65536, seen, &n_odd), 0);
	assert_string_equal(seen, "cd ");
	assert_int_equal(n_odd, 1);
	pods_free(pods);
	buf_deinit(&b);
}

static int attempt(void *ctx)
{
	struct pods *pods = NULL;
	size_t n_odd;
	char seen[96];
	int r = pods_new(&pods);

	if (!r)
		r = stream(ctx, pods, 50, seen, &n_odd);
	pods_free(pods);
	return r;
}

static void out_of_memory(void **state)
{
	(void)state;
	allocfail_each(attempt, (void *)&rows[0]);
	allocfail_each(attempt, (void *)&rows[12]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(the_same_again),
		cmocka_unit_test(too_large),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
