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

static void give_excluded(void *ctx, ui_entity_fn fn, void *arg)
{
	static const struct labels none;

	(void)ctx;
	fn(arg, &(struct ui_entity){.id = "a",
				    .name = "out",
				    .kind = "container",
				    .runtime = "",
				    .excluded = "--select",
				    .labels = &none});
}

/* Before the first window has ended, the table is full of zeros. */
static void without_profiles_the_page_says_so(void **state)
{
	static const struct {
		size_t n;
		void (*entities)(void *ctx, ui_entity_fn fn, void *arg);
		const char *summary, *none;
		struct ui_off off;
		uint64_t last_window_ns;
	} rows[] = {
		{2,
		 give_new,
		 "<p class=\"dim\" id=\"summary\">No CPU: 1 &lt; 2; 2 listed. Not kept.</p>",
		 "–</td><td data-v=\"0\" class=\"dim\">–</td>",
		 {.cpu = "No CPU: 1 < 2", .store = "Not kept"},
		 0},
		{0,
		 give_entities,
		 "<p class=\"dim\" id=\"summary\">No CPU; 5 listed.</p>",
		 "<span class=\"state\">excluded</span>",
		 {.cpu = "No CPU"},
		 0},
		{0,
		 give_entities,
		 "last 1 s window; 5 listed. Not kept.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>",
		 {.off_cpu = "no", .go = "no", .store = "Not kept"},
		 0},
		{0,
		 give_excluded,
		 "<p class=\"dim\" id=\"summary\">No profiles: everything here is excluded from "
		 "profiling; 1 listed.</p>",
		 "<i>excluded</i>--select",
		 {0},
		 0},
		{0,
		 give_new,
		 "<p class=\"dim\" id=\"summary\">No profiles yet. The first ones appear after the "
		 "first window; 0 listed.</p>",
		 "<p class=\"empty\" id=\"none\">",
		 {0},
		 0},
		{2,
		 give_new,
		 "<p class=\"dim\" id=\"summary\">No profiles yet. The first ones appear after the "
		 "first window; 2 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>",
		 {0},
		 0},
		{0,
		 give_entities,
		 "<p class=\"dim\" id=\"summary\">CPU time of the last 1 s window; 5 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>",
		 {0},
		 0},
		/* the first window is shorter; a timer is late by a moment */
		{0,
		 give_entities,
		 "<p class=\"dim\" id=\"summary\">CPU time of the last 15 s window; 5 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>",
		 {0},
		 15 * NSEC_PER_SEC + 48 * NSEC_PER_MSEC},
		{0,
		 give_entities,
		 "CPU time of the last 500 ms window; 5 listed.</p>",
		 "<p class=\"empty\" id=\"none\" hidden>",
		 {0},
		 500 * NSEC_PER_MSEC},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t n = rows[i].n;
		const struct ui_data ui = {.ctx = &n,
					   .node = "n1",
					   .window_ns = NSEC_PER_SEC,
					   .last_window_ns = rows[i].last_window_ns,
					   .off = rows[i].off,
					   .entities = rows[i].entities};
		_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);
		const char *text = overview_of(&ui, &page);

		assert_non_null(strstr(text, rows[i].summary));
		assert_non_null(strstr(text, rows[i].none));
	}
}

static int give_one(void *ctx, const char *id, ui_entity_fn fn, void *arg)
{
	size_t n = 1;

	(void)ctx;
	(void)id;
	give_new(&n, fn, arg);
	return 0;
}

static void give_no_profiles(void *ctx, const char *entity, ui_profile_fn fn, void *arg)
{
	(void)ctx;
	(void)entity;
	(void)fn;
	(void)arg;
}

static void an_entitys_page_has_the_reasons(void **state)
{
	static const struct {
		struct ui_off off;
		const char *section, *table;
	} rows[] = {
		{{0},
		 "data-now-ms=\"7000\" data-window-ms=\"2500\" data-entity=\"a\"><noscript>",
		 "<p class=\"dim\">0 stored; times are UTC.</p>"},
		{{"No \"CPU\"", "No waits", "No Go", NULL},
		 "data-entity=\"a\" data-no-cpu=\"No &quot;CPU&quot;.\" data-no-offcpu=\"No "
		 "waits.\" "
		 "data-no-go=\"No Go.\"><noscript>",
		 "<p class=\"dim\">0 stored; times are UTC.</p>"},
		{{.store = "Not kept"},
		 "data-entity=\"a\" data-no-store=\"Not kept.\"><noscript>",
		 "<p class=\"dim\">Not kept.</p>"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct ui_data ui = {.node = "n1",
					   .now_ns = 7 * NSEC_PER_SEC,
					   .window_ns = 2500 * NSEC_PER_MSEC,
					   .off = rows[i].off,
					   .entity = give_one,
					   .profiles = give_no_profiles};
		_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);

		assert_int_equal(page_entity(&ui, "a", &page), 0);
		assert_non_null(strstr(page.data, rows[i].section));
		assert_non_null(strstr(page.data, rows[i].table));
	}
}

static void give_labelled(void *ctx, ui_entity_fn fn, void *arg)
{
	fn(arg, &(struct ui_entity){.id = "a",
				    .name = "shop/cart",
				    .kind = "container",
				    .runtime = "docker",
				    .labels = ctx});
}

static int give_one_labelled(void *ctx, const char *id, ui_entity_fn fn, void *arg)
{
	(void)id;
	give_labelled(ctx, fn, arg);
	return 0;
}

/* A label that repeats what stands beside it is left out; an entity's own page has the labels of
 * its name. */
static void labels_are_said_once(void **state)
{
	static const struct {
		const char *name, *value;
		bool is_in_overview, is_in_entity;
	} rows[] = {
		{"runtime", "docker", false, false},
		{"runtime", "rules", true, true}, /* a relabelling rule's */
		{"pod", "cart", false, true},
		{"pod", "basket", true, true},
		{"node", "n1", false, false},
		{"level", "container", false, false},
		{"team", "cart", true, true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels labels = {0};
		const struct ui_data ui = {.node = "n1",
					   .window_ns = NSEC_PER_SEC,
					   .entities = give_labelled,
					   .entity = give_one_labelled,
					   .profiles = give_no_profiles,
					   .ctx = &labels};
		_cleanup_(buf_deinit) struct buf overview = BUF_INIT(100000);
		_cleanup_(buf_deinit) struct buf entity = BUF_INIT(100000);
		char chip[64];

		snprintf(chip, sizeof(chip), "<i>%s</i>%s</span>", rows[i].name, rows[i].value);
		assert_int_equal(labels_set(&labels, rows[i].name, rows[i].value), 0);
		assert_int_equal(strstr(overview_of(&ui, &overview), chip) != NULL,
				 rows[i].is_in_overview);
		assert_int_equal(page_entity(&ui, "a", &entity), 0);
		assert_int_equal(buf_append(&entity, "", 1), 0);
		assert_int_equal(strstr((const char *)entity.data, chip) != NULL,
				 rows[i].is_in_entity);
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
		cmocka_unit_test(an_entitys_page_has_the_reasons),
		cmocka_unit_test(programs_of_earlier_windows_are_marked),
		cmocka_unit_test(labels_are_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
