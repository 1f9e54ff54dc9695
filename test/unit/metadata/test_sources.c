// SPDX-License-Identifier: Apache-2.0
/* The kubelet's and the API server's replies, from a real server on loopback. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "metadata/apiserver.h"
#include "metadata/kubelet.h"
#include "metadata/pods.h"
#include "support/sink.h"
#include "support/until.h"

#define POD(uid, version)                                                        \
	"{\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"s\",\"name\":\"" uid \
	"\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                 \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version \
	"\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

struct fixture {
	struct loop *loop;
	struct http *http;
	struct pods *pods;
	struct sink *sink;
	char token_file[64];
	size_t n_replies;
	size_t n_wanted;		/* awaited replies */
	enum podclient_outcome outcome; /* of the last */
	char error[128];
	char until[2]; /* the awaited pod */
};

static void write_token(const struct fixture *f, const char *token)
{
	_cleanup_(fclosep) FILE *file = fopen(f->token_file, "we");

	assert_non_null(file);
	fprintf(file, "%s\n", token);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	snprintf(f->token_file, sizeof(f->token_file), "/tmp/podprof-token-XXXXXX");
	fd = mkstemp(f->token_file);
	assert_true(fd >= 0);
	close(fd);
	write_token(f, "first");
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	assert_int_equal(pods_new(&f->pods), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_free(f->http);
	pods_free(f->pods);
	loop_free(f->loop);
	sink_free(f->sink);
	unlink(f->token_file);
	free(f);
	return 0;
}

static struct podclient_opts serve(struct fixture *f, const struct sink_answer *script, size_t n)
{
	f->sink = sink_new(script, n, NULL);
	return (struct podclient_opts){
		.http = f->http,
		.url = sink_url(f->sink),
		.token_file = f->token_file,
		.pods = f->pods,
	};
}

static void on_reply(void *ctx, const struct podclient_reply *reply)
{
	struct fixture *f = ctx;

	f->n_replies++;
	f->outcome = reply->outcome;
	snprintf(f->error, sizeof(f->error), "%s", reply->error);
}

static bool has_replies(void *ctx)
{
	const struct fixture *f = ctx;

	return f->n_replies >= f->n_wanted;
}

static void wait_replies(struct fixture *f, size_t n)
{
	f->n_wanted = n;
	loop_until(f->loop, has_replies, f);
}

static bool has_pod(void *ctx)
{
	const struct fixture *f = ctx;

	return pods_by_uid(f->pods, f->until);
}

static void wait_pod(struct fixture *f, char uid)
{
	f->until[0] = uid;
	loop_until(f->loop, has_pod, f);
}

/* ---------------------------------------------------------------- one request */

struct row {
	const char *name;
	struct sink_answer answer;
	enum podclient_outcome outcome;
	const char *error; /* a part of the error */
};

static const struct row rows[] = {
	{"list", {.status = 200, .body = LIST("7", POD("a", "1"))}, PODCLIENT_OK, "ok"},
	{"unauthorized",
	 {.status = 401, .body = "Unauthorized"},
	 PODCLIENT_DENIED,
	 "HTTP status 401: Unauthorized"},
	{"forbidden",
	 {.status = 403, .body = "Forbidden (user=x, verb=get, resource=nodes)\nmore"},
	 PODCLIENT_DENIED,
	 "HTTP status 403: Forbidden (user=x, verb=get, resource=nodes)"},
	{"not found", {.status = 404, .body = ""}, PODCLIENT_ODD, "HTTP status 404"},
	{"too old", {.status = 410, .body = ""}, PODCLIENT_EXPIRED, "HTTP status 410"},
	{"too many", {.status = 429, .body = ""}, PODCLIENT_UNREACHABLE, "HTTP status 429"},
	{"broken", {.status = 500, .body = ""}, PODCLIENT_UNREACHABLE, "HTTP status 500"},
	{"a page", {.status = 200, .body = "<html>"}, PODCLIENT_ODD, "malformed"},
	{"half a list",
	 {.status = 200, .body = "{\"kind\":\"PodList\","},
	 PODCLIENT_ODD,
	 "malformed"},
	{"elsewhere",
	 {.status = 302, .location = "http://127.0.0.1:1/"},
	 PODCLIENT_ODD,
	 "HTTP status 302"},
	{"hangs up", {.how = SINK_CLOSE}, PODCLIENT_UNREACHABLE, ""},
	{"hangs", {.how = SINK_HANG}, PODCLIENT_UNREACHABLE, "timed out"},
};

static void test_rows(void **state)
{
	const struct podclient_request request = {
		.path = "/pods",
		.kind = PODSTREAM_LIST,
		.total_ns = 2 * NSEC_PER_SEC,
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		struct podclient_opts opts = serve(f, &rows[i].answer, 1);
		struct podclient *client;

		row_begin(rows[i].name);
		f->n_replies = 0;
		assert_int_equal(podclient_new(&opts, on_reply, f, &client), 0);
		podclient_get(client, &request);
		wait_replies(f, 1);
		assert_false(podclient_busy(client));
		assert_int_equal(f->outcome, rows[i].outcome);
		assert_non_null(strstr(f->error, rows[i].error));
		assert_string_equal(sink_request(f->sink, 0)->authorization, "Bearer first");
		podclient_free(client);
		sink_free(take_ptr(f->sink));
	}
	assert_int_equal(pods_count(f->pods), 1);
}

static void freed_while_busy(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	const struct podclient_request request = {.path = "/", .total_ns = 60 * NSEC_PER_SEC};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, &hang, 1);
	struct podclient *client;

	assert_int_equal(podclient_new(&opts, on_reply, f, &client), 0);
	podclient_get(client, &request);
	assert_true(podclient_busy(client));
	podclient_free(client);
	assert_int_equal(f->n_replies, 0);
}

static void without_a_token(void **state)
{
	static const struct sink_answer ok = {.status = 200, .body = LIST("7", "")};
	const struct podclient_request request = {.path = "/", .total_ns = NSEC_PER_SEC};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, &ok, 1);
	struct podclient *client;

	opts.token_file = "/nowhere/token";
	assert_int_equal(podclient_new(&opts, on_reply, f, &client), 0);
	podclient_get(client, &request);
	assert_int_equal(f->n_replies, 1);
	assert_int_equal(f->outcome, PODCLIENT_DENIED);
	assert_int_equal(sink_n_requests(f->sink), 0);
	podclient_free(client);
}

/* ---------------------------------------------------------------- kubelet */

/* One request at first; another for an unknown container, with the token of that time. */
static void kubelet_is_asked_again(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("", POD("a", "1"))},
		{.status = 200, .body = LIST("", POD("b", "1"))},
	};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, script, array_size(script));
	struct kubelet *kubelet;

	assert_int_equal(kubelet_new(f->loop, &opts, on_reply, f, &kubelet), 0);
	wait_replies(f, 1);
	assert_non_null(pods_by_uid(f->pods, "a"));
	write_token(f, "second");
	kubelet_look(kubelet);
	kubelet_look(kubelet);
	wait_replies(f, 2);
	assert_null(pods_by_uid(f->pods, "a"));
	assert_non_null(pods_by_uid(f->pods, "b"));
	assert_int_equal(sink_n_requests(f->sink), 2);
	assert_string_equal(sink_request(f->sink, 0)->path, "/pods");
	assert_string_equal(sink_request(f->sink, 0)->authorization, "Bearer first");
	assert_string_equal(sink_request(f->sink, 1)->authorization, "Bearer second");
	kubelet_free(kubelet);
}

static void kubelet_fails_for_a_while(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("", POD("a", "1"))},
		{.status = 500, .times = 2},
		{.status = 200, .body = LIST("", POD("b", "1"))},
	};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, script, array_size(script));
	struct kubelet *kubelet;

	assert_int_equal(kubelet_new(f->loop, &opts, on_reply, f, &kubelet), 0);
	wait_replies(f, 1);
	kubelet_look(kubelet);
	wait_replies(f, 3);
	assert_int_equal(f->outcome, PODCLIENT_UNREACHABLE);
	assert_non_null(pods_by_uid(f->pods, "a")); /* known pods stay known */
	wait_replies(f, 4);
	assert_int_equal(f->outcome, PODCLIENT_OK);
	assert_non_null(pods_by_uid(f->pods, "b"));
	kubelet_free(kubelet);
}

/* Without any lookup, changed annotations still arrive soon. */
static void kubelet_is_asked_now_and_then(void **state)
{
	static const struct {
		uint64_t bytes;
		uint64_t ms;
	} pauses[] = {
		{0, 4000},	     {4 * 98304, 4000},		  {4 * 98304 + 98304, 5000},
		{2 << 20, 21333},    {60 * 98304 - 98304, 59000}, {60 * 98304, 60000},
		{UINT64_MAX, 60000},
	};
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("", POD("a", "1"))},
		{.status = 200, .body = LIST("", POD("b", "1"))},
	};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, script, array_size(script));
	struct kubelet *kubelet;

	for (size_t i = 0; i < array_size(pauses); i++)
		assert_int_equal(kubelet_refresh_ns(pauses[i].bytes) / NSEC_PER_MSEC, pauses[i].ms);
	assert_int_equal(kubelet_new(f->loop, &opts, on_reply, f, &kubelet), 0);
	kubelet_look(kubelet); /* the first request is already under way */
	wait_replies(f, 2);
	assert_non_null(pods_by_uid(f->pods, "b"));
	assert_true(sink_request(f->sink, 1)->time_ns - sink_request(f->sink, 0)->time_ns >=
		    4 * NSEC_PER_SEC);
	kubelet_free(kubelet);
}

/* ---------------------------------------------------------------- API server */

static void apiserver_watches(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("5", POD("a", "1"))},
		{.status = 200,
		 .body = EVENT("ADDED", POD("b", "6"))
			 EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"8\"}}")},
		{.status = 500},
		{.status = 200,
		 .body = EVENT("DELETED", POD("b", "9")) EVENT("ADDED", POD("c", "9"))},
		{.status = 200, .body = EVENT("ERROR", "{\"code\":410}")},
		{.status = 200, .body = LIST("20", POD("d", "20"))},
		{.how = SINK_HANG},
	};
	static const char *const queries[] = {
		"fieldSelector=spec.nodeName=n-1.x&resourceVersion=0&",
		"resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=",
		"resourceVersion=8&",
		"resourceVersion=8&",
		"resourceVersion=9&",
		"fieldSelector=spec.nodeName=n-1.x&resourceVersion=0&",
	};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, script, array_size(script));
	struct apiserver *server;

	assert_int_equal(apiserver_new(f->loop, &opts, "n-1.x", on_reply, f, &server), 0);
	wait_pod(f, 'b');
	assert_non_null(pods_by_uid(f->pods, "a"));
	wait_pod(f, 'c');
	assert_null(pods_by_uid(f->pods, "b"));
	assert_non_null(pods_by_uid(f->pods, "a"));
	wait_pod(f, 'd');
	wait_replies(f, 6);
	assert_int_equal(pods_count(f->pods), 1);
	assert_string_equal(sink_request(f->sink, 0)->path, "/api/v1/pods");
	for (size_t i = 0; i < array_size(queries); i++)
		assert_non_null(strstr(sink_request(f->sink, i)->query, queries[i]));
	apiserver_free(server);
}

static void apiserver_wants_a_name(void **state)
{
	static const char *const names[] = {"", "a b", "a&watch=1", "a%20", "UPPER"};
	struct fixture *f = *state;
	struct podclient_opts opts = {.http = f->http, .pods = f->pods, .url = "http://x"};
	struct apiserver *server;

	for (size_t i = 0; i < array_size(names); i++)
		assert_int_equal(apiserver_new(f->loop, &opts, names[i], on_reply, f, &server),
				 -EINVAL);
}

/* podprof does not use a version with characters that would change the request. */
static void apiserver_with_odd_versions(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST("5&x=1", POD("a", "1"))},
		{.status = 200, .body = LIST("6", POD("b", "1"))},
		{.how = SINK_HANG},
	};
	struct fixture *f = *state;
	struct podclient_opts opts = serve(f, script, array_size(script));
	struct apiserver *server;

	assert_int_equal(apiserver_new(f->loop, &opts, "n", on_reply, f, &server), 0);
	wait_pod(f, 'b');
	assert_non_null(strstr(sink_request(f->sink, 1)->query, "resourceVersion=0"));
	apiserver_free(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),
		TEST(freed_while_busy),
		TEST(without_a_token),
		TEST(kubelet_is_asked_again),
		TEST(kubelet_is_asked_now_and_then),
		TEST(kubelet_fails_for_a_while),
		TEST(apiserver_watches),
		TEST(apiserver_wants_a_name),
		TEST(apiserver_with_odd_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
