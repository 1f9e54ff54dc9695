// SPDX-License-Identifier: Apache-2.0
/* Names from two sources: a runtime, in a directory in place of the node's root, and a kubelet on
 * loopback. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "metadata/lookup.h"
#include "metadata/metadata.h"
#include "support/metrics.h"
#include "support/sink.h"
#include "support/tree.h"
#include "support/until.h"

#define C1	    "6d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define C2	    "7d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define C3	    "8d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define UID	    "2c48913c-b29f-11e7-9350-020968147796"
#define LIST(items) "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"
#define POD(name, statuses)                                                          \
	"{\"metadata\":{\"uid\":\"" UID "\",\"namespace\":\"shop\",\"name\":\"" name \
	"\",\"labels\":{\"app.kubernetes.io/"                                        \
	"name\":\"web\"}},\"status\":{\"containerStatuses\":[" statuses "]}}"
#define STATUS(name, id) "{\"name\":\"" name "\",\"containerID\":\"containerd://" id "\"}"

struct fixture {
	struct loop *loop;
	struct tree node;
	struct sink *sink;
	struct metadata *metadata;
	char token_file[96];
	uint64_t sandbox_after_ns;
	const char *id; /* the awaited container */
	enum metadata_outcome wanted;
	struct metadata_names names;
	size_t n_told;
	char told[256];
};

static void on_source(void *ctx, const char *source, bool ok, const char *why)
{
	struct fixture *f = ctx;

	f->n_told++;
	snprintf(f->told, sizeof(f->told), "%s %d %s", source, ok, why);
}

static void bundle(const struct fixture *f, const char *id, const char *type, const char *pod,
		   const char *container)
{
	char path[300], text[800];

	snprintf(path, sizeof(path), "run/containerd/io.containerd.runtime.v2.task/k8s.io/%s", id);
	tree_mkdir(f->node.fd, path);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/config.json");
	snprintf(text, sizeof(text),
		 "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"%s\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
		 "\"io.kubernetes.cri.sandbox-name\":\"%s\","
		 "\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","
		 "\"io.kubernetes.cri.container-name\":\"%s\"}}",
		 type, pod, container);
	tree_write(f->node.fd, path, text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	unsetenv("HOST_IP");
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(loop_new(&f->loop), 0);
	tree_init(&f->node);
	tree_write(f->node.fd, "token", "secret");
	snprintf(f->token_file, sizeof(f->token_file), "%s/token", f->node.path);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	metadata_free(f->metadata);
	loop_free(f->loop);
	sink_free(f->sink);
	tree_deinit(&f->node);
	free(f);
	return 0;
}

/* @script: of the kubelet; NULL for none. */
static void start(struct fixture *f, enum metadata_mode mode, const struct sink_answer *script,
		  size_t n)
{
	struct metadata_opts opts = {
		.loop = f->loop,
		.mode = mode,
		.node = "n",
		.host_root = f->node.path,
		.token_file = f->token_file,
		.sandbox_after_ns = f->sandbox_after_ns,
		.source = on_source,
		.ctx = f,
	};

	if (script) {
		f->sink = sink_new(script, n, NULL);
		opts.kubelet_url = sink_url(f->sink);
	}
	assert_int_equal(metadata_new(&opts, &f->metadata), 0);
}

static enum metadata_outcome find(struct fixture *f, const char *id, const char *uid)
{
	return metadata_find(f->metadata, id, uid, &f->names);
}

static bool has_outcome(void *ctx)
{
	struct fixture *f = ctx;

	return find(f, f->id, UID) == f->wanted && !f->names.partial;
}

static void wait_outcome(struct fixture *f, const char *id, enum metadata_outcome outcome)
{
	f->id = id;
	f->wanted = outcome;
	loop_until(f->loop, has_outcome, f);
}

static uint64_t reads(const struct fixture *f, const char *labels)
{
	return metrics_get(metadata_collect, f->metadata, "podprof_metadata_state_reads", labels);
}

/* ---------------------------------------------------------------- the runtime alone */

static void runtime_alone(void **state)
{
	struct fixture *f = *state;
	char text[128];

	bundle(f, C1, "container", "web-1", "app");
	bundle(f, C2, "sandbox", "web-1", "");
	start(f, METADATA_RUNTIME, NULL, 0);
	assert_true(metadata_active(f->metadata));
	metadata_describe(f->metadata, text, sizeof(text));
	assert_string_equal(text, "runtime: no container of any yet");
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_string_equal(f->names.pod->node, "n");
	assert_string_equal(f->names.container->name, "app");
	assert_false(f->names.partial);
	assert_non_null(f->names.state);
	assert_int_equal(find(f, C2, UID), METADATA_SANDBOX);
	assert_null(f->names.container);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_string_equal(f->told, "containerd 1 ok");
	assert_int_equal(f->n_told, 1);
	/* A single read. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_int_equal(reads(f, "containerd,ok"), 2);
	metadata_describe(f->metadata, text, sizeof(text));
	assert_string_equal(text, "containerd: ok");
}

static void found_later(void **state)
{
	struct fixture *f = *state;

	start(f, METADATA_AUTO, NULL, 0);
	assert_int_equal(find(f, C1, ""), METADATA_UNKNOWN_ID);
	bundle(f, C1, "container", "web-1", "app");
	wait_outcome(f, C1, METADATA_OK);
}

/* A pod's directory is there before the link to the container's log. */
static void first_the_pod(void **state)
{
	struct fixture *f = *state;

	tree_mkdir(f->node.fd, "var/log/pods/shop_web-1_" UID);
	start(f, METADATA_AUTO, NULL, 0);
	assert_int_equal(find(f, C1, UID), METADATA_POD);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_null(f->names.container);
	bundle(f, C1, "container", "web-1", "app");
	wait_outcome(f, C1, METADATA_OK);
	assert_string_equal(f->names.container->name, "app");
}

/* With too many containers, a server's names are still there. */
static void too_many(void **state)
{
	static const struct sink_answer list = {
		.status = 200, .body = LIST(POD("web-1", STATUS("app", C1) "," STATUS("db", C2)))};
	struct fixture *f = *state;
	char id[65];

	start(f, METADATA_KUBELET, &list, 1);
	wait_outcome(f, C1, METADATA_OK);
	for (unsigned int i = 0; i < LOOKUPS_MAX; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_int_equal(find(f, id, ""), METADATA_UNKNOWN_ID);
	}
	assert_int_equal(find(f, C3, UID), METADATA_UNKNOWN_ID);
	assert_int_equal(find(f, C2, UID), METADATA_OK);
	assert_string_equal(f->names.container->name, "db");
}

/* The lookup of an unknown container is retried; nothing else is. */
static bool tried_often(void *ctx)
{
	struct fixture *f = ctx;

	return find(f, C2, "") == METADATA_UNKNOWN_ID && reads(f, "containerd,not_found") >= 4;
}

/* For a process of a pod outside of its containers, the answer is the pod alone. */
static void the_pod_alone(void **state)
{
	struct fixture *f = *state;

	start(f, METADATA_AUTO, NULL, 0);
	assert_int_equal(find(f, "", UID), METADATA_UNKNOWN_ID);
	tree_mkdir(f->node.fd, "var/log/pods/shop_web-1_" UID);
	wait_outcome(f, "", METADATA_POD);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_null(f->names.container);
	/* no further lookups */
	loop_until(f->loop, tried_often, f);
	assert_int_equal(find(f, "", UID), METADATA_POD);
	assert_int_equal(reads(f, "podlogs,ok"), 1);
}

static void of_no_pod(void **state)
{
	struct fixture *f = *state;

	tree_mkdir(f->node.fd, "var/lib/docker/containers/" C1);
	tree_write(f->node.fd, "var/lib/docker/containers/" C1 "/config.v2.json",
		   "{\"Name\":\"/"
		   "db\",\"Config\":{\"Labels\":{\"com.docker.compose.service\":\"d\"}}}");
	start(f, METADATA_AUTO, NULL, 0);
	assert_int_equal(find(f, C1, ""), METADATA_PLAIN);
	assert_string_equal(f->names.state->name, "db");
	assert_string_equal(container_label(f->names.state, "com.docker.compose.service"), "d");
	assert_null(f->names.pod);
}

static void nobody_is_asked(void **state)
{
	struct fixture *f = *state;

	bundle(f, C1, "container", "web-1", "app");
	start(f, METADATA_NONE, NULL, 0);
	assert_false(metadata_active(f->metadata));
	assert_int_equal(find(f, C1, UID), METADATA_NOT_ASKED);
}

/* There are hundreds at the start: the loop continues in between. */
static bool all_known(void *ctx)
{
	struct fixture *f = ctx;
	char id[65];
	int n = 0;

	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		n += find(f, id, "") == METADATA_OK;
	}
	return n == 100;
}

static void many_at_once(void **state)
{
	struct fixture *f = *state;
	char id[65];

	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		bundle(f, id, "container", "web-1", "app");
	}
	start(f, METADATA_AUTO, NULL, 0);
	assert_false(all_known(f));
	assert_true(reads(f, "containerd,ok") < 100);
	loop_until(f->loop, all_known, f);
	assert_int_equal(reads(f, "containerd,ok"), 100);
}

/* ---------------------------------------------------------------- with a kubelet */

static void kubelet_is_late(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture *f = *state;

	bundle(f, C1, "container", "web-1", "app");
	start(f, METADATA_AUTO, &hang, 1);
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_true(f->names.partial);
	assert_int_equal(find(f, C2, UID), METADATA_UNREACHABLE);
}

/* The kubelet knows the pod, but the container only from the third list on. */
static void kubelet_knows_the_pod(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-1", "")), .times = 2},
		{.status = 200,
		 .body = LIST(POD("web-1", STATUS("app", C1) "," STATUS("late", C2)))},
	};
	struct fixture *f = *state;

	bundle(f, C1, "container", "web-1", "app");
	start(f, METADATA_AUTO, script, array_size(script));
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_true(f->names.partial);
	wait_outcome(f, C1, METADATA_OK); /* whole now */
	assert_string_equal(pod_label(f->names.pod, "app.kubernetes.io/name"), "web");
	assert_string_equal(f->names.container->name, "app");
	assert_int_equal(find(f, C2, UID), METADATA_POD);
	wait_outcome(f, C2, METADATA_OK);
	assert_string_equal(f->names.container->name, "late");
	assert_true(sink_n_requests(f->sink) >= 3);
}

/* The kubelet knows the pod by UID alone, so no further request follows. */
static void kubelet_knows_a_pod_alone(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-1", STATUS("app", C1)))},
	};
	struct fixture *f = *state;

	tree_mkdir(f->node.fd, "var/log/pods/shop_web-1_" UID);
	start(f, METADATA_AUTO, script, array_size(script));
	assert_int_equal(find(f, "", UID), METADATA_POD);
	assert_true(f->names.partial);
	wait_outcome(f, "", METADATA_POD);
	assert_string_equal(pod_label(f->names.pod, "app.kubernetes.io/name"), "web");
	loop_until(f->loop, tried_often, f);
	assert_int_equal(find(f, "", UID), METADATA_POD);
	assert_false(f->names.partial);
	assert_int_equal(sink_n_requests(f->sink), 1);
}

static bool fails(void *ctx)
{
	const struct fixture *f = ctx;

	return strstr(f->told, "kubelet 0") != NULL;
}

/* A container of a pod that stays missing from the kubelet's status for long enough is the sandbox.
 */
static void sandbox_by_elimination(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-1", STATUS("app", C1)))},
		{.status = 500, .body = "no"},
	};
	struct fixture *f = *state;

	f->sandbox_after_ns = 1;
	start(f, METADATA_KUBELET, script, array_size(script));
	assert_int_equal(find(f, C2, UID), METADATA_UNREACHABLE);
	wait_outcome(f, C2, METADATA_SANDBOX);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_null(f->names.container);
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_int_equal(find(f, "", UID), METADATA_POD);
	assert_int_equal(find(f, "", UID), METADATA_POD);
	/* a new container is not, and neither while the kubelet does not answer */
	assert_int_equal(find(f, C3, UID), METADATA_POD);
	loop_until(f->loop, fails, f);
	assert_int_equal(find(f, C3, UID), METADATA_POD);
	/* but a decision stays */
	assert_int_equal(find(f, C2, UID), METADATA_SANDBOX);
}

/* A pod without a started container, and the usual time until the start. */
static void no_sandbox_yet(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-1", "")), .times = 3},
		{.status = 200, .body = LIST(POD("web-1", STATUS("app", C1)))},
	};
	struct fixture *f = *state;

	f->sandbox_after_ns = 1;
	start(f, METADATA_KUBELET, script, array_size(script));
	wait_outcome(f, C2, METADATA_POD);
	while (sink_n_requests(f->sink) < 3)
		wait_outcome(f, C2, METADATA_POD);
	wait_outcome(f, C2, METADATA_SANDBOX);
	metadata_free(f->metadata);
	sink_free(f->sink);
	f->sandbox_after_ns = 0;
	start(f, METADATA_KUBELET, script + 1, 1);
	wait_outcome(f, C2, METADATA_POD);
	while (sink_n_requests(f->sink) < 2)
		wait_outcome(f, C2, METADATA_POD);
	assert_int_equal(find(f, C2, UID), METADATA_POD);
}

/* A pod's status has a later container but not an earlier one: the earlier container is the
 * sandbox, at once. */
static void sandbox_came_first(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-1", "")), .times = 2},
		{.status = 200, .body = LIST(POD("web-1", STATUS("app", C1)))},
	};
	struct fixture *f = *state;

	start(f, METADATA_KUBELET, script, array_size(script));
	wait_outcome(f, C2, METADATA_POD);
	while (sink_n_requests(f->sink) < 2) /* a retry happened meanwhile */
		wait_outcome(f, C2, METADATA_POD);
	/* both begin at once: the order is unknown */
	assert_int_equal(find(f, C1, UID), METADATA_POD);
	assert_int_equal(find(f, C3, UID), METADATA_POD);
	wait_outcome(f, C1, METADATA_OK);
	assert_int_equal(find(f, C2, UID), METADATA_SANDBOX);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_null(f->names.container);
	assert_int_equal(find(f, C3, UID), METADATA_POD);
}

static void kubelet_counts_more(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 200, .body = LIST(POD("web-2", STATUS("server", C1)))},
	};
	struct fixture *f = *state;

	bundle(f, C1, "container", "web-1", "app");
	bundle(f, C2, "container", "web-1", "app");
	start(f, METADATA_AUTO, script, array_size(script));
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	wait_outcome(f, C1, METADATA_OK);
	assert_string_equal(f->names.pod->name, "web-2");
	assert_string_equal(f->names.container->name, "server");
	assert_string_equal(f->names.state->pod->name, "web-1");
	/* An earlier pod with the same UID is another pod. */
	assert_int_equal(find(f, C2, UID), METADATA_OK);
	assert_string_equal(f->names.pod->name, "web-1");
	assert_true(f->names.partial);
}

static void kubelet_denies(void **state)
{
	static const struct sink_answer script[] = {{.status = 403, .body = "Forbidden"}};
	struct fixture *f = *state;

	bundle(f, C1, "container", "web-1", "app");
	start(f, METADATA_AUTO, script, array_size(script));
	wait_outcome(f, C2, METADATA_DENIED);
	assert_int_equal(find(f, C1, UID), METADATA_OK);
	assert_false(f->names.partial);
	assert_string_equal(f->names.pod->name, "web-1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(runtime_alone),
		TEST(found_later),
		TEST(first_the_pod),
		TEST(the_pod_alone),
		TEST(of_no_pod),
		TEST(nobody_is_asked),
		TEST(many_at_once),
		TEST(too_many),
		TEST(kubelet_is_late),
		TEST(kubelet_knows_the_pod),
		TEST(kubelet_counts_more),
		TEST(kubelet_knows_a_pod_alone),
		TEST(sandbox_by_elimination),
		TEST(no_sandbox_yet),
		TEST(sandbox_came_first),
		TEST(kubelet_denies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
