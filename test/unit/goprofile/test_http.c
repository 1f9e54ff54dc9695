// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles on demand, through a real client: profiles equal the Go process's own, and excluded
 * processes are not read. The container is a directory with a list of processes.
 */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "goprofile/http.h"
#include "pprof/reader.h"
#include "server/server.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/samelines.h"
#include "support/metrics.h"
#include "support/served.h"
#include "support/tree.h"

#define CONTENTION	  "test/fixtures/go/contention"
#define ID		  "6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b6c1bd2c0a2d7f8f7ba5aa6a8f17e1f2b"
#define CONTAINER	  "docker/" ID
#define PROFILE_BYTES_MAX (16u << 20)

struct node {
	struct root proc;
	struct tree tree;
	struct served served;
	struct discovery *discovery;
	struct go_profile_http *pull;
	struct server *server;
	struct pull_sources sources;
	struct metric_list metrics;
	struct health health;
	enum go_profile_wish wish;
};

static enum go_profile_wish on_wish(void *ctx, const struct entity *entity)
{
	const struct node *node = ctx;

	assert_non_null(labels_get(&entity->labels, "container"));
	return node->wish;
}

static void start_server(struct node *node)
{
	struct listen_plan addresses;
	bool is_ui;
	const struct server_opts opts = {
		.loop = node->served.loop,
		.addresses = &addresses,
		.metrics = &node->metrics,
		.health = &node->health,
		.pull = &node->sources,
	};

	node->sources.go = go_profile_http_source(node->pull);
	assert_int_equal(listen_plan("127.0.0.1:0", NULL, &addresses), 0);
	assert_int_equal(metric_list_add(&node->metrics, go_profile_http_collect, node->pull), 0);
	assert_int_equal(server_new(&opts, &is_ui, &node->server), 0);
}

static void node_init(struct node *node, const struct goprocess *p)
{
	const struct discovery_opts discovery = {
		.proc = &node->proc,
		.cgroupfs_root = node->tree.path,
		.node_name = "n",
	};
	struct go_profile_http_opts opts = {
		.proc = &node->proc,
		.mode = GO_PROFILE_MODE_ENABLED,
		.wish = on_wish,
		.ctx = node,
		.max_bytes = 16u << 20,
		.symbol_bytes = 16u << 20,
	};
	char text[32];

	*node = (struct node){.proc = ROOT_INIT};
	tree_init(&node->tree);
	tree_mkdir(node->tree.fd, CONTAINER);
	tree_write(node->tree.fd, "cgroup.controllers", "");
	snprintf(text, sizeof(text), "%" PRIu64 "\n%d\n", p->id.pid, (int)getpid());
	tree_write(node->tree.fd, CONTAINER "/cgroup.procs", text);
	assert_int_equal(root_open("/proc", &node->proc), 0);
	assert_int_equal(discovery_new(&discovery, &node->discovery), 0);
	served_init(&node->served);
	loop_set_slice(node->served.loop, 0); /* one process a turn */
	opts.loop = node->served.loop;
	opts.discovery = node->discovery;
	assert_int_equal(go_profile_http_new(&opts, &node->pull), 0);
	start_server(node);
	served_start(&node->served);
}

static void node_deinit(struct node *node)
{
	served_stop(&node->served);
	server_free(node->server);
	go_profile_http_free(node->pull);
	discovery_free(node->discovery);
	metric_list_deinit(&node->metrics);
	served_deinit(&node->served);
	tree_deinit(&node->tree);
	root_deinit(&node->proc);
}

/* The body; the status. */
static int get(struct node *node, const char *target, struct buf *ret)
{
	return served_get(server_address(node->server), target, ret);
}

/* The process's own profile, at a quiet point. */
static void read_own(const char *path, const char *kind, struct buf *ret)
{
	const struct root here = {.fd = AT_FDCWD};
	char name[96];

	snprintf(name, sizeof(name), "%s.%s", path, kind);
	assert_int_equal(root_read(&here, name, ret), 0);
}

static void check_contention(const struct buf *bytes, const char *own_path, const char *kind)
{
	static const char *const types[] = {"contentions", "delay"};
	_cleanup_(buf_deinit) struct buf own_bytes = BUF_INIT(PROFILE_BYTES_MAX);
	_cleanup_(samelines_deinit) struct samelines own = {0}, ours = {0};
	struct samelines_tally tally = {0};

	read_own(own_path, kind, &own_bytes);
	samelines_of(&own_bytes, types, 2, &own);
	samelines_of(bytes, types, 2, &ours);
	samelines_compare(&own, &ours, &tally);
	assert_int_equal(own.n, ours.n);
}

static void check_types(const struct buf *bytes, const char *first, const char *by_default)
{
	const struct pprof_tables *t;
	struct reader *reader;
	const char *why;

	assert_int_equal(reader_new(bytes->data, bytes->len, 64u << 20, &reader, &why), 0);
	t = reader_tables(reader);
	assert_true(t->n_samples > 0);
	assert_string_equal(t->strings[t->types[0].type], first);
	if (by_default)
		assert_string_equal(t->strings[t->default_type], by_default);
	reader_free(reader);
}

static void profiles_of_a_process(void **state)
{
	static const struct {
		const char *kind;
		const char *first, *by_default;
	} rows[] = {
		{"mutex", "contentions", NULL},	  {"block", "contentions", NULL},
		{"heap", "alloc_objects", NULL},  {"allocs", "alloc_objects", "alloc_space"},
		{"goroutine", "goroutine", NULL},
	};
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path =
		gofixture_build(CONTENTION, gos[gofixture_gos(gos) - 1], "stripped");
	char own[64];
	const char *const args[] = {own, NULL};
	struct node node;

	(void)state;
	snprintf(own, sizeof(own), "/tmp/test_heappull.%d", (int)getpid());
	goprocess_start(&p, path, args, NULL);
	node_init(&node, &p);
	for (size_t i = 0; i < 2 * array_size(rows); i++) {
		const char *kind = rows[i / 2].kind;
		_cleanup_(buf_deinit) struct buf body = BUF_INIT(PROFILE_BYTES_MAX);
		char target[128];

		row_begin(kind);
		/* the test is in the container too, and is no Go program */
		if (i % 2)
			snprintf(target, sizeof(target), "/debug/pprof/%s?container=%.12s", kind,
				 ID);
		else
			snprintf(target, sizeof(target), "/debug/pprof/%s?pid=%" PRIu64, kind,
				 p.id.pid);
		assert_int_equal(get(&node, target, &body), 200);
		check_types(&body, rows[i / 2].first, rows[i / 2].by_default);
		if (i < 4)
			check_contention(&body, own, kind);
	}
	node_deinit(&node);
	unlink(own);
	for (int i = 0; i < 2; i++) {
		char name[96];

		snprintf(name, sizeof(name), "%s.%s", own, i ? "mutex" : "block");
		unlink(name);
	}
}

static void who_is_not_read(void **state)
{
	static const struct {
		const char *name;
		const char *target; /* %d: the process's number, or the test's */
		bool test;
		enum go_profile_wish wish;
		int status;
		const char *says;
	} rows[] = {
		{"no Go program", "/debug/pprof/heap?pid=%d", true, GO_PROFILE_WISH_NONE, 404,
		 "not a Go program"},
		{"in no container", "/debug/pprof/heap?pid=1", false, GO_PROFILE_WISH_NONE, 404,
		 "no such process"},
		{"no process", "/debug/pprof/heap?pid=4194305", false, GO_PROFILE_WISH_NONE, 404,
		 "no such process"},
		{"no container", "/debug/pprof/heap?container=123", false, GO_PROFILE_WISH_NONE,
		 404, "no such container"},
		{"its pod refuses", "/debug/pprof/heap?pid=%d", false, GO_PROFILE_WISH_DISABLED,
		 404, "not to be profiled"},
		{"its pod is not known yet", "/debug/pprof/goroutine?container=6c1bd2", false,
		 GO_PROFILE_WISH_PENDING, 200, NULL},
		{"not on", "/debug/pprof/mutex?pid=%d", false, GO_PROFILE_WISH_NONE, 404, "turned"},
		{"not on, of several", "/debug/pprof/mutex", false, GO_PROFILE_WISH_NONE, 404,
		 "none of "},
		{"never turned on", "/debug/pprof/heap?pid=%d", false, GO_PROFILE_WISH_FORCE, 404,
		 "off: nothing in the program asks"},
	};
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path =
		gofixture_build("test/fixtures/go/plain", gos[gofixture_gos(gos) - 1], "default");
	const char *const args[] = {NULL};
	struct node node;

	(void)state;
	goprocess_start(&p, path, args, NULL);
	node_init(&node, &p);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf body = BUF_INIT(PROFILE_BYTES_MAX);
		char target[128];

		row_begin(rows[i].name);
		node.wish = rows[i].wish;
		snprintf(target, sizeof(target), rows[i].target,
			 rows[i].test ? (int)getpid() : (int)p.id.pid);
		assert_int_equal(get(&node, target, &body), rows[i].status);
		if (rows[i].says)
			assert_non_null(strstr(body.data, rows[i].says));
	}
	node_deinit(&node);
}

/* As many requests for long differences as there are places, and one more: the only answer that
 * comes is its refusal. @fds: one refused, which is closed, and the others. */
static void fill_places(struct node *node, struct pollfd fds[GO_PROFILE_HTTP_DELTAS_MAX + 1])
{
	static const char request[] = "GET /debug/pprof/heap?seconds=240 HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	const size_t n = GO_PROFILE_HTTP_DELTAS_MAX + 1;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){served_connect(server_address(node->server)), POLLIN, 0};
		assert_int_equal(send(fds[i].fd, request, sizeof(request) - 1, MSG_NOSIGNAL),
				 sizeof(request) - 1);
	}
	assert_int_equal(poll(fds, n, -1), 1);
	for (size_t i = 0; i < n; i++) {
		char answer[1024] = "";

		if (!fds[i].revents)
			continue;
		assert_true(recv(fds[i].fd, answer, sizeof(answer) - 1, 0) > 0);
		assert_memory_equal(answer, "HTTP/1.1 429", 12);
		assert_non_null(strstr(answer, "Retry-After: "));
		close(fds[i].fd);
		fds[i].fd = -1;
	}
}

/* The process is quiet: nothing differs. The places for differences are few; places of disconnected
 * clients and of answered clients are free again. */
static void differences(void **state)
{
	static const char *const kinds[] = {"heap", "allocs", "mutex", "block"};
	const char *gos[GOFIXTURE_GOS_MAX];
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(freep) char *path =
		gofixture_build(CONTENTION, gos[gofixture_gos(gos) - 1], "stripped");
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(PROFILE_BYTES_MAX);
	struct pollfd fds[GO_PROFILE_HTTP_DELTAS_MAX + 1];
	const struct pprof_tables *t;
	const char *const args[] = {"/tmp/test_godelta", NULL};
	struct reader *reader;
	struct node node;
	const char *why;
	char target[96];

	(void)state;
	goprocess_start(&p, path, args, NULL);
	node_init(&node, &p);
	for (size_t i = 0; i < array_size(kinds); i++) {
		row_begin(kinds[i]);
		snprintf(target, sizeof(target), "/debug/pprof/%s?seconds=1&pid=%" PRIu64, kinds[i],
			 p.id.pid);
		assert_int_equal(get(&node, target, &body), 200);
		assert_int_equal(reader_new(body.data, body.len, 64u << 20, &reader, &why), 0);
		t = reader_tables(reader);
		assert_int_equal(t->n_samples, 0);
		assert_true(t->duration_ns >= 1000000000);
		reader_free(reader);
	}
	fill_places(&node, fds);
	/* a profile of now still has a place */
	assert_int_equal(get(&node, "/debug/pprof/heap", &body), 200);
	for (size_t i = 0; i < array_size(fds); i++)
		close_fdp(&fds[i].fd);
	while (get(&node, "/debug/pprof/mutex?seconds=1", &body) != 200)
		;
	/* the end of the agent ends the waiting requests */
	fill_places(&node, fds);
	served_stop(&node.served);
	assert_true(metrics_get(go_profile_http_collect, node.pull, "podprof_go_pulls",
				"abandoned") > 0);
	go_profile_http_free(node.pull);
	server_free(node.server);
	for (size_t i = 0; i < array_size(fds); i++) {
		char answer[1024] = "";

		if (fds[i].fd < 0)
			continue;
		assert_true(recv(fds[i].fd, answer, sizeof(answer) - 1, 0) >= 0);
		assert_null(strstr(answer, "200"));
		close(fds[i].fd);
	}
	discovery_free(node.discovery);
	metric_list_deinit(&node.metrics);
	served_deinit(&node.served);
	tree_deinit(&node.tree);
	root_deinit(&node.proc);
	unlink("/tmp/test_godelta.mutex");
	unlink("/tmp/test_godelta.block");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_of_a_process),
		cmocka_unit_test(who_is_not_read),
		cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
