// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of reading a node's pods: lists like a kubelet's (pods of 10 KB, two thirds
 * managedFields, conditions and volumes), in pieces of libcurl's size, compared with jansson's
 * json_loadb() of the whole text; and the lookup of one container in a runtime's state.
 *
 * Each measurement is the lowest of several, of CPU time, in a separate process to measure its
 * memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "metadata/pods.h"
#include "metadata/podstream.h"
#include "metadata/runtime.h"
#include "support/figure.h"

/* libcurl's buffer. */
#define PIECE  16384
#define ROUNDS 4
#define NOBODY "0000000000000000000000000000000000000000000000000000000000000000"
#define ID     "6d5ffa3e53a1a1e2d3f9a0b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"

static int add_fields(struct buf *b)
{
	int r = buf_puts(b, "\"managedFields\":[");

	for (int m = 0; m < 3 && !r; m++) {
		r = buf_printf(
			b,
			"%s{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
			"\"apiVersion\":\"v1\",\"time\":\"2026-01-02T03:04:05Z\","
			"\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":"
			"{\".\":{}",
			m ? "," : "");
		for (int i = 0; i < 60 && !r; i++)
			r = buf_printf(b, ",\"f:some.field/name-%d\":{\"f:value\":{}}", i);
		if (!r)
			r = buf_puts(b, "}}}}");
	}
	return r ? r : buf_puts(b, "],");
}

static int add_metadata(struct buf *b, unsigned int i)
{
	int r = buf_printf(
		b,
		"%s{\"metadata\":{\"name\":\"web-%u-5d4f8c7b9-abcde\",\"namespace\":\"team-%u\","
		"\"uid\":\"2c48913c-b29f-11e7-9350-%012u\",\"resourceVersion\":\"%u\","
		"\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{\"app\":\"web\","
		"\"pod-template-hash\":\"5d4f8c7b9\",\"app.kubernetes.io/name\":\"web-%u\"},"
		"\"annotations\":{\"prometheus.io/scrape\":\"true\",\"prometheus.io/"
		"port\":\"8080\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
		"\"name\":\"web-%u-5d4f8c7b9\",\"controller\":true}],",
		i ? "," : "", i, i % 20, i, 1000 + i, i, i);

	if (!r)
		r = add_fields(b);
	return r ? r : buf_puts(b, "\"generateName\":\"web-\"},");
}

static int add_spec(struct buf *b)
{
	int r = buf_puts(b, "\"spec\":{\"nodeName\":\"node-1\",\"containers\":[");

	for (int c = 0; c < 3 && !r; c++) {
		r = buf_printf(b, "%s{\"name\":\"c%d\",\"image\":\"registry/app:%d\",\"env\":[{}",
			       c ? "," : "", c, c);
		for (int i = 0; i < 10 && !r; i++)
			r = buf_printf(
				b, ",{\"name\":\"VARIABLE_%d\",\"value\":\"a value \\\"%d\\\"\"}",
				i, i);
		if (!r)
			r = buf_puts(
				b,
				"],\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}");
	}
	return r ? r : buf_puts(b, "],\"dnsPolicy\":\"ClusterFirst\"},");
}

static int add_status(struct buf *b, unsigned int i)
{
	int r = buf_puts(b, "\"status\":{\"phase\":\"Running\",\"containerStatuses\":[");

	for (unsigned int c = 0; c < 3 && !r; c++)
		r = buf_printf(b,
			       "%s{\"name\":\"c%u\",\"ready\":true,\"restartCount\":0,\"image\":"
			       "\"registry/app:%u\",\"imageID\":\"registry/app@sha256:%064u\","
			       "\"containerID\":\"containerd://%064u\",\"state\":{\"running\":"
			       "{\"startedAt\":\"2026-01-02T03:04:05Z\"}},\"lastState\":{}}",
			       c ? "," : "", c, c, c, i * 3 + c);
	return r ? r : buf_puts(b, "],\"podIP\":\"10.0.0.1\",\"qosClass\":\"Burstable\"}}");
}

static int make_list(unsigned int n, struct buf *b)
{
	int r = buf_puts(b, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
			    "{\"resourceVersion\":\"1\"},\"items\":[");

	for (unsigned int i = 0; i < n && !r; i++) {
		r = add_metadata(b, i);
		if (!r)
			r = add_spec(b);
		if (!r)
			r = add_status(b, i);
	}
	return r ? r : buf_puts(b, "]}");
}

/* ---------------------------------------------------------------- measurements */

static bool feed(const struct buf *text, struct pods *pods)
{
	struct podstream stream;
	int r = 0;

	podstream_init(&stream, PODSTREAM_LIST, pods, NULL);
	for (size_t at = 0; at < text->len && !r; at += PIECE)
		r = podstream_feed(&stream, text->data + at,
				   text->len - at < PIECE ? text->len - at : PIECE);
	r = r ? r : podstream_end(&stream);
	podstream_deinit(&stream);
	return r == 0;
}

static size_t by_stream(const struct buf *text)
{
	struct pods *pods;
	size_t n;

	if (pods_new(&pods))
		return 0;
	n = feed(text, pods) ? pods_count(pods) : 0;
	pods_free(pods);
	return n;
}

/* Into a table with the same contents. */
static size_t unchanged(const struct buf *text)
{
	static struct pods *pods;

	if (!pods && (pods_new(&pods) || !feed(text, pods)))
		return 0;
	return feed(text, pods) ? pods_count(pods) : 0;
}

static size_t by_whole(const struct buf *text)
{
	json_t *list = json_loadb(text->data, text->len, 0, NULL);
	size_t n = json_array_size(json_object_get(list, "items"));

	json_decref(list);
	return n;
}

/* CPU time, so other load is excluded. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The largest resident memory since the last reset, KiB. */
static uint64_t peak_kib(bool reset)
{
	_cleanup_(fclosep) FILE *status = fopen("/proc/self/status", "re");
	int fd = reset ? open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC) : -1;
	uint64_t kib = 0;
	char line[256];

	if (fd >= 0) {
		(void)!write(fd, "5", 1);
		close(fd);
	}
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
			break;
	return kib;
}

static void measure(const char *name, const struct buf *text, unsigned int n,
		    size_t (*read_list)(const struct buf *text))
{
	uint64_t best = UINT64_MAX, before, after;
	pid_t child = fork();

	if (child > 0) {
		(void)waitpid(child, NULL, 0);
		return;
	}
	malloc_trim(0);
	(void)peak_kib(true);
	before = peak_kib(false);
	if (read_list(text) != n)
		printf("%s: odd\n", name);
	after = peak_kib(false);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = cpu_ns(), took;

		(void)read_list(text);
		took = cpu_ns() - start;
		best = took < best ? took : best;
	}
	printf("  %-28s %8.2f ms  %7.0f MB/s  %8.1f MiB of memory\n", name, (double)best / 1e6,
	       (double)text->len * 1e3 / (double)best, (double)(after - before) / 1024);
	figure((double)best / 1e6, "ms", "%u pods, %s", n, name);
	fflush(stdout);
	_exit(0);
}

static int bench_list(unsigned int n)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT((size_t)64 << 20);
	int r = make_list(n, &text);

	if (r)
		return r;
	printf("%u pods, %.1f MB\n", n, (double)text.len / 1e6);
	fflush(stdout);
	measure("in pieces, into the table", &text, n, by_stream);
	measure("the same once more", &text, n, unchanged);
	measure("json_loadb() of all", &text, n, by_whole);
	return 0;
}

static void bench_runtime(void)
{
	char folder[] = "/dev/shm/podprof-bench-XXXXXX", path[256], command[800];
	uint64_t best = UINT64_MAX, none = UINT64_MAX;
	struct runtime runtime;

	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID,
		 folder);
	snprintf(command, sizeof(command),
		 "mkdir -p %s && cp test/data/runtime/containerd.json %s/config.json", path, path);
	if (system(command) || runtime_init(&runtime, folder)) /* NOLINT(cert-env33-c) */
		return;
	for (int i = 0; i < 2000; i++) {
		uint64_t start = cpu_ns(), took;
		struct container *c = NULL;

		(void)runtime_read(&runtime, i % 2 ? ID : NOBODY, "", &c);
		took = cpu_ns() - start;
		if (c)
			best = took < best ? took : best;
		else
			none = took < none ? took : none;
		container_free(c);
	}
	runtime_deinit(&runtime);
	printf("a container by its bundle %8.1f us; nobody knows it %8.1f us\n", (double)best / 1e3,
	       (double)none / 1e3);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	(void)!system(command); /* NOLINT(cert-env33-c) */
}

int main(void)
{
	static const unsigned int sizes[] = {110, 200, 500, 3000};

	for (size_t i = 0; i < array_size(sizes); i++)
		if (bench_list(sizes[i]))
			return 1;
	bench_runtime();
	return 0;
}
