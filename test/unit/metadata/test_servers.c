// SPDX-License-Identifier: Apache-2.0
/* The active server: a kubelet and an API server on loopback. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "metadata/metadata.h"
#include "metadata/pod.h"
#include "metadata/pods.h"
#include "metadata/servers.h"
#include "support/sink.h"
#include "support/tree.h"
#include "support/until.h"

#define UID "2c48913c-b29f-11e7-9350-020968147796"
#define POD(name)                                                             \
	"{\"metadata\":{\"uid\":\"" UID "\",\"namespace\":\"shop\",\"name\":" \
	"\"" name "\",\"resourceVersion\":\"7\"}}"
#define LIST(pod) \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" pod "]}"
#define EVENT(pod) "{\"type\":\"MODIFIED\",\"object\":" pod "}\n"
/* Blanks before the pod, more than the limit for polling every few seconds. */
#define LARGE	   (512 << 10)
#define SCRIPT_MAX 4
#define NO_MORE_NS (300 * NSEC_PER_MSEC)

static const struct sink_answer WATCH = {.how = SINK_HANG};
static const struct sink_answer FORBIDDEN = {.status = 403, .body = "no"};

struct fixture {
	struct loop *loop;
	struct tree dir;
	struct sink *kubelet, *apiserver;
	struct sink_answer kubelet_script[SCRIPT_MAX], apiserver_script[SCRIPT_MAX];
	struct servers *servers;
	char *large;
	char token_file[96];
	size_t n_wanted;
	const char *name;
	bool told_rest, told_watch;
};

/* Users see the state at the time of the event. */
static void on_source(void *ctx, const char *source, bool ok, const char *why)
{
	struct fixture *f = ctx;

	(void)ok;
	(void)why;
	assert_non_null(source);
	f->told_rest = strstr(servers_word(f->servers, SERVER_KUBELET), "large");
	f->told_watch = servers_word(f->servers, SERVER_APISERVER);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	assert_int_equal(loop_new(&f->loop), 0);
	tree_init(&f->dir);
	tree_write(f->dir.fd, "token", "secret");
	snprintf(f->token_file, sizeof(f->token_file), "%s/token", f->dir.path);
	assert_true(asprintf(&f->large, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[%*s%s]}",
			     LARGE, "", POD("kubelet")) > 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	servers_free(f->servers);
	loop_free(f->loop);
	sink_free(f->kubelet);
	sink_free(f->apiserver);
	tree_deinit(&f->dir);
	free(f->large);
	free(f);
	return 0;
}

/* The last answers of both go on for ever, also after the end of the test. */
static void start(struct fixture *f, enum metadata_mode mode, uint64_t watch_lost_ns,
		  const struct sink_answer *kubelet, size_t n_kubelet,
		  const struct sink_answer *apiserver, size_t n_apiserver)
{
	struct metadata_opts opts = {
		.loop = f->loop,
		.mode = mode,
		.node = "n",
		.token_file = f->token_file,
		.watch_lost_ns = watch_lost_ns,
		.source = on_source,
		.ctx = f,
	};

	memcpy(f->kubelet_script, kubelet, n_kubelet * sizeof(*kubelet));
	memcpy(f->apiserver_script, apiserver, n_apiserver * sizeof(*apiserver));
	f->kubelet = sink_new(f->kubelet_script, n_kubelet, NULL);
	f->apiserver = sink_new(f->apiserver_script, n_apiserver, NULL);
	opts.kubelet_url = sink_url(f->kubelet);
	opts.apiserver_url = sink_url(f->apiserver);
	assert_int_equal(servers_new(&opts, &f->servers), 0);
}

static bool is_named(void *ctx)
{
	const struct fixture *f = ctx;
	const struct pod *pod = pods_by_uid(servers_pods(f->servers), UID);

	return pod && strcmp(pod->name, f->name) == 0;
}

static void wait_named(struct fixture *f, const char *name)
{
	f->name = name;
	loop_until(f->loop, is_named, f);
}

static bool kubelet_is_asked(void *ctx)
{
	const struct fixture *f = ctx;

	return sink_n_requests(f->kubelet) >= f->n_wanted;
}

static void wait_kubelet(struct fixture *f, size_t n_requests)
{
	f->n_wanted = n_requests;
	loop_until(f->loop, kubelet_is_asked, f);
}

static bool kubelet_rests(void *ctx)
{
	struct fixture *f = ctx;

	f->name = "listed";
	return strstr(servers_word(f->servers, SERVER_KUBELET), "large");
}

static bool apiserver_is_asked(void *ctx)
{
	const struct fixture *f = ctx;

	return sink_n_requests(f->apiserver) >= f->n_wanted;
}

static bool is_given_up(void *ctx)
{
	const struct fixture *f = ctx;

	return !servers_word(f->servers, SERVER_APISERVER);
}

static bool always(void *ctx)
{
	const uint64_t *until_ns = ctx;

	return nsec_monotonic() >= *until_ns;
}

/* Long enough for a request, if one were to follow. */
static void run_on(struct fixture *f)
{
	uint64_t until_ns = nsec_monotonic() + NO_MORE_NS;

	loop_until(f->loop, always, &until_ns);
}

/* Small lists: nobody but the kubelet. */
static void kubelet_alone(void **state)
{
	static const struct sink_answer list = {.status = 200, .body = LIST(POD("kubelet"))};
	struct fixture *f = *state;

	start(f, METADATA_AUTO, 0, &list, 1, &FORBIDDEN, 1);
	wait_named(f, "kubelet");
	servers_look(f->servers);
	wait_kubelet(f, 2);
	assert_int_equal(sink_n_requests(f->apiserver), 0);
	assert_true(servers_fresh(f->servers));
	assert_string_equal(servers_word(f->servers, SERVER_KUBELET), "ok");
}

/* Large lists: podprof watches the API server, and stops polling the kubelet. */
static void large_lists(void **state)
{
	struct fixture *f = *state;
	const struct sink_answer kubelet = {.status = 200, .body = f->large};
	const struct sink_answer apiserver[] = {
		{.status = 200, .body = LIST(POD("listed"))},
		{.status = 200, .body = EVENT(POD("changed"))},
		WATCH,
	};

	start(f, METADATA_AUTO, 0, &kubelet, 1, apiserver, array_size(apiserver));
	wait_named(f, "changed");
	assert_true(f->told_rest && f->told_watch);
	assert_true(servers_fresh(f->servers));
	servers_look(f->servers);
	run_on(f);
	assert_int_equal(sink_n_requests(f->kubelet), 1);
	assert_int_equal(servers_state(f->servers), SERVERS_ANSWERED);
}

static void only_the_kubelet_may_be_asked(void **state)
{
	struct fixture *f = *state;
	const struct sink_answer kubelet = {.status = 200, .body = f->large};

	start(f, METADATA_KUBELET, 0, &kubelet, 1, &FORBIDDEN, 1);
	servers_look(f->servers);
	wait_kubelet(f, 2);
	assert_int_equal(sink_n_requests(f->apiserver), 0);
}

/* podprof asks the API server once, and gives up at the next list. */
static void large_and_refused(void **state)
{
	struct fixture *f = *state;
	const struct sink_answer kubelet = {.status = 200, .body = f->large};

	start(f, METADATA_AUTO, 0, &kubelet, 1, &FORBIDDEN, 1);
	wait_named(f, "kubelet");
	f->n_wanted = 1;
	loop_until(f->loop, apiserver_is_asked, f);
	servers_look(f->servers);
	loop_until(f->loop, is_given_up, f);
	servers_look(f->servers);
	wait_kubelet(f, sink_n_requests(f->kubelet) + 1);
	assert_true(servers_fresh(f->servers));
	assert_false(f->told_rest || f->told_watch);
}

/* The watch is broken for too long: podprof returns to the kubelet at once; the kubelet's list is
 * small by now. */
static void watch_is_lost(void **state)
{
	struct fixture *f = *state;
	const struct sink_answer kubelet[] = {
		{.status = 200, .body = f->large},
		{.status = 200, .body = LIST(POD("small"))},
	};
	const struct sink_answer apiserver[] = {
		{.status = 200, .body = LIST(POD("listed"))},
		{.how = SINK_CLOSE},
	};

	start(f, METADATA_AUTO, 1, kubelet, array_size(kubelet), apiserver, array_size(apiserver));
	wait_named(f, "small");
	assert_true(sink_n_requests(f->apiserver) >= 2);
	assert_false(f->told_rest || f->told_watch);
	assert_string_equal(servers_word(f->servers, SERVER_KUBELET), "ok");
}

/* After a shorter break, podprof waits. */
static void watch_breaks_off(void **state)
{
	struct fixture *f = *state;
	const struct sink_answer kubelet = {.status = 200, .body = f->large};
	const struct sink_answer apiserver[] = {
		{.status = 200, .body = LIST(POD("listed"))},
		{.how = SINK_CLOSE},
		{.status = 200, .body = EVENT(POD("changed"))},
		WATCH,
	};

	start(f, METADATA_AUTO, 0, &kubelet, 1, apiserver, array_size(apiserver));
	wait_named(f, "changed");
	assert_int_equal(sink_n_requests(f->kubelet), 1);
}

/* A late kubelet with a large list: the API server's turn begins with a list. */
static void late_and_large(void **state)
{
	static const struct sink_answer apiserver = {.status = 200, .body = LIST(POD("listed"))};
	struct fixture *f = *state;
	const struct sink_answer kubelet[] = {
		{.status = 500, .body = "starting"},
		{.status = 200, .body = f->large},
	};

	start(f, METADATA_AUTO, 0, kubelet, array_size(kubelet), &apiserver, 1);
	loop_until(f->loop, kubelet_rests, f);
	assert_true(is_named(f));
	run_on(f);
	assert_int_equal(sink_n_requests(f->kubelet), 2);
}

/* A late kubelet with a small list: the watch ends. */
static void late_and_small(void **state)
{
	static const struct sink_answer kubelet[] = {
		{.status = 401, .body = "starting"},
		{.status = 200, .body = LIST(POD("kubelet"))},
	};
	struct fixture *f = *state;

	start(f, METADATA_AUTO, 0, kubelet, array_size(kubelet), &WATCH, 1);
	wait_named(f, "kubelet");
	assert_false(f->told_rest || f->told_watch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kubelet_alone),	 TEST(large_lists),    TEST(only_the_kubelet_may_be_asked),
		TEST(large_and_refused), TEST(watch_is_lost),  TEST(watch_breaks_off),
		TEST(late_and_large),	 TEST(late_and_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
