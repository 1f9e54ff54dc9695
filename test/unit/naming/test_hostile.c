// SPDX-License-Identifier: Apache-2.0
/* A pod with an attack in every text, on its way to the page, the metrics and the log. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "discovery/entity.h"
#include "metadata/pod.h"
#include "naming/names.h"
#include "server/exposition.h"
#include "server/page.h"
#include "server/ui.h"

#define ID  "5c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd73051af27110"
#define UID "5d59024d-c3a0-12f8-a461-131a79258807"
/* Ends of quotes, tags, lines and texts; a terminal's commands; a change of direction. */
#define EVIL                                     \
	"\\\"'><script>alert(1)</script>{}\\n# " \
	"x\\r\\n\\\\\\u001b[2J\\u009b\\u202e\\u2028&=%2f../"

static const char pod_json[] =
	"{\"metadata\":{\"uid\":\"" UID "\",\"namespace\":\"n" EVIL "\",\"name\":\"p" EVIL
	"\\u0000behind"
	"\",\"labels\":{\"app.kubernetes.io/name\":\"l" EVIL "\",\"" EVIL "\":\"x\"},"
	"\"annotations\":{\"podprof.io/" EVIL "\":\"a" EVIL "\",\"podprof.io/go-heap\":\"g" EVIL
	"\"}},\"status\":{\"containerStatuses\":[{\"name\":\"c" EVIL "\",\"containerID\":\"x://" ID
	"\",\"image\":\"i" EVIL "\"}]}}";

struct fixture {
	struct entity_table *entities;
	struct entity *entity;
	struct pod *pod;
	struct names names;
	struct labels labels;
	char text[NAMES_TEXT_MAX];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct cgroup_id id;

	cgroup_parse_path(strview_of("/kubepods/pod" UID "/" ID), &id);
	assert_int_equal(entity_table_new("n1", &f->entities), 0);
	assert_int_equal(entity_container(f->entities, &id, &f->entity), 0);
	assert_int_equal(pod_parse(pod_json, strlen(pod_json), &f->pod), 0);
	f->names.outcome = METADATA_OK;
	f->names.known =
		(struct metadata_names){.pod = f->pod, .container = &f->pod->containers[0]};
	assert_int_equal(names_labels(&f->names, f->entity, &f->labels), 0);
	names_text(&f->names, f->entity, f->text);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	labels_deinit(&f->labels);
	entity_unref(f->entity);
	entity_table_free(f->entities);
	pod_free(f->pod);
	free(f);
	return 0;
}

/* podprof chooses the names of labels; their values are UTF-8. */
static void labels(void **state)
{
	struct labels settings = {0};
	struct fixture *f = *state;

	assert_non_null(strstr(labels_get(&f->labels, "namespace"), "<script>"));
	assert_non_null(strstr(labels_get(&f->labels, "service_name"), "<script>"));
	for (size_t i = 0; i < f->labels.n; i++) {
		assert_int_equal(strspn(f->labels.items[i].name, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(f->labels.items[i].name));
		assert_true(
			utf8_is_valid(f->labels.items[i].value, strlen(f->labels.items[i].value)));
	}
	assert_int_equal(names_settings(&f->names, &settings), 0);
	assert_int_equal(settings.n, 1); /* the name of the other setting is invalid */
	assert_string_equal(settings.items[0].name, "go_heap");
	labels_deinit(&settings);
}

static void collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"podprof_test", METRIC_GAUGE, "Text.",
							 NULL};
	const struct fixture *f = ctx;
	struct metric_label all[METRIC_LABELS_MAX];

	for (size_t i = 0; i < f->labels.n; i++)
		all[i] = (struct metric_label){f->labels.items[i].name, f->labels.items[i].value};
	metric_family(sink, &family);
	metric_u64(sink, 7, all, f->labels.n);
}

/* Skip a quoted value: only \\, \" and \n are escapes, and nothing ends the value early. */
static const char *skip_value(const char *p)
{
	assert_int_equal(*p++, '"');
	for (; *p != '"'; p++) {
		assert_true((unsigned char)*p != '\n' && *p);
		if (*p == '\\') {
			p++;
			assert_true(*p == '\\' || *p == '"' || *p == 'n');
		}
	}
	return p + 1;
}

static void metrics(void **state)
{
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(1u << 20);
	struct exposition_stats stats = {0};
	struct metric_list list = {0};
	const char *p;
	size_t n = 0;

	assert_int_equal(metric_list_add(&list, collect, *state), 0);
	for (int format = 0; format < ACCEPT_FORMAT_MAX; format++) {
		buf_reset(&page);
		assert_int_equal(
			exposition_render(&list, (enum accept_format)format, &stats, &page), 0);
		p = strstr(page.data, "\npodprof_test{");
		assert_non_null(p);
		for (p += strlen("\npodprof_test{"), n = 1;; p++, n++) {
			p += strspn(p, "abcdefghijklmnopqrstuvwxyz_");
			assert_int_equal(*p, '=');
			p = skip_value(p + 1);
			if (*p != ',')
				break;
		}
		assert_int_equal(strncmp(p, "} 7", 3), 0);
		assert_int_equal(n, ((struct fixture *)*state)->labels.n);
		assert_true(utf8_is_valid(page.data, page.len));
	}
	metric_list_deinit(&list);
}

/* ---------------------------------------------------------------- the page */

static void tell_entity(const struct fixture *f, ui_entity_fn fn, void *arg)
{
	const struct ui_entity entity = {.id = "x",
					 .name = f->text,
					 .kind = "container",
					 .runtime = "",
					 .labels = &f->labels};

	fn(arg, &entity);
}

static void entities(void *ctx, ui_entity_fn fn, void *arg)
{
	tell_entity(ctx, fn, arg);
}

static int entity(void *ctx, const char *id, ui_entity_fn fn, void *arg)
{
	(void)id;
	tell_entity(ctx, fn, arg);
	return 0;
}

static void no_profiles(void *ctx, const char *id, ui_profile_fn fn, void *arg)
{
	(void)ctx;
	(void)id;
	(void)fn;
	(void)arg;
}

static void check_page(const struct buf *page)
{
	const char *script = page->data;

	assert_null(strstr(page->data, "<script>")); /* ours have a src */
	while ((script = strstr(script, "<script")))
		assert_int_equal(strncmp(script++, "<script src=\"/assets/", 21), 0);
	assert_non_null(strstr(page->data, "&lt;script&gt;"));
	assert_null(strstr(page->data, "\"'>"));
	assert_null(strchr(page->data, '\x1b'));
	assert_null(strstr(page->data, "\xc2\x9b"));
	assert_null(strstr(page->data, "\xe2\x80\xae"));
	assert_true(utf8_is_valid(page->data, page->len));
}

static void pages(void **state)
{
	const struct ui_data ui = {.ctx = *state,
				   .node = "n1",
				   .window_ns = 1,
				   .entities = entities,
				   .entity = entity,
				   .profiles = no_profiles};
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(1u << 20);

	assert_int_equal(page_overview(&ui, &page), 0);
	check_page(&page);
	buf_reset(&page);
	assert_int_equal(page_entity(&ui, "x", &page), 0);
	check_page(&page);
}

/* ---------------------------------------------------------------- the log */

static void log_lines(void **state)
{
	struct fixture *f = *state;
	char bytes[8192];
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	for (int format = 0; format < LOG_FORMAT_MAX; format++) {
		assert_int_equal(pipe(fds), 0);
		assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
		log_set(LOG_INFO, (enum log_format)format);
		log_info("test", log_str("pod", f->pod->name), log_str("name", f->text));
		assert_true(dup2(saved, STDERR_FILENO) >= 0);
		close(fds[1]);
		n = read(fds[0], bytes, sizeof(bytes) - 1);
		close(fds[0]);
		assert_true(n > 0);
		bytes[n] = '\0';
		assert_int_equal(strcspn(bytes, "\n"), n - 1); /* one line */
		assert_null(strchr(bytes, '\r'));
		assert_null(strchr(bytes, '\x1b'));
		assert_null(strstr(bytes, "\xc2\x9b"));
		assert_non_null(strstr(bytes, "script"));
	}
	close(saved);
	log_set(LOG_INFO, LOG_FORMAT_LOGFMT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(labels), TEST(metrics), TEST(pages),
					   TEST(log_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
