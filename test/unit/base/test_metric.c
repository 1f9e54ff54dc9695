// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/metric.h"
#include "support/allocfail.h"

/* Stores its input. */
struct note_sink {
	struct metric_sink sink;
	struct buf text;
};

static void note_family(struct metric_sink *sink, const struct metric_family_desc *family)
{
	struct note_sink *note = container_of(sink, struct note_sink, sink);

	assert_int_equal(buf_printf(&note->text, "%s:", family->name), 0);
}

static void note_value(struct metric_sink *sink, const struct metric_value *value)
{
	struct note_sink *note = container_of(sink, struct note_sink, sink);

	for (size_t i = 0; i < value->n_labels; i++)
		assert_int_equal(buf_printf(&note->text, " %s=%s", value->labels[i].name,
					    value->labels[i].value),
				 0);
	if (value->is_double)
		assert_int_equal(buf_printf(&note->text, " %g;", value->d), 0);
	else
		assert_int_equal(buf_printf(&note->text, " %" PRIu64 ";", value->u), 0);
}

static void collect_first(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"first", METRIC_COUNTER, "First.", NULL};
	static const char *const names[] = {"ok", "lost"};

	metric_by_name(sink, &family, "outcome", ctx, names, 2);
}

static void collect_second(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"second", METRIC_GAUGE, "Second.", NULL};

	(void)ctx;
	metric_family(sink, &family);
	metric_double(sink, 0.5, NULL, 0);
	metric_u64(sink, 1, (const struct metric_label[]){{"a", "b"}, {"c", "d"}}, 2);
}

static void test_collect(void **state)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	struct note_sink note = {.sink = {note_family, note_value}, .text = BUF_INIT(1000)};
	uint64_t outcomes[] = {UINT64_MAX, 7};

	(void)state;
	metric_list_collect(&list, &note.sink);
	assert_null(note.text.data);
	assert_int_equal(metric_list_add(&list, collect_first, outcomes), 0);
	assert_int_equal(metric_list_add(&list, collect_second, NULL), 0);
	metric_list_collect(&list, &note.sink);
	assert_string_equal(note.text.data,
			    "first: outcome=ok 18446744073709551615; outcome=lost 7;"
			    "second: 0.5; a=b c=d 1;");
	buf_deinit(&note.text);
}

static void test_full(void **state)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	int r = 0;

	(void)state;
	while (!r && list.n < 1000)
		r = metric_list_add(&list, collect_second, NULL);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(list.n, 64);
}

static int add(void *ctx)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};

	return metric_list_add(&list, collect_second, ctx);
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_int_equal(allocfail_each(add, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collect),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
