// SPDX-License-Identifier: Apache-2.0
/* Requests for /debug/pprof/, with answers at once, later, or after the client has gone. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "server/httpd.h"
#include "server/server.h"
#include "support/served.h"

#define END   "\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define LATER 3

/* Answers with the request's text; for process 2 after a while, for process 3 on demand. */
struct fixture {
	struct served served;
	struct server *server;
	struct metric_list metrics;
	struct health health;
	struct pull_source source;
	struct loop_source *timer;
	char later_text[64];
	struct httpd_later *later;
	struct httpd_later *kept[LATER];
	_Atomic size_t n_kept;
};

static void answer(struct httpd_later *later, const char *text)
{
	struct httpd_response response = {.status = 200, .body = BUF_INIT(HTTPD_BODY_MAX)};

	response.content_type = "text/plain";
	assert_int_equal(buf_puts(&response.body, text), 0);
	httpd_later_answer(later, &response);
	assert_int_equal(response.body.len, 0);
}

static void on_timer(void *ctx)
{
	struct fixture *f = ctx;

	answer(f->later, f->later_text);
}

static void on_pull(void *ctx, const struct pull_ask *ask, struct httpd_later *later)
{
	struct fixture *f = ctx;
	char text[64];

	snprintf(text, sizeof(text), "%s pid=%d container=%s",
		 ask->allocs ? "allocs" : go_profile_kind_name(ask->kind), (int)ask->pid,
		 ask->container ? ask->container : "(none)");
	if (ask->pid == 3) {
		f->kept[f->n_kept++] = later;
	} else if (ask->pid == 2) {
		strcpy(f->later_text, text);
		f->later = later;
		assert_int_equal(loop_arm(f->timer, 20 * NSEC_PER_MSEC, 0), 0);
	} else {
		answer(later, text);
	}
}

static void start(struct fixture *f, bool on)
{
	struct listen_address address;
	const struct server_opts opts = {
		.loop = NULL,
		.address = &address,
		.metrics = &f->metrics,
		.health = &f->health,
		.pull = on ? &f->source : NULL,
	};
	struct server_opts with_loop = opts;

	*f = (struct fixture){.source = {f, on_pull}};
	assert_true(listen_parse("127.0.0.1:0", &address));
	served_init(&f->served);
	assert_int_equal(loop_add_timer(f->served.loop, on_timer, f, &f->timer), 0);
	with_loop.loop = f->served.loop;
	assert_int_equal(server_new(&with_loop, &f->server), 0);
	served_start(&f->served);
}

static void stop(struct fixture *f)
{
	loop_remove(f->timer);
	served_deinit(&f->served);
}

static void ask(struct fixture *f, const char *method, const char *target, struct buf *ret)
{
	char request[256];
	int n = snprintf(request, sizeof(request), "%s %s HTTP/1.1" END, method, target);

	served_exchange(server_address(f->server), request, (size_t)n, ret);
}

static void questions(void **state)
{
	static const struct {
		const char *name, *target, *status, *has;
	} rows[] = {
		{"a process", "/debug/pprof/heap?pid=7", "200", "heap pid=7 container=(none)"},
		{"a container", "/debug/pprof/goroutine?container=ab12", "200",
		 "goroutine pid=0 container=ab12"},
		{"allocs", "/debug/pprof/allocs?pid=1", "200", "allocs pid=1"},
		{"mutex", "/debug/pprof/mutex?pid=1&debug=0", "200", "mutex pid=1"},
		{"later", "/debug/pprof/block?pid=2", "200", "block pid=2 container=(none)"},
		{"neither", "/debug/pprof/heap", "400", "?pid=N"},
		{"both", "/debug/pprof/heap?pid=7&container=a", "400", "?pid=N"},
		{"no number", "/debug/pprof/heap?pid=x", "400", "number"},
		{"a number and more", "/debug/pprof/heap?pid=7x", "400", "number"},
		{"zero", "/debug/pprof/heap?pid=0", "400", "number"},
		{"too large", "/debug/pprof/heap?pid=99999999999999999999", "400", "number"},
		{"empty", "/debug/pprof/heap?pid=", "400", "number"},
		{"an empty container", "/debug/pprof/heap?container=", "400", "an id"},
		{"text", "/debug/pprof/heap?pid=7&debug=1", "400", "no text form"},
		{"a difference", "/debug/pprof/heap?pid=7&seconds=30", "400", "seconds"},
		{"a collection", "/debug/pprof/heap?pid=7&gc=1", "400", "gc"},
		{"another kind", "/debug/pprof/threadcreate?pid=7", "404", NULL},
		{"no kind", "/debug/pprof/", "404", NULL},
		{"below a kind", "/debug/pprof/heap/x?pid=7", "404", NULL},
	};
	struct fixture f;

	(void)state;
	start(&f, true);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);

		row_begin(rows[i].name);
		ask(&f, "GET", rows[i].target, &reply);
		assert_memory_equal(reply.data + strlen("HTTP/1.1 "), rows[i].status, 3);
		assert_non_null(strstr(reply.data, "X-Content-Type-Options: nosniff"));
		if (rows[i].has)
			assert_non_null(strstr(reply.data, rows[i].has));
		buf_reset(&reply);
		ask(&f, "HEAD", rows[i].target, &reply);
		assert_memory_equal(reply.data + strlen("HTTP/1.1 "), rows[i].status, 3);
	}
	served_stop(&f.served);
	server_free(f.server);
	stop(&f);
}

static void turned_off(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;

	(void)state;
	start(&f, false);
	ask(&f, "GET", "/debug/pprof/heap?pid=7", &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 404", 12);
	assert_non_null(strstr(reply.data, "--go-pull"));
	served_stop(&f.served);
	server_free(f.server);
	stop(&f);
}

/* Clients wait, one of them goes away, others are served in between. Then the answers arrive, or
 * the server ends first, or both. */
static void nobody_waits(void **state)
{
	static const char request[] = "GET /debug/pprof/heap?pid=3 HTTP/1.1" END;

	(void)state;
	for (int server_first = 0; server_first < 2; server_first++) {
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
		struct fixture f;
		int fds[LATER];

		start(&f, true);
		for (int i = 0; i < LATER; i++) {
			fds[i] = served_connect(server_address(f.server));
			assert_int_equal(send(fds[i], request, sizeof(request) - 1, MSG_NOSIGNAL),
					 sizeof(request) - 1);
		}
		while (f.n_kept < LATER)
			usleep(1000);
		close(fds[0]);
		ask(&f, "GET", "/debug/pprof/heap?pid=7", &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
		served_stop(&f.served);
		if (server_first)
			server_free(f.server);
		for (int i = 0; i < LATER; i++)
			answer(f.kept[i], "here");
		if (!server_first)
			server_free(f.server);
		for (int i = 1; i < LATER; i++)
			close(fds[i]);
		stop(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions),
		cmocka_unit_test(turned_off),
		cmocka_unit_test(nobody_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
