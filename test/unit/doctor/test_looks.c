// SPDX-License-Identifier: Apache-2.0
/* Probes: of a synthetic /proc and /sys, of directories, and of servers. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "config/config.h"
#include "doctor/doctor.h"
#include "doctor/file.h"
#include "server/listen.h"
#include "support/rawserver.h"
#include "support/sink.h"
#include "support/tree.h"
#include "support/until.h"

struct fixture {
	struct tree tree;
	struct root root;
	struct loop *loop;
	struct http *http;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tree_init(&f->tree);
	assert_int_equal(root_open(f->tree.path, &f->root), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_free(f->http);
	loop_free(f->loop);
	root_deinit(&f->root);
	tree_deinit(&f->tree);
	free(f);
	return 0;
}

/* ---------------------------------------------------------------- rights */

struct rights_row {
	const char *name;
	const char *status, *uid_map, *label, *enforce, *yama;
	struct rights want;
	bool apparmor;
};

static const struct rights_row rights_rows[] = {
	{"nothing there", NULL, NULL, NULL, NULL, NULL, {.yama = -1}, false},
	{"the node's root",
	 "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n",
	 "         0          0 4294967295\n",
	 "unconfined\n",
	 NULL,
	 "0\n",
	 {.label = "unconfined", .yama = 0},
	 false},
	{"a container",
	 "Seccomp:\t2\n",
	 "0 0 4294967295\n",
	 "cri-containerd.apparmor.d (enforce)\n",
	 NULL,
	 "1\n",
	 {.seccomp = true, .label = "cri-containerd.apparmor.d (enforce)", .yama = 1},
	 true},
	{"rootless",
	 "Seccomp:\t2\n",
	 "0 1000 1\n1 100000 65536\n",
	 "",
	 "0\n",
	 "x\n",
	 {.seccomp = true, .in_namespace = true, .yama = -1},
	 false},
	{"no user is mapped", "", "", NULL, NULL, "9\n", {.in_namespace = true, .yama = -1}, false},
	{"SELinux",
	 "Seccomp:\t2",
	 "0 0 4294967295",
	 "system_u:system_r:container_t:s0:c1,c2\n",
	 "1",
	 "3",
	 {.seccomp = true,
	  .label = "system_u:system_r:container_t:s0:c1,c2",
	  .selinux = true,
	  .yama = 3},
	 false},
	{"odd",
	 "Seccomp",
	 "0 0 x\n",
	 "a\x1b[1mb\n",
	 "yes",
	 "-1\n",
	 {.label = "a?[1mb", .yama = 0},
	 true},
};

static void write_if(const struct fixture *f, const char *path, const char *s)
{
	if (s)
		tree_write(f->tree.fd, path, s);
	else
		(void)unlinkat(f->tree.fd, path, 0);
}

static void rights(void **state)
{
	struct fixture *f = *state;

	tree_mkdir(f->tree.fd, "self/attr");
	tree_mkdir(f->tree.fd, "fs/selinux");
	tree_mkdir(f->tree.fd, "sys/kernel/yama");
	for (size_t i = 0; i < array_size(rights_rows); i++) {
		const struct rights_row *row = &rights_rows[i];
		struct rights is;

		row_begin(row->name);
		write_if(f, "self/status", row->status);
		write_if(f, "self/uid_map", row->uid_map);
		write_if(f, "self/attr/current", row->label);
		write_if(f, "fs/selinux/enforce", row->enforce);
		write_if(f, "sys/kernel/yama/ptrace_scope", row->yama);
		rights_look(&f->root, &f->root, &is);
		assert_true(is.known && is.open_files);
		assert_int_equal(is.in_namespace, row->want.in_namespace);
		assert_int_equal(is.seccomp, row->want.seccomp);
		assert_int_equal(is.selinux, row->want.selinux);
		assert_int_equal(is.yama, row->want.yama);
		assert_string_equal(is.label, row->want.label);
		assert_int_equal(rights_apparmor(&is), row->apparmor);
	}
}

struct number_row {
	const char *text;
	bool want;
	uint64_t n;
};

static const struct number_row number_rows[] = {
	{"7\n", true, 7},
	{"7", true, 7},
	{"-1\n", true, 0},
	{"-", false, 0},
	{"", false, 0},
	{"\n", false, 0},
	{"7 8\n", false, 0},
	{"18446744073709551615\n", true, UINT64_MAX},
	{"18446744073709551616\n", false, 0},
	{"99999999999999999999999999999999999999999\n", false, 0},
};

static void numbers(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(number_rows); i++) {
		uint64_t n = 0;

		row_begin(number_rows[i].text);
		tree_write(f->tree.fd, "n", number_rows[i].text);
		assert_int_equal(file_number(&f->root, "n", &n), number_rows[i].want);
		assert_int_equal(n, number_rows[i].n);
	}
}

/* ---------------------------------------------------------------- the store's directory */

static void storedir(void **state)
{
	struct fixture *f = *state;
	char path[160];
	struct config c = {.store_dir = path, .store_bytes = 1 << 20};
	struct storedir is;

	tree_mkdir(f->tree.fd, "there");
	tree_write(f->tree.fd, "file", "");
	snprintf(path, sizeof(path), "%s/there", f->tree.path);
	storedir_look(&c, &is);
	assert_true(is.there && is.free_bytes);
	assert_int_equal(is.result, 0);
	assert_int_equal(is.bytes, 1 << 20);

	snprintf(path, sizeof(path), "%s/there/no/such/place", f->tree.path);
	storedir_look(&c, &is);
	assert_false(is.there);
	assert_int_equal(is.result, 0);

	snprintf(path, sizeof(path), "%s/file", f->tree.path);
	storedir_look(&c, &is);
	assert_int_equal(is.result, -EACCES); /* nobody may enter a file */

	c.store_dir = NULL;
	storedir_look(&c, &is);
	assert_null(is.path);

	row_begin("the spool");
	snprintf(path, sizeof(path), "%s/there", f->tree.path);
	c = (struct config){.spool_dir = path, .spool_bytes = 2 << 20};
	storedir_look_spool(&c, &is);
	assert_null(is.path); /* no destination */
	c.destinations.n = 1;
	storedir_look_spool(&c, &is);
	assert_true(is.there && is.free_bytes);
	assert_int_equal(is.bytes, 2 << 20);
}

static void read_only(void **state)
{
	struct config c = {.store_dir = (char *)"/proc/podprof"};
	struct storedir is;

	(void)state;
	storedir_look(&c, &is);
	assert_false(is.there);
	assert_true(is.result < 0 || !is.free_bytes);
}

/* ---------------------------------------------------------------- an agent's answer */

struct answer_row {
	const char *body;
	bool agent, ready;
	size_t n;
	struct listener_condition last;
};

static const struct answer_row answer_rows[] = {
	{"", false, false, 0, {{0}, 0, {0}}},
	{"<html>ready\n", false, false, 0, {{0}, 0, {0}}},
	{"ready to go\n", false, false, 0, {{0}, 0, {0}}},
	{"ready\n", true, true, 0, {{0}, 0, {0}}},
	{"ready\ncpu profiling: ok\n", true, true, 1, {"cpu profiling", true, ""}},
	{"not ready\na: ok, x\ncpu profiling: failing, no: do, so\n",
	 true,
	 false,
	 2,
	 {"cpu profiling", false, "no: do, so"}},
	{"ready\n\nno colon\na: ok\n", true, true, 1, {"a", true, ""}},
	{"ready\na:1\na:2\na:3\na:4\na:5\na:6\na:7\nh: ok\ni: failing\n",
	 true,
	 true,
	 8,
	 {"h", true, ""}},
};

static void answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(answer_rows); i++) {
		const struct answer_row *row = &answer_rows[i];
		struct listener is = {0};

		row_begin(row->body);
		assert_int_equal(listener_read(row->body, &is), row->agent);
		assert_int_equal(is.agent, row->agent);
		assert_int_equal(is.ready, row->ready);
		assert_int_equal(is.n, row->n);
		if (!row->n)
			continue;
		assert_string_equal(is.conditions[is.n - 1].name, row->last.name);
		assert_int_equal(is.conditions[is.n - 1].ok, row->last.ok);
		assert_string_equal(is.conditions[is.n - 1].why, row->last.why);
	}
}

/* ---------------------------------------------------------------- servers */

static bool listener_done(void *ctx)
{
	return !listener_pending(ctx);
}

static void listen_to(struct fixture *f, const char *listen, const char *ui, struct listener *ret)
{
	const struct config c = {.listen = (char *)listen, .ui_listen = (char *)ui};
	struct listener_trial *trial;

	assert_int_equal(listener_begin(f->http, &c, &trial), 0);
	loop_until(f->loop, listener_done, trial);
	listener_end(trial, ret);
}

static void listeners(void **state)
{
	static const struct rawserver_answer agent = {
		.bytes = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 44\r\n\r\n"
			 "not ready\ncpu profiling: failing, no rights\n"};
	static const struct rawserver_answer other = {
		.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nready!"};
	struct fixture *f = *state;
	struct rawserver *server = rawserver_new(&agent, 1);
	struct listener is;
	char everywhere[32];

	listen_to(f, "127.0.0.1:0", "127.0.0.1:0", &is);
	assert_true(!is.plan && !is.result && !is.ui_result && !is.agent);
	listen_to(f, "localhost", NULL, &is);
	assert_int_equal(is.plan, LISTEN_BAD);
	listen_to(f, "127.0.0.1:0", "localhost", &is);
	assert_int_equal(is.plan, LISTEN_BAD_UI);
	assert_false(is.agent);
	/* only the page's address is taken */
	listen_to(f, "127.0.0.1:0", rawserver_url(server) + strlen("http://"), &is);
	assert_true(!is.result && is.ui_result == -EADDRINUSE && !is.agent);
	listen_to(f, rawserver_url(server) + strlen("http://"), NULL, &is);
	assert_int_equal(is.result, -EADDRINUSE);
	assert_true(is.agent && !is.ready);
	assert_string_equal(is.conditions[0].why, "no rights");
	assert_string_equal(rawserver_request(server, 0), "GET /-/ready HTTP/1.1");
	snprintf(everywhere, sizeof(everywhere), "0.0.0.0%s", strrchr(rawserver_url(server), ':'));
	listen_to(f, everywhere, NULL, &is);
	assert_true(is.agent);
	/* as the chart listens */
	snprintf(everywhere, sizeof(everywhere), "[::]%s", strrchr(rawserver_url(server), ':'));
	listen_to(f, everywhere, NULL, &is);
	assert_true(is.agent);
	rawserver_free(server);
	server = rawserver_new(&other, 1);
	listen_to(f, rawserver_url(server) + strlen("http://"), NULL, &is);
	assert_true(is.result == -EADDRINUSE && !is.agent);
	rawserver_free(server);
}

static bool network_done(void *ctx)
{
	return !network_pending(ctx);
}

static void ask(struct fixture *f, const struct config *c, struct network *ret)
{
	struct network_trial *trial;

	assert_int_equal(network_begin(f->http, c, &trial), 0);
	loop_until(f->loop, network_done, trial);
	network_end(trial, ret);
}

/* The request contains nothing but the credentials. */
static void destinations(void **state)
{
	static const struct sink_answer script[] = {
		{.status = 400,
		 .body = "{\"code\":\"invalid_argument\",\"message\":\"no series\"}"},
		{.status = 401, .body = "{\"code\":\"unauthenticated\",\"message\":\"no org id\"}"},
		{.status = 200},
	};
	struct fixture *f = *state;
	struct sink *sink = sink_new(script, array_size(script), NULL);
	struct config c = {.destinations = {.n = 1}};
	char spec[128];
	struct network is;

	snprintf(spec, sizeof(spec), "pyroscope=%s,tenant=me", sink_url(sink));
	c.destinations.items[0] = spec;
	ask(f, &c, &is);
	assert_int_equal(is.n, 1);
	assert_true(is.items[0].refused && is.items[0].done);
	assert_in_range(is.items[0].ahead_s + 60, 0, 120);
	assert_string_equal(sink_request(sink, 0)->method, "POST");
	assert_string_equal(sink_request(sink, 0)->path, "/push.v1.PusherService/Push");
	assert_string_equal(sink_request(sink, 0)->tenant, "me");
	assert_int_equal(sink_request(sink, 0)->body_len, 0);
	ask(f, &c, &is);
	assert_int_equal(is.items[0].status, 401);
	assert_string_equal(is.items[0].why, "no org id");
	assert_false(is.items[0].refused);
	ask(f, &c, &is);
	assert_int_equal(is.items[0].status, 200);
	sink_free(sink);
}

/* Destinations without a request, next to an unresponsive one. */
static void no_destinations(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture *f = *state;
	struct sink *sink = sink_new(&hang, 1, NULL);
	struct network_trial *trial;
	char spec[128], file[128];
	struct config c = {.destinations = {.items = {(char *)"influx=http://h", file, spec,
						      (char *)"file=/proc/self/comm/out",
						      (char *)"file=/tmp/podprof-not-there-yet"},
					    .n = 5}};
	struct network is;

	snprintf(spec, sizeof(spec), "pyroscope=%s", sink_url(sink));
	snprintf(file, sizeof(file), "pyroscope=%s,bearer-token-file=%s/none", sink_url(sink),
		 f->tree.path);
	assert_int_equal(network_begin(f->http, &c, &trial), 0);
	assert_true(network_pending(trial));
	network_end(trial, &is);
	assert_true(is.items[0].wrong && is.items[0].done && strstr(is.items[0].why, "influx"));
	assert_true(is.items[1].done && !is.items[1].status && is.items[1].no_file);
	assert_false(is.items[2].done);
	assert_true(is.items[3].done && !is.items[3].refused);
	assert_string_equal(is.items[3].why, "Not a directory");
	assert_true(is.items[4].done && is.items[4].refused);
	sink_free(sink);
}

/* ---------------------------------------------------------------- cgroups */

static void cgroups(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct config c = {.cgroupfs_root = path};
	struct node is;

	snprintf(path, sizeof(path), "%s/fs", f->tree.path);
	assert_int_equal(node_look(&c, &f->root, &is), 0);
	assert_int_equal(is.cgroups, HIERARCHY_NO_SUCH_DIR);
	assert_int_equal(is.view.others, PROCVIEW_HIDDEN);
	tree_mkdir(f->tree.fd, "fs/docker/x");
	assert_int_equal(node_look(&c, &f->root, &is), 0);
	assert_int_equal(is.cgroups, 0);
	assert_true(is.has[HIERARCHY_V2] && !is.real[HIERARCHY_V2] && !is.has[HIERARCHY_V1]);
	assert_true(is.top[HIERARCHY_V2]);
	assert_int_equal(is.n_dirs, 3);
	tree_write(f->tree.fd, "fs/cgroup.events", "populated 1\n");
	assert_int_equal(node_look(&c, &f->root, &is), 0);
	assert_false(is.top[HIERARCHY_V2]);
	tree_mkdir(f->tree.fd, "fs/memory");
	assert_int_equal(node_look(&c, &f->root, &is), 0);
	assert_true(is.has[HIERARCHY_V1] && !is.real[HIERARCHY_V1] && !is.top[HIERARCHY_V1]);
	assert_int_equal(is.controller, CONTROLLER_MEMORY);
	tree_write(f->tree.fd, "fs/memory/release_agent", "");
	assert_int_equal(node_look(&c, &f->root, &is), 0);
	assert_true(is.top[HIERARCHY_V1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rights),	    TEST(numbers),	   TEST(storedir),
		TEST(read_only),    TEST(answers),	   TEST(listeners),
		TEST(destinations), TEST(no_destinations), TEST(cgroups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
