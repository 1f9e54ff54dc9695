// SPDX-License-Identifier: Apache-2.0
/*
 * CPU profiles on demand, through a real client. In place of the sampler a timer gives one sample
 * of each of two containers every few milliseconds.
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/worker.h"
#include "cpu/http.h"
#include "cpu/sampler.h"
#include "discovery/discovery.h"
#include "pprof/reader.h"
#include "server/server.h"
#include "support/metrics.h"
#include "support/served.h"
#include "support/tree.h"
#include "symbolize/symbolizer.h"

#define TAIL   "2c0a2d7f8f7ba5aa6a8f17e1f2b6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b"
#define ID_A   "a1bd2" TAIL
#define ID_B   "b1bd3" TAIL
#define PERIOD 1000
#define TICK   (5 * NSEC_PER_MSEC)

static struct image image = {.kind = IMAGE_UNKNOWN, .path = "[unknown]", .refs = 1};

struct node {
	struct root proc;
	struct tree tree;
	struct served served;
	struct discovery *discovery;
	struct worker *worker;
	struct symbolizer *symbolizer;
	struct cpu_http *http;
	struct server *server;
	struct loop_source *tick;
	bool drains; /* asked for */
	bool silent; /* no drains come */
	struct pull_sources sources;
	struct metric_list metrics;
	struct health health;
};

static void on_tick(void *ctx)
{
	struct cpu_stack stack = {.frames = {{&image, 0}}, .n = 1};
	struct entity *entity = NULL;
	struct node *node = ctx;

	while ((entity = discovery_next_entity(node->discovery, entity))) {
		if (entity->kind != ENTITY_CONTAINER)
			continue;
		cpu_http_sample(node->http, false, entity, &stack, 1, PERIOD);
		cpu_http_sample(node->http, true, entity, &stack, 1, 7);
	}
	if (!node->drains)
		return;
	node->drains = false;
	cpu_http_drained(node->http, false, nsec_boot());
	cpu_http_drained(node->http, true, nsec_boot());
}

static void on_drain(void *ctx)
{
	struct node *node = ctx;

	node->drains = !node->silent;
}

static void init(struct node *node, bool off_cpu)
{
	struct discovery_opts discovery = {.proc = &node->proc, .node_name = "n"};
	const struct symbolizer_opts symbolizer = {.proc = &node->proc, .cache_bytes = 1u << 20};
	struct cpu_http_opts opts = {
		.off_cpu = off_cpu, .period = PERIOD, .drain = on_drain, .ctx = node};
	struct listen_plan addresses;
	bool is_ui;
	struct entity *entity = NULL;

	*node = (struct node){.proc = ROOT_INIT};
	tree_init(&node->tree);
	tree_write(node->tree.fd, "cgroup.controllers", "");
	tree_mkdir(node->tree.fd, "docker/" ID_A);
	tree_mkdir(node->tree.fd, "docker/" ID_B);
	assert_int_equal(root_open("/proc", &node->proc), 0);
	discovery.cgroupfs_root = node->tree.path;
	assert_int_equal(discovery_new(&discovery, &node->discovery), 0);
	while ((entity = discovery_next_entity(node->discovery, entity)))
		entity->pending = false;
	assert_int_equal(symbolizer_new(&symbolizer, &node->symbolizer), 0);
	served_init(&node->served);
	opts.loop = node->served.loop;
	opts.discovery = node->discovery;
	opts.symbolizer = node->symbolizer;
	assert_int_equal(worker_new(opts.loop, "report", 8, &node->worker), 0);
	opts.worker = node->worker;
	assert_int_equal(cpu_http_new(&opts, &node->http), 0);
	node->sources.cpu = cpu_http_source(node->http);
	assert_int_equal(listen_plan("127.0.0.1:0", NULL, &addresses), 0);
	assert_int_equal(server_new(&(struct server_opts){.loop = opts.loop,
							  .addresses = &addresses,
							  .metrics = &node->metrics,
							  .health = &node->health,
							  .pull = &node->sources},
				    &is_ui, &node->server),
			 0);
	assert_int_equal(loop_add_timer(opts.loop, on_tick, node, &node->tick), 0);
	assert_int_equal(loop_arm(node->tick, TICK, TICK), 0);
	served_start(&node->served);
}

static void deinit(struct node *node, bool server_first)
{
	served_stop(&node->served);
	if (server_first)
		server_free(node->server);
	cpu_http_stop(node->http);
	worker_free(node->worker);
	cpu_http_free(node->http);
	if (!server_first)
		server_free(node->server);
	loop_remove(node->tick);
	symbolizer_free(node->symbolizer);
	discovery_free(node->discovery);
	served_deinit(&node->served);
	tree_deinit(&node->tree);
	root_deinit(&node->proc);
}

static int request_of(char request[256], const char *target)
{
	return snprintf(request, 256,
			"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
}

/* The status; the body in *@ret. */
static int get(struct node *node, const char *target, struct buf *ret)
{
	return served_get(server_address(node->server), target, ret);
}

/* Both containers give equal numbers of samples, at regular times. */
static void check_profile(const struct buf *bytes, bool off_cpu, size_t n_containers)
{
	const struct pprof_tables *t;
	struct reader *reader;
	const char *why;
	size_t n_ids = 0;

	assert_int_equal(reader_new(bytes->data, bytes->len, 4u << 20, &reader, &why), 0);
	t = reader_tables(reader);
	assert_string_equal(t->strings[t->types[0].type], off_cpu ? "delay" : "samples");
	assert_int_equal(t->n_samples, n_containers);
	assert_true(t->duration_ns >= (int64_t)NSEC_PER_SEC - (int64_t)(100 * NSEC_PER_MSEC));
	for (size_t i = 0; i < t->n_strings; i++)
		n_ids += strcmp(t->strings[i], ID_A) == 0 || strcmp(t->strings[i], ID_B) == 0;
	assert_true(n_ids >= n_containers);
	reader_free(reader);
}

static void answers(void **state)
{
	static const struct {
		const char *name, *target;
		int status;
		size_t n_containers; /* of a profile */
		const char *text;
	} rows[] = {
		{"everything", "/debug/pprof/profile?seconds=1", 200, 2, NULL},
		{"a container", "/debug/pprof/profile?seconds=1&container=a1bd", 200, 1, NULL},
		{"off-CPU", "/debug/pprof/offcpu?seconds=1", 200, 2, NULL},
		{"no such container", "/debug/pprof/profile?container=ff", 404, 0, "no such"},
		{"no such pod", "/debug/pprof/profile?pod=a/b", 404, 0, "no such"},
		{"no such service", "/debug/pprof/offcpu?service=x", 404, 0, "no such"},
	};
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct node node;

	(void)state;
	init(&node, true);
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		assert_int_equal(get(&node, rows[i].target, &body), rows[i].status);
		if (rows[i].text)
			assert_non_null(strstr(body.data, rows[i].text));
		else
			check_profile(&body, strstr(rows[i].target, "offcpu"),
				      rows[i].n_containers);
	}
	deinit(&node, true);
}

static void no_off_cpu(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct node node;

	(void)state;
	init(&node, false);
	assert_int_equal(get(&node, "/debug/pprof/offcpu?seconds=1", &body), 404);
	assert_non_null(strstr(body.data, "--off-cpu"));
	deinit(&node, true);
}

static void excluded(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct entity *entity = NULL;
	struct node node;

	(void)state;
	init(&node, false);
	served_stop(&node.served);
	while ((entity = discovery_next_entity(node.discovery, entity)))
		if (strcmp(entity->id.container_id, ID_A) == 0)
			assert_int_equal(entity_leave_out(entity, "test"), 0);
	served_start(&node.served);
	assert_int_equal(get(&node, "/debug/pprof/profile?seconds=1&container=a1", &body), 404);
	assert_non_null(strstr(body.data, "not to be profiled"));
	assert_int_equal(get(&node, "/debug/pprof/profile?seconds=1", &body), 200);
	check_profile(&body, false, 1);
	deinit(&node, true);
}

/* So many requests at once and no more; one whose client goes away makes room. The others end with
 * the server, or before it. */
static void many(void **state)
{
	static const char target[] = "/debug/pprof/profile?seconds=240";

	(void)state;
	for (int server_first = 0; server_first < 2; server_first++) {
		_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
		int fds[CPU_HTTP_MAX], n, status;
		struct node node;
		char request[256];

		init(&node, false);
		n = request_of(request, target);
		for (size_t i = 0; i < CPU_HTTP_MAX; i++) {
			fds[i] = served_connect(server_address(node.server));
			assert_int_equal(send(fds[i], request, (size_t)n, MSG_NOSIGNAL), n);
		}
		/* the requests arrive in any order */
		do
			status = get(&node, "/debug/pprof/profile?seconds=1", &body);
		while (status == 200);
		assert_int_equal(status, 429);
		close(fds[0]);
		do
			status = get(&node, "/debug/pprof/profile?seconds=1", &body);
		while (status == 429);
		assert_int_equal(status, 200);
		deinit(&node, server_first);
		for (size_t i = 1; i < CPU_HTTP_MAX; i++)
			close(fds[i]);
	}
}

/* Without a drain nothing begins. */
static void no_drain(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct node node;

	(void)state;
	init(&node, false);
	served_stop(&node.served);
	node.silent = true;
	served_start(&node.served);
	assert_int_equal(get(&node, "/debug/pprof/profile?seconds=1", &body), 503);
	assert_int_equal(metrics_get(cpu_http_collect, node.http, "podprof_cpu_pulls", "failed"),
			 1);
	deinit(&node, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers), cmocka_unit_test(no_off_cpu), cmocka_unit_test(excluded),
		cmocka_unit_test(many),	   cmocka_unit_test(no_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
