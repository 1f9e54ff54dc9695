// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "server/page.h"
#include "server/ui.h"

/* With and without samples in the last window. */
static void give_entities(void *ctx, ui_entity_fn fn, void *arg)
{
	static const struct labels none;
	const struct ui_entity entities[] = {
		{.id = "a", .name = "now", .kind = "process", .samples = 1, .cpu_ns = 2},
		{.id = "b", .name = "before", .kind = "process"},
		{.id = "c", .name = "out", .kind = "process", .excluded = "--ignore"},
		{.id = "d", .name = "heap", .kind = "process", .go_state = "ok"},
		{.id = "e", .name = "quiet", .kind = "container"},
	};

	(void)ctx;
	for (size_t i = 0; i < array_size(entities); i++) {
		struct ui_entity entity = entities[i];

		entity.runtime = "";
		entity.labels = &none;
		fn(arg, &entity);
	}
}

/* An overview in @ret, ended by a NUL. */
static const char *overview_of(const struct ui_data *ui, struct buf *ret)
{
	assert_int_equal(page_overview(ui, ret), 0);
	assert_int_equal(buf_append(ret, "", 1), 0);
	return (const char *)ret->data;
}

static void give_new(void *ctx, ui_entity_fn fn, void *arg)
{
	static const struct labels none;

	for (size_t i = 0; i < *(const size_t *)ctx; i++)
		fn(arg, &(struct ui_entity){.id = "a",
					    .name = "new",
					    .kind = "container",
					    .runtime = "",
					    .labels = &none});
}

/* Before the first window has ended, the table is full of zeros. */
static void without_profiles_the_page_says_so(void **state)
{
	static const struct {
		size_t n;
		void (*entities)(void *ctx, ui_entity_fn fn, void *arg);
		const char *summary, *none;
	} rows[] = {
		{0, give_new,
		 "<p class=\"dim\" id=\"summary\">No profiles yet. The first ones appear after the "
		 "first window; 0 listed.</p>",
		 "<p class=\"empty\" id=\"none\">"},
		{2, give_new,
		 "<p class=\"dim\" id=\"summary\">No profiles yet. The first ones appear after the "
		 "first window; 2 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>"},
		{0, give_entities,
		 "<p class=\"dim\" id=\"summary\">CPU time of the last 1 s window; 5 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t n = rows[i].n;
		const struct ui_data ui = {.ctx = &n,
					   .node = "n1",
					   .window_ns = NSEC_PER_SEC,
					   .entities = rows[i].entities};
		_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);
		const char *text = overview_of(&ui, &page);

		assert_non_null(strstr(text, rows[i].summary));
		assert_non_null(strstr(text, rows[i].none));
	}
}

/* A container is listed whatever it does, and so is all with another reason to be here. */
static void programs_of_earlier_windows_are_marked(void **state)
{
	const struct ui_data ui = {
		.node = "n1", .window_ns = NSEC_PER_SEC, .entities = give_entities};
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);
	const char *text, *past;

	(void)state;
	text = overview_of(&ui, &page);
	past = strstr(text,
		      "<tr class=\"past\"><th scope=\"row\"><a href=\"/entity/b\">before</a>");
	assert_non_null(past);
	assert_ptr_equal(strstr(text, "class=\"past\""), past + strlen("<tr "));
	assert_null(strstr(past + 8, "class=\"past\""));
	assert_non_null(strstr(text, "<button type=\"button\" id=\"past\" hidden>"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_profiles_the_page_says_so),
		cmocka_unit_test(programs_of_earlier_windows_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
