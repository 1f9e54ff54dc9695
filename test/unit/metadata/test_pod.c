// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "metadata/pod.h"
#include "metadata/workload.h"
#include "support/allocfail.h"

#define META(more) \
	"{\"metadata\":{\"uid\":\"u\",\"namespace\":\"shop\",\"name\":\"web-0\"" more "}}"
#define STATUS(more)                                                                          \
	"{\"metadata\":{\"uid\":\"u\",\"namespace\":\"shop\",\"name\":\"web-0\"},\"status\":" \
	"{" more "}}"
#define OWNER(kind, name)                                                             \
	",\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"x\"},{\"kind\":\"" kind \
	"\",\"name\":\"" name "\",\"controller\":true}]"

struct row {
	const char *name;
	const char *json;
	const char *want; /* NULL: malformed */
};

static const struct row rows[] = {
	{"names alone", META(""), "u shop/web-0 service=web-0"},
	{"in any order",
	 "{\"status\":{},\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"namespace\":\"s\"},\"spec\":"
	 "{\"nodeName\":\"node-1\"}}",
	 "u s/n@node-1 service=n"},
	{"unknown members", META(",\"managedFields\":[{\"a\":{\"b\":1}}]"),
	 "u shop/web-0 service=web-0"},
	{"stateful set", META(OWNER("StatefulSet", "web")),
	 "u shop/web-0 StatefulSet/web service=web"},
	{"no controller", META(",\"ownerReferences\":[{\"kind\":\"A\",\"name\":\"b\"}]"),
	 "u shop/web-0 service=web-0"},
	{"deployment",
	 META(",\"labels\":{\"pod-template-hash\":\"5d4f8\"}" OWNER("ReplicaSet", "web-5d4f8")),
	 "u shop/web-0 Deployment/web service=web"},
	{"Argo's rollout",
	 META(",\"labels\":{\"rollouts-pod-template-hash\":\"5d4f8\"}" OWNER("ReplicaSet",
									     "web-5d4f8")),
	 "u shop/web-0 Rollout/web service=web"},
	{"replica set of its own", META(OWNER("ReplicaSet", "web-5d4f8")),
	 "u shop/web-0 ReplicaSet/web-5d4f8 service=web-5d4f8"},
	{"another hash",
	 META(",\"labels\":{\"pod-template-hash\":\"5d4f9\"}" OWNER("ReplicaSet", "web-5d4f8")),
	 "u shop/web-0 ReplicaSet/web-5d4f8 service=web-5d4f8"},
	{"nothing but a hash",
	 META(",\"labels\":{\"pod-template-hash\":\"5d4f8\"}" OWNER("ReplicaSet", "-5d4f8")),
	 "u shop/web-0 ReplicaSet/-5d4f8 service=-5d4f8"},
	{"cron job",
	 META(",\"creationTimestamp\":\"2026-01-02T03:05:01Z\"" OWNER("Job", "backup-29455385")),
	 "u shop/web-0 CronJob/backup service=backup"},
	{"job of a number",
	 META(",\"creationTimestamp\":\"2026-01-02T03:04:59Z\"" OWNER("Job", "backup-29455385")),
	 "u shop/web-0 Job/backup-29455385 service=backup-29455385"},
	{"job of an old number",
	 META(",\"creationTimestamp\":\"2026-01-02T03:05:01Z\"" OWNER("Job", "backup-29400000")),
	 "u shop/web-0 Job/backup-29400000 service=backup-29400000"},
	{"job made at an odd time",
	 META(",\"creationTimestamp\":\"yesterday\"" OWNER("Job", "backup-29455385")),
	 "u shop/web-0 Job/backup-29455385 service=backup-29455385"},
	{"static pod",
	 META(",\"annotations\":{\"kubernetes.io/config.mirror\":\"0123\"}" OWNER("Node", "n1")),
	 "u=0123 shop/web-0 service=web-0"},
	{"static pod on its node",
	 "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"s\",\"name\":\"proxy-n-1\"" OWNER(
		 "Node", "n-1") "},\"spec\":{\"nodeName\":\"n-1\"}}",
	 "u s/proxy-n-1@n-1 service=proxy"},
	{"static pod, as its kubelet knows it",
	 "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"s\",\"name\":\"proxy-n-1\",\"annotations\":{"
	 "\"kubernetes.io/config.source\":\"file\"}},\"spec\":{\"nodeName\":\"n-1\"}}",
	 "u s/proxy-n-1@n-1 service=proxy"},
	{"not static, and of such a name",
	 "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"s\",\"name\":\"proxy-n-1\",\"annotations\":{"
	 "\"kubernetes.io/config.source\":\"api\"}},\"spec\":{\"nodeName\":\"n-1\"}}",
	 "u s/proxy-n-1@n-1 service=proxy-n-1"},
	{"service by labels",
	 META(",\"labels\":{\"app.kubernetes.io/name\":\"a\",\"app.kubernetes.io/"
	      "instance\":\"b\"}"),
	 "u shop/web-0 service=b"},
	{"service by annotation",
	 META(",\"labels\":{\"app.kubernetes.io/name\":\"a\"},\"annotations\":{"
	      "\"resource.opentelemetry.io/service.name\":\"otel\"}"),
	 "u shop/web-0 service=otel"},
	{"service by podprof's",
	 META(",\"annotations\":{\"podprof.io/service-name\":\"ours\","
	      "\"resource.opentelemetry.io/service.name\":\"otel\"}"),
	 "u shop/web-0 service=ours"},

	{"containers",
	 STATUS("\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"containerd://11\"},"
		"{\"name\":\"b\",\"containerID\":\"cri-o://22\"}],"
		"\"initContainerStatuses\":[{\"name\":\"c\",\"containerID\":\"docker://33\"}],"
		"\"ephemeralContainerStatuses\":[{\"name\":\"d\",\"containerID\":\"x://44\"}]"),
	 "u shop/web-0 service=web-0 container:a=11 container:b=22 init:c=33 ephemeral:d=44"},
	{"waiting", STATUS("\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"waiting\":{}}}]"),
	 "u shop/web-0 service=web-0"},
	{"waiting, once more",
	 STATUS("\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"\"}]"),
	 "u shop/web-0 service=web-0"},
	{"has run before",
	 STATUS("\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"containerd://11\","
		"\"lastState\":{\"terminated\":{\"containerID\":\"containerd://10\"}}}]"),
	 "u shop/web-0 service=web-0 container:a=11 container:a=10"},
	{"no scheme", STATUS("\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"11\"}]"),
	 "u shop/web-0 service=web-0"},
	{"null for a list", STATUS("\"containerStatuses\":null"), "u shop/web-0 service=web-0"},
	{"a number for a list", STATUS("\"containerStatuses\":7"), "u shop/web-0 service=web-0"},
	{"numbers for names",
	 META(",\"labels\":{\"app.kubernetes.io/name\":7},\"annotations\":[1]"),
	 "u shop/web-0 service=web-0"},
	{"NUL in a label", META(",\"labels\":{\"app.kubernetes.io/name\":\"a\\u0000b\"}"),
	 "u shop/web-0 service=a"},

	{"nothing", "", NULL},
	{"no object", "[]", NULL},
	{"null", "null", NULL},
	{"empty", "{}", NULL},
	{"no UID", "{\"metadata\":{\"namespace\":\"s\",\"name\":\"n\"}}", NULL},
	{"no namespace", "{\"metadata\":{\"uid\":\"u\",\"name\":\"n\"}}", NULL},
	{"a number for a UID", "{\"metadata\":{\"uid\":7,\"namespace\":\"s\",\"name\":\"n\"}}",
	 NULL},
	{"half", "{\"metadata\":{\"uid\":\"u\"", NULL},
	{"text behind", META("") " x", NULL},
};

static void dump(const struct pod *pod, struct buf *ret)
{
	static const char *const kinds[POD_CONTAINER_KIND_MAX] = {
		[POD_CONTAINER_ORDINARY] = "container",
		[POD_CONTAINER_INIT] = "init",
		[POD_CONTAINER_EPHEMERAL] = "ephemeral",
	};
	struct workload w;

	workload_of_pod(pod, &w);
	assert_int_equal(buf_puts(ret, pod->uid), 0);
	if (*pod->static_uid)
		assert_int_equal(buf_printf(ret, "=%s", pod->static_uid), 0);
	assert_int_equal(buf_printf(ret, " %s/%s", pod->namespace, pod->name), 0);
	if (*pod->node)
		assert_int_equal(buf_printf(ret, "@%s", pod->node), 0);
	if (*w.kind)
		assert_int_equal(buf_printf(ret, " %s/%s", w.kind, w.name), 0);
	assert_int_equal(buf_printf(ret, " service=%s", workload_service(pod, &w)), 0);
	for (size_t i = 0; i < pod->n_containers; i++)
		assert_int_equal(buf_printf(ret, " %s:%s=%s", kinds[pod->containers[i].kind],
					    pod->containers[i].name, pod->containers[i].id),
				 0);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct buf seen = BUF_INIT(4096);
		struct pod *pod = NULL;
		int r = pod_parse(rows[i].json, strlen(rows[i].json), &pod);

		row_begin(rows[i].name);
		assert_int_equal(r, rows[i].want ? 0 : POD_MALFORMED);
		if (pod)
			dump(pod, &seen);
		assert_string_equal(seen.data ? seen.data : "", rows[i].want ? rows[i].want : "");
		pod_free(pod);
		buf_deinit(&seen);
	}
}

/* The runtime's data of a pod */
static void of_a_runtime(void **state)
{
	static const struct {
		const char *name, *uid, *node, *want;
	} pods[] = {
		{"etcd-n", "0123456789abcdef0123456789abcdef", "n", "etcd"},
		{"etcd-n", "0123456789abcdef0123456789abcdef", "", "etcd-n"},
		{"etcd-n", "0123456789abcdef0123456789abcdef", "cd-n", "etcd-n"},
		{"etcd-n", "01234567-89ab-cdef-0123-456789abcdef", "n", "etcd-n"},
		{"etcd-n", "0123456789abcdef0123456789abcdef0", "n", "etcd-n"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(pods); i++) {
		struct pod *pod = NULL;
		struct workload w;

		row_begin(pods[i].want);
		assert_int_equal(pod_make("s", pods[i].name, pods[i].uid, &pod), 0);
		assert_int_equal(pod_set_node(pod, pods[i].node), 0);
		workload_of_pod(pod, &w);
		assert_string_equal(workload_service(pod, &w), pods[i].want);
		pod_free(pod);
	}
}

/* @n labels, the last one podprof's, and @n containers. */
static char *many(size_t n)
{
	struct buf b = BUF_INIT(4u << 20);

	assert_int_equal(buf_puts(&b, "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"s\",\"name\":"
				      "\"n\",\"labels\":{"),
			 0);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(buf_printf(&b, "\"label-%zu\":\"%zu\",", i, i), 0);
	assert_int_equal(buf_puts(&b, "\"podprof.io/x\":\"own\"}},\"status\":{"
				      "\"containerStatuses\":["),
			 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&b, "%s{\"name\":\"c%zu\",\"containerID\":\"x://%zu\"}",
					    i ? "," : "", i, i),
				 0);
	assert_int_equal(buf_puts(&b, "]}}"), 0);
	return buf_take(&b);
}

static void ceilings(void **state)
{
	static const struct {
		size_t n, pairs, containers;
	} sizes[] = {
		{POD_PAIRS_MAX, POD_PAIRS_MAX, POD_PAIRS_MAX},
		{POD_PAIRS_MAX + 1, POD_PAIRS_MAX, POD_PAIRS_MAX + 1},
		{POD_CONTAINERS_MAX, POD_PAIRS_MAX, POD_CONTAINERS_MAX},
		{POD_CONTAINERS_MAX + 1, POD_PAIRS_MAX, POD_CONTAINERS_MAX},
	};

	(void)state;
	for (size_t i = 0; i < array_size(sizes); i++) {
		char *json = many(sizes[i].n);
		struct pod *pod;

		assert_int_equal(pod_parse(json, strlen(json), &pod), 0);
		assert_int_equal(pod->labels.n, sizes[i].pairs);
		assert_int_equal(pod->n_containers, sizes[i].containers);
		assert_int_equal(pod->n_left_out, sizes[i].n - pod->labels.n);
		assert_int_equal(pod->n_containers_left_out, sizes[i].n - pod->n_containers);
		assert_string_equal(pod_label(pod, "podprof.io/x"), "own");
		assert_string_equal(pod_label(pod, "other"), "");
		pod_free(pod);
		free(json);
	}
}

/* A value of @n bytes. */
static size_t length_kept(size_t n)
{
	struct buf b = BUF_INIT(1u << 20);
	struct pod *pod;
	size_t length;

	assert_int_equal(buf_puts(&b, "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"s\",\"name\":"
				      "\"n\",\"annotations\":{\"a\":\""),
			 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_putc(&b, 'x'), 0);
	assert_int_equal(buf_puts(&b, "\"}}}"), 0);
	assert_int_equal(pod_parse(b.data, b.len, &pod), 0);
	length = strlen(pod_annotation(pod, "a"));
	pod_free(pod);
	buf_deinit(&b);
	return length;
}

static void long_values(void **state)
{
	(void)state;
	assert_int_equal(length_kept(POD_TEXT_MAX), POD_TEXT_MAX);
	assert_int_equal(length_kept(POD_TEXT_MAX + 1), 0);
}

static int attempt(void *ctx)
{
	const char *json = ctx;
	struct pod *pod;
	int r = pod_parse(json, strlen(json), &pod);

	if (!r)
		pod_free(pod);
	return r;
}

static void out_of_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].want)
			allocfail_each(attempt, (void *)rows[i].json);
}

#define POD_STATUS(phase, ip, ready)                                                              \
	"{\"metadata\":{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"p\"},\"status\":{\"phase\":" \
	"\"" phase "\",\"podIP\":\"" ip                                                           \
	"\",\"hostIP\":\"192.0.2.1\",\"conditions\":[{\"type\":\"Ready\","                        \
	"\"status\":\"" ready "\"}]}}"

/* Changes of the status that matter: not readiness, because readiness comes and goes. */
static void status_changes(void **state)
{
	static const char *const texts[] = {POD_STATUS("Running", "10.1.2.3", "True"),
					    POD_STATUS("Running", "10.1.2.3", "False"),
					    POD_STATUS("Pending", "10.1.2.3", "True"),
					    POD_STATUS("Running", "fd00::1", "True")};
	struct pod *pods[array_size(texts)];

	(void)state;
	for (size_t i = 0; i < array_size(texts); i++)
		assert_int_equal(pod_parse(texts[i], strlen(texts[i]), &pods[i]), 0);
	assert_string_equal(pods[0]->phase, "Running");
	assert_string_equal(pods[0]->ip, "10.1.2.3");
	assert_string_equal(pods[0]->host_ip, "192.0.2.1");
	assert_true(pod_equal(pods[0], pods[1]));
	assert_false(pod_equal(pods[0], pods[2]));
	assert_false(pod_equal(pods[0], pods[3]));
	for (size_t i = 0; i < array_size(texts); i++)
		pod_free(pods[i]);
}

/* A pod whose texts have @n bytes each. */
static struct pod *pod_of_texts(int n)
{
	static const char form[] =
		"{\"metadata\":{\"uid\":\"%1$0*2$d\",\"namespace\":\"%1$0*2$d\","
		"\"name\":\"%1$0*2$d\",\"annotations\":{\"kubernetes.io/config.mirror\":"
		"\"%1$0*2$d\"},\"labels\":{\"%1$0*2$d\":\"%1$0*2$d\"},\"ownerReferences\":"
		"[{\"controller\":true,\"kind\":\"%1$0*2$d\",\"name\":\"%1$0*2$d\"}]},"
		"\"spec\":{\"nodeName\":\"%1$0*2$d\"},\"status\":{\"phase\":\"%1$0*2$d\","
		"\"podIP\":\"%1$0*2$d\",\"hostIP\":\"%1$0*2$d\",\"containerStatuses\":"
		"[{\"name\":\"%1$0*2$d\",\"containerID\":\"x://%1$0*2$d\","
		"\"image\":\"%1$0*2$d\"}]}}";
	_cleanup_(freep) char *json = NULL;
	struct pod *pod;

	assert_true(asprintf(&json, form, 0, n) > 0);
	assert_int_equal(pod_parse(json, strlen(json), &pod), 0);
	return pod;
}

/* Every text counts: ten of the pod, three of its container, one label; the static UID is an
 * annotation, too. */
static void bytes(void **state)
{
	struct pod *small = pod_of_texts(1), *large = pod_of_texts(1001);

	(void)state;
	assert_int_equal(pod_bytes(large) - pod_bytes(small), 1000 * (10 + 3 + 2 + 1));
	pod_free(small);
	pod_free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_changes), cmocka_unit_test(test_rows),
		cmocka_unit_test(of_a_runtime),	  cmocka_unit_test(ceilings),
		cmocka_unit_test(long_values),	  cmocka_unit_test(out_of_memory),
		cmocka_unit_test(bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
