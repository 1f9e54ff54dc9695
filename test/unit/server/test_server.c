// SPDX-License-Identifier: Apache-2.0
/* Everything the server serves, through a real client. */
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "server/asset.h"
#include "server/httpd.h"
#include "server/server.h"
#include "support/served.h"

#define HOSTILE	     "<script>alert('&\"')</script>"
#define HOSTILE_HTML "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;"

struct fixture {
	struct served served;
	struct server *server;
	struct metric_list metrics;
	struct health health;
	struct ui_source ui;
	size_t n_entities, n_profiles;
};

/* ---------------------------------------------------------------- paths */

static void give_entity(size_t i, ui_entity_fn fn, void *arg)
{
	_cleanup_(freep) char *text = strdup(HOSTILE), *path = strdup("/mnt/" HOSTILE),
			      *reason = strdup("--ignore " HOSTILE);
	const struct ui_slow slow[4] = {
		[1] = {.n_files = 2, .n_processes = 1, .pid = 9, .path = path},
		[2] = {.n_lists = 1, .list_pid = 8},
		[3] = {.n_files = 5,
		       .n_processes = 3,
		       .pid = 7,
		       .path = path,
		       .n_lists = 2,
		       .list_pid = 6},
	};
	_cleanup_(labels_deinit) struct labels labels = {0};
	char id[32], name[64];

	assert_true(text && path && reason);
	snprintf(id, sizeof(id), "o-%zu", i);
	snprintf(name, sizeof(name), "%s%zu", HOSTILE, i);
	assert_int_equal(labels_set(&labels, "app", HOSTILE), 0);
	assert_int_equal(labels_set(&labels, "node", "n1"), 0);
	fn(arg, &(struct ui_entity){.id = id,
				    .name = name,
				    .kind = "container",
				    .runtime = "containerd",
				    .labels = &labels,
				    .excluded = i % 7 ? NULL : reason,
				    .samples = i,
				    .cpu_ns = i * NSEC_PER_SEC,
				    .go_state = i % 2 ? text : "ok",
				    .go_version = text,
				    .go_inuse_bytes = i << 20,
				    .slow = slow[i % 4]});
}

/* One entity a step. */
struct ui_listing {
	size_t at, end;
	bool is_gone, is_broken;
};

static int list(void *ctx, const char *id, struct ui_listing **ret)
{
	const struct fixture *f = ctx;
	struct ui_listing *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	*l = (struct ui_listing){.end = f->n_entities};
	if (id)
		*l = (struct ui_listing){7, 8, strcmp(id, "o-7") != 0, strcmp(id, "broken") == 0};
	*ret = l;
	return 0;
}

static int list_step(struct ui_listing *l, ui_entity_fn fn, void *arg)
{
	if (l->is_broken)
		return -EIO;
	if (l->is_gone)
		return UI_GONE;
	if (l->at == l->end)
		return 0;
	give_entity(l->at++, fn, arg);
	return UI_MORE;
}

static void list_free(struct ui_listing *l)
{
	free(l);
}

static void give_profiles(void *ctx, const char *entity, ui_profile_fn fn, void *arg)
{
	const struct fixture *f = ctx;

	assert_string_equal(entity, "o-7");
	for (size_t i = 0; i < f->n_profiles; i++)
		fn(arg, &(struct ui_profile){.id = 1000 + i,
					     .kind = "cpu",
					     .start_ns = (1000000000 + i) * NSEC_PER_SEC,
					     .duration_ns = 60 * NSEC_PER_SEC,
					     .bytes = 2048});
}

/* A job with a text for an answer. */
struct text_job {
	struct http_job job;
	pthread_t loop_thread;
	struct buf text;
};

static int text_job_run(struct http_job *job, struct buf *ret)
{
	const struct text_job *t = container_of(job, struct text_job, job);

	assert_false(pthread_equal(pthread_self(), t->loop_thread));
	return buf_append(ret, t->text.data, t->text.len);
}

static int fail_job_run(struct http_job *job, struct buf *ret)
{
	(void)job;
	(void)ret;
	return -EIO;
}

static void text_job_free(struct http_job *job)
{
	struct text_job *t = container_of(job, struct text_job, job);

	assert_true(pthread_equal(pthread_self(), t->loop_thread));
	buf_deinit(&t->text);
	free(t);
}

static struct text_job *text_job_new(void)
{
	struct text_job *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->job.run = text_job_run;
	t->job.free = text_job_free;
	t->loop_thread = pthread_self();
	buf_init(&t->text, 100000);
	return t;
}

/* Gives the query back, so that the test sees what arrived. */
static int give_flame(void *ctx, const struct ui_flame_query *q, struct http_job **ret)
{
	struct text_job *t;

	(void)ctx;
	if (strcmp(q->kind, "none") == 0)
		return UI_GONE;
	t = text_job_new();
	if (strcmp(q->kind, "broken") == 0)
		t->job.run = fail_job_run;
	assert_int_equal(buf_printf(&t->text,
				    "{\"entity\":\"%s\",\"kind\":\"%s\",\"type\":%s%s%s,"
				    "\"from\":%llu,\"all\":%s}",
				    q->entity, q->kind, q->type ? "\"" : "",
				    q->type ? q->type : "null", q->type ? "\"" : "",
				    (unsigned long long)q->from_ns,
				    q->until_ns == UINT64_MAX ? "true" : "false"),
			 0);
	*ret = &t->job;
	return 0;
}

static int give_raw(void *ctx, uint64_t profile, struct http_job **ret)
{
	struct text_job *t;

	(void)ctx;
	if (profile != 1000)
		return UI_GONE;
	t = text_job_new();
	assert_int_equal(buf_append(&t->text, "\x1f\x8b\0raw", 6), 0);
	*ret = &t->job;
	return 0;
}

static void collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {"some", METRIC_COUNTER, "Some.", NULL};

	(void)ctx;
	metric_family(sink, &family);
	metric_u64(sink, 7, &(struct metric_label){"name", HOSTILE}, 1);
	for (int i = 0; i < 5000; i++) { /* several steps of a page, and of its compression */
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		metric_u64(sink, 1, &(struct metric_label){"number", text}, 1);
	}
}

static struct fixture *fixture_new(const struct listen_plan *addresses)
{
	struct fixture *f = calloc(1, sizeof(*f));
	bool is_ui;

	assert_non_null(f);
	f->n_entities = 12;
	f->n_profiles = 3;
	f->ui = (struct ui_source){.ctx = f,
				   .node = "n<1>",
				   .window_ns = 60 * NSEC_PER_SEC,
				   .list = list,
				   .list_step = list_step,
				   .list_free = list_free,
				   .profiles = give_profiles,
				   .flame = give_flame,
				   .raw = give_raw};
	health_set(&f->health, HEALTH_READY, "bpf", false, "no BTF");
	assert_int_equal(metric_list_add(&f->metrics, collect, NULL), 0);
	served_init(&f->served);
	loop_set_slice(f->served.loop, 0); /* one step of a page a turn */
	assert_int_equal(server_new(&(struct server_opts){.loop = f->served.loop,
							  .addresses = addresses,
							  .metrics = &f->metrics,
							  .health = &f->health,
							  .ui = &f->ui},
				    &is_ui, &f->server),
			 0);
	served_start(&f->served);
	return f;
}

static void fixture_free(struct fixture *f)
{
	served_stop(&f->served);
	server_free(f->server);
	served_deinit(&f->served);
	metric_list_deinit(&f->metrics);
	free(f);
}

DEFINE_CLEANUP(struct fixture *, fixture_freep, fixture_free);

static int setup(void **state)
{
	struct listen_plan addresses;

	assert_int_equal(listen_plan("127.0.0.1:0", NULL, &addresses), 0);
	*state = fixture_new(&addresses);
	return 0;
}

static void ask_metrics(const struct fixture *f, int *ret)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

	*ret = served_connect(server_address(f->server));
	assert_int_equal(write(*ret, request, sizeof(request) - 1), sizeof(request) - 1);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int fd;

	ask_metrics(f, &fd); /* the request may be waiting, half done, or not yet read */
	fixture_free(f);
	close(fd);
	return 0;
}

/* ---------------------------------------------------------------- the client */

struct reply {
	long status;
	char type[128];
	struct buf headers;
	struct buf body;
};

static void reply_deinit(struct reply *r)
{
	buf_deinit(&r->headers);
	buf_deinit(&r->body);
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
	return buf_append(ctx, data, size * n) ? 0 : size * n;
}

/* @header: "Name: value" or NULL. */
static void get_at(const char *address, const char *path, const char *header, struct reply *ret)
{
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = header ? curl_slist_append(NULL, header) : NULL;
	char *type = NULL, url[512];

	*ret = (struct reply){.headers = BUF_INIT(65536), .body = BUF_INIT(16 << 20)};
	assert_non_null(curl);
	assert_int_equal(buf_puts(&ret->body, ""), 0);
	snprintf(url, sizeof(url), "http://%s%s", address, path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret->body);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &ret->headers);
	if (header && strstr(header, "Accept-Encoding"))
		curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
	snprintf(ret->type, sizeof(ret->type), "%s", type ? type : "");
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
}

static void get(const struct fixture *f, const char *path, const char *header, struct reply *ret)
{
	get_at(server_address(f->server), path, header, ret);
}

struct get_row {
	const char *path, *header;
	long status;
	const char *type;
	const char *has; /* in the body */
};

static const struct get_row get_rows[] = {
	{"/metrics", NULL, 200, "text/plain; version=0.0.4; charset=utf-8",
	 "# TYPE some_total counter\n"},
	{"/metrics", "Accept: application/openmetrics-text;version=1.0.0", 200,
	 "application/openmetrics-text; version=1.0.0; charset=utf-8", "# TYPE some counter\n"},
	{"/metrics", "Accept-Encoding: gzip", 200, "text/plain; version=0.0.4; charset=utf-8",
	 "some_total{name=\"<script>alert('&\\\"')</script>\"} 7\n"},
	{"/metrics/", NULL, 404, "text/plain; charset=utf-8", "no such page"},
	{"/-/healthy", NULL, 200, "text/plain; charset=utf-8", "healthy\n"},
	{"/-/ready", NULL, 503, "text/plain; charset=utf-8", "not ready\nbpf: failing, no BTF\n"},
	{"/", NULL, 200, "text/html; charset=utf-8",
	 "<a href=\"/entity/o-7\">" HOSTILE_HTML "7</a>"},
	{"/", "Accept-Encoding: gzip", 200, "text/html; charset=utf-8", "n&lt;1&gt;"},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8", "data-entity=\"o-7\""},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8", "<i>app</i>" HOSTILE_HTML},
	/* o-0 has no samples, o-7 has some of before */
	{"/", NULL, 200, "text/html; charset=utf-8", "<span class=\"state\">excluded</span>"},
	{"/", NULL, 200, "text/html; charset=utf-8", "<i>excluded</i>--ignore " HOSTILE_HTML},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8",
	 "<i>excluded</i>--ignore " HOSTILE_HTML},
	{"/", NULL, 200, "text/html; charset=utf-8",
	 "</i>2 files of process 9: /mnt/" HOSTILE_HTML},
	{"/", NULL, 200, "text/html; charset=utf-8", "list of mappings</i>process 8</span>"},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8",
	 "</i>5 files of 3 processes, such as 7: /mnt/" HOSTILE_HTML},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8",
	 "list of mappings</i>2 processes, such as 6</span>"},
	{"/entity/o-7", NULL, 200, "text/html; charset=utf-8",
	 "<a download href=\"/profile/1002.pb.gz\">"},
	{"/entity/o-8", NULL, 404, "text/html; charset=utf-8",
	 "<h1>Not found</h1><p>There is nothing at this address."},
	{"/entity/", NULL, 404, "text/html; charset=utf-8",
	 "<a href=\"/\">All containers and services</a>"},
	{"/entity/o-7/other", NULL, 404, "text/html; charset=utf-8", "<h1>Not found</h1>"},
	{"/entity/%2e%2e%2fetc", NULL, 404, "text/html; charset=utf-8", "<h1>Not found</h1>"},
	{"/entity/broken", NULL, 500, "text/html; charset=utf-8",
	 "<h1>No answer</h1><p>Input/output error</p>"},
	{"/entity/o-8/flame.json?kind=none", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/entity/o-7/flame.json?kind=cpu", NULL, 200, "application/json",
	 "{\"entity\":\"o-7\",\"kind\":\"cpu\",\"type\":null,\"from\":0,\"all\":true}"},
	{"/entity/o-7/flame.json?kind=go_heap&type=inuse_space&from=5&until=6", NULL, 200,
	 "application/json",
	 "{\"entity\":\"o-7\",\"kind\":\"go_heap\",\"type\":\"inuse_space\",\"from\":5000000,"
	 "\"all\":false}"},
	{"/entity/o-7/flame.json", NULL, 400, "text/plain; charset=utf-8", "kind is missing"},
	{"/entity/o-7/flame.json?kind=cpu&from=x", NULL, 400, "text/plain; charset=utf-8", ""},
	{"/entity/o-7/flame.json?kind=cpu&from=18446744073709551615", NULL, 400,
	 "text/plain; charset=utf-8", ""},
	{"/entity/o-7/flame.json?kind=none", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/entity/o-7/flame.json?kind=broken", NULL, 500, "text/plain; charset=utf-8",
	 "Input/output error\n"},
	{"/profile/1000.pb.gz", NULL, 200, "application/octet-stream", "\x1f\x8b"},
	{"/profile/1001.pb.gz", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/profile/1000", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/profile/x.pb.gz", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/assets/podprof.css", NULL, 200, "text/css; charset=utf-8", "SPDX"},
	{"/assets/flame.js", NULL, 200, "text/javascript; charset=utf-8", "use strict"},
	{"/assets/icon.svg", NULL, 200, "image/svg+xml", "<svg"},
	{"/assets/../podprof.css", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/assets/", NULL, 404, "text/plain; charset=utf-8", ""},
	{"/favicon.ico", NULL, 404, "text/plain; charset=utf-8", ""},
};

static void test_get(void **state)
{
	for (size_t i = 0; i < array_size(get_rows); i++) {
		const struct get_row *row = &get_rows[i];
		_cleanup_(reply_deinit) struct reply reply;

		row_begin(row->path);
		get(*state, row->path, row->header, &reply);
		assert_int_equal(reply.status, row->status);
		assert_string_equal(reply.type, row->type);
		assert_non_null(strstr(reply.body.data, row->has));
		assert_null(strstr(reply.body.data, "<script>alert") && strstr(reply.type, "html")
				    ? "hostile"
				    : NULL);
		if (row->header && strstr(row->header, "Accept-Encoding"))
			assert_non_null(strstr(reply.headers.data, "Content-Encoding: gzip\r\n"));
	}
}

/* The page is whole although clients go while it is made. */
static void test_scrapes(void **state)
{
	const struct fixture *f = *state;
	int fd;

	for (int i = 0; i < 20; i++) {
		_cleanup_(reply_deinit) struct reply plain, packed, openmetrics;

		ask_metrics(f, &fd);
		get(f, "/metrics", NULL, &plain);
		close(fd);
		assert_int_equal(plain.status, 200);
		assert_non_null(strstr(plain.body.data, "some_total{number=\"4999\"} 1\n"));
		ask_metrics(f, &fd);
		close(fd);
		get(f, "/metrics", "Accept-Encoding: gzip", &packed);
		assert_string_equal(packed.body.data, plain.body.data);
		get(f, "/metrics", "Accept: application/openmetrics-text; version=1.0.0",
		    &openmetrics);
		assert_string_equal(openmetrics.body.data + openmetrics.body.len - 6, "# EOF\n");
	}
}

/* The largest first, in any order of arrival. */
static void test_order(void **state)
{
	_cleanup_(reply_deinit) struct reply reply;
	const char *at;

	get(*state, "/", NULL, &reply);
	at = reply.body.data;
	for (int i = 11; i >= 0; i--) {
		char link[32];

		snprintf(link, sizeof(link), "\"/entity/o-%d\"", i);
		at = strstr(at, link);
		assert_non_null(at);
	}
}

static void test_asset_cache(void **state)
{
	for (size_t i = 0; i < n_assets; i++) {
		_cleanup_(reply_deinit) struct reply again;
		_cleanup_(reply_deinit) struct reply other;
		char path[64], header[128];

		row_begin(assets[i].name);
		snprintf(path, sizeof(path), "/assets/%s", assets[i].name);
		snprintf(header, sizeof(header), "If-None-Match: %s", assets[i].etag);
		get(*state, path, header, &again);
		assert_int_equal(again.status, 304);
		assert_int_equal(again.body.len, 0);
		get(*state, path, "If-None-Match: \"1-1\"", &other);
		assert_int_equal(other.status, 200);
		assert_int_equal(other.body.len, assets[i].len);
	}
}

static void test_download(void **state)
{
	_cleanup_(reply_deinit) struct reply reply;

	get(*state, "/profile/1000.pb.gz", NULL, &reply);
	assert_int_equal(reply.body.len, 6);
	assert_memory_equal(reply.body.data, "\x1f\x8b\0raw", 6);
	assert_non_null(strstr(reply.headers.data,
			       "Content-Disposition: attachment; filename=n_1_-1000.pb.gz\r\n"));
}

/* More than the pages show: the largest entities and the newest profiles stay, and the page says
 * how many there are. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	_cleanup_(reply_deinit) struct reply entities;
	_cleanup_(reply_deinit) struct reply profiles;

	f->n_entities = UI_ENTITIES_MAX + 1;
	f->n_profiles = UI_PROFILES_MAX + 1;
	get(f, "/", NULL, &entities);
	get(f, "/entity/o-7", NULL, &profiles);
	f->n_entities = 12;
	f->n_profiles = 3;
	assert_non_null(strstr(entities.body.data, "4096 listed, 1 left out"));
	assert_non_null(strstr(entities.body.data, "\"/entity/o-4096\""));
	assert_null(strstr(entities.body.data, "\"/entity/o-0\""));
	assert_non_null(strstr(profiles.body.data, "3001 stored"));
	assert_non_null(strstr(profiles.body.data, "the newest 3000 are listed"));
	assert_null(strstr(profiles.body.data, "\"/profile/1000.pb.gz\""));
	assert_non_null(strstr(profiles.body.data, "\"/profile/4000.pb.gz\""));
}

static void test_nothing_yet(void **state)
{
	struct fixture *f = *state;
	_cleanup_(reply_deinit) struct reply reply;

	f->n_entities = 0;
	get(f, "/", NULL, &reply);
	f->n_entities = 12;
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body.data, "No profiles yet."));
}

/* ---------------------------------------------------------------- two addresses */

/* The paths of each address, if the page has a separate address. */
static void test_two_addresses(void **state)
{
	static const struct {
		const char *path;
		long metrics, ui;
	} rows[] = {
		{"/metrics", 200, 200},		{"/-/healthy", 200, 200},
		{"/-/ready", 503, 503},		{"/", 404, 200},
		{"/entity/o-7", 404, 200},	{"/entity/o-7/flame.json?kind=cpu", 404, 200},
		{"/metrics/../", 404, 404},	{"/profile/1000.pb.gz", 404, 200},
		{"/assets/flame.js", 404, 200}, {"/debug/pprof/profile?seconds=1", 404, 404},
	};
	struct listen_plan addresses;
	_cleanup_(fixture_freep) struct fixture *f = NULL;

	(void)state;
	assert_int_equal(listen_plan("0.0.0.0:0", NULL, &addresses), 0);
	f = fixture_new(&addresses);
	assert_memory_equal(server_address(f->server), "127.0.0.1:", 10);
	assert_memory_equal(server_metrics_address(f->server), "0.0.0.0:", 8);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(reply_deinit) struct reply metrics, ui;

		row_begin(rows[i].path);
		get_at(server_metrics_address(f->server), rows[i].path, NULL, &metrics);
		get_at(server_address(f->server), rows[i].path, NULL, &ui);
		assert_int_equal(metrics.status, rows[i].metrics);
		assert_int_equal(ui.status, rows[i].ui);
		if (rows[i].metrics == 404)
			assert_non_null(strstr(metrics.body.data, "--ui-listen"));
	}
}

/* The chart's address, and a client of IPv4. */
static void test_everywhere(void **state)
{
	struct listen_plan addresses;
	_cleanup_(fixture_freep) struct fixture *f = NULL;
	_cleanup_(reply_deinit) struct reply reply;
	char at[LISTEN_TEXT_MAX];

	(void)state;
	assert_int_equal(listen_plan("[::]:0", NULL, &addresses), 0);
	f = fixture_new(&addresses);
	snprintf(at, sizeof(at), "127.0.0.1%s", strrchr(server_metrics_address(f->server), ':'));
	get_at(at, "/metrics", NULL, &reply);
	assert_int_equal(reply.status, 200);
}

/* The error says which address is taken. */
static void test_taken_address(void **state)
{
	struct fixture *f = *state;
	const char *const taken = server_address(f->server);
	struct server *server = NULL;
	struct server_opts opts = {.metrics = &f->metrics, .health = &f->health};
	struct served served;
	bool is_ui;

	served_init(&served);
	opts.loop = served.loop;
	for (int i = 0; i < 2; i++) {
		struct listen_plan addresses;

		assert_int_equal(listen_plan(i ? "127.0.0.1:0" : taken, i ? taken : "127.0.0.1:0",
					     &addresses),
				 0);
		opts.addresses = &addresses;
		assert_int_equal(server_new(&opts, &is_ui, &server), -EADDRINUSE);
		assert_int_equal(is_ui, i);
	}
	served_deinit(&served);
}

#define CROWD 500

/* One of many clients, from @i-th of 20 addresses. */
static int connect_from(const char *address, int i)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct listen_address to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)i % 20);
	assert_true(listen_parse(address, &to));
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to.addr, to.len), 0);
	return fd;
}

/* Clients that send nothing, and clients that send a byte at a time, delay no scrape. */
static void test_crowd(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";
	struct fixture *f = *state;
	uint64_t longest_ns = 0;
	int fds[CROWD];

	for (int i = 0; i < CROWD; i++)
		fds[i] = connect_from(server_address(f->server), i);
	for (size_t at = 0; at < strlen(request); at++) {
		_cleanup_(reply_deinit) struct reply reply;
		uint64_t begun_ns = nsec_monotonic();

		for (int i = 0; i < CROWD; i += 2) /* the server has closed some */
			(void)!send(fds[i], request + at, 1, MSG_NOSIGNAL);
		get(f, "/metrics", NULL, &reply);
		assert_int_equal(reply.status, 200);
		begun_ns = nsec_monotonic() - begun_ns;
		longest_ns = begun_ns > longest_ns ? begun_ns : longest_ns;
	}
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	print_message("longest scrape: %.1f ms\n", (double)longest_ns / NSEC_PER_MSEC);
	assert_true(longest_ns < 30 * NSEC_PER_SEC); /* idle clients are closed then */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),	    cmocka_unit_test(test_order),
		cmocka_unit_test(test_asset_cache), cmocka_unit_test(test_download),
		cmocka_unit_test(test_many),	    cmocka_unit_test(test_nothing_yet),
		cmocka_unit_test(test_scrapes),	    cmocka_unit_test(test_two_addresses),
		cmocka_unit_test(test_crowd),	    cmocka_unit_test(test_taken_address),
		cmocka_unit_test(test_everywhere),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_ALL);
	failed = cmocka_run_group_tests(tests, setup, teardown);
	curl_global_cleanup();
	return failed;
}
