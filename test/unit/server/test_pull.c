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
	struct pull_sources sources;
	struct loop_source *timer;
	char later_text[160];
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

static const char *text_of(const char *text)
{
	return text ? text : "(none)";
}

static void on_pull(void *ctx, const struct pull_ask *ask, struct httpd_later *later)
{
	struct fixture *f = ctx;
	char text[160];

	if (ask->what == PULL_GO)
		snprintf(text, sizeof(text), "%s pid=%d seconds=%u container=%s pod=%s service=%s",
			 ask->allocs ? "allocs" : go_profile_kind_name(ask->kind), (int)ask->pid,
			 ask->seconds, text_of(ask->container), text_of(ask->pod),
			 text_of(ask->service));
	else
		snprintf(text, sizeof(text), "%s seconds=%u container=%s pod=%s service=%s",
			 ask->what == PULL_CPU ? "cpu" : "offcpu", ask->seconds,
			 text_of(ask->container), text_of(ask->pod), text_of(ask->service));
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

static void start(struct fixture *f, bool on, bool sources)
{
	struct listen_plan addresses;
	bool is_ui;
	const struct server_opts opts = {
		.loop = NULL,
		.addresses = &addresses,
		.metrics = &f->metrics,
		.health = &f->health,
	};
	struct server_opts with_loop = opts;

	*f = (struct fixture){
		.source = {f, on_pull},
		.sources = {.off = on ? NULL : "off: --pull", .cpu = &f->source, .go = &f->source}};
	if (!sources)
		f->sources.cpu = f->sources.go = NULL;
	assert_int_equal(listen_plan("127.0.0.1:0", NULL, &addresses), 0);
	served_init(&f->served);
	assert_int_equal(loop_add_timer(f->served.loop, on_timer, f, &f->timer), 0);
	with_loop.loop = f->served.loop;
	with_loop.pull = &f->sources;
	assert_int_equal(server_new(&with_loop, &is_ui, &f->server), 0);
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
		{"a process", "/debug/pprof/heap?pid=7", "200",
		 "heap pid=7 seconds=0 container=(none)"},
		{"a container", "/debug/pprof/goroutine?container=ab12", "200",
		 "goroutine pid=0 seconds=0 container=ab12"},
		{"allocs", "/debug/pprof/allocs?pid=1", "200", "allocs pid=1"},
		{"mutex", "/debug/pprof/mutex?pid=1&debug=0", "200", "mutex pid=1"},
		{"later", "/debug/pprof/block?pid=2", "200",
		 "block pid=2 seconds=0 container=(none)"},
		{"everything", "/debug/pprof/heap", "200", "heap pid=0 seconds=0 container=(none)"},
		{"a pod", "/debug/pprof/heap?pod=shop/cart-0", "200",
		 "container=(none) pod=shop/cart-0 service=(none)"},
		{"a service", "/debug/pprof/block?service=cart", "200", "service=cart"},
		{"all selectors", "/debug/pprof/block?service=c&pod=a%2Fb&container=x", "200",
		 "container=x pod=a/b service=c"},
		{"CPU", "/debug/pprof/profile", "200",
		 "cpu seconds=30 container=(none) pod=(none) service=(none)"},
		{"CPU for a second", "/debug/pprof/profile?seconds=1&container=ab12", "200",
		 "cpu seconds=1 container=ab12"},
		{"off-CPU", "/debug/pprof/offcpu?seconds=240", "200", "offcpu seconds=240"},
		{"too long", "/debug/pprof/profile?seconds=241", "400", "from 1 to 240"},
		{"no time", "/debug/pprof/profile?seconds=0", "400", "from 1 to 240"},
		{"a fraction", "/debug/pprof/profile?seconds=1.5", "400", "from 1 to 240"},
		{"negative", "/debug/pprof/profile?seconds=-1", "400", "from 1 to 240"},
		{"no seconds", "/debug/pprof/profile?seconds=", "400", "from 1 to 240"},
		{"far too long", "/debug/pprof/profile?seconds=99999999999999999999", "400",
		 "from 1 to 240"},
		{"CPU of a process", "/debug/pprof/profile?pid=7", "400", "podprof record"},
		{"process and container", "/debug/pprof/heap?pid=7&container=a", "400", "without"},
		{"process and service", "/debug/pprof/heap?pid=7&service=a", "400", "without"},
		{"a pod without a namespace", "/debug/pprof/heap?pod=cart-0", "400", "NAMESPACE"},
		{"a pod without a name", "/debug/pprof/heap?pod=shop/", "400", "NAMESPACE"},
		{"an empty namespace", "/debug/pprof/heap?pod=/cart-0", "400", "NAMESPACE"},
		{"an empty service", "/debug/pprof/heap?service=", "400", "a name"},
		{"CPU as text", "/debug/pprof/profile?debug=1", "400", "no text form"},
		{"no number", "/debug/pprof/heap?pid=x", "400", "number"},
		{"a number and more", "/debug/pprof/heap?pid=7x", "400", "number"},
		{"zero", "/debug/pprof/heap?pid=0", "400", "number"},
		{"too large", "/debug/pprof/heap?pid=99999999999999999999", "400", "number"},
		{"empty", "/debug/pprof/heap?pid=", "400", "number"},
		{"an empty container", "/debug/pprof/heap?container=", "400", "an id"},
		{"text", "/debug/pprof/heap?pid=7&debug=1", "400", "no text form"},
		{"a difference", "/debug/pprof/heap?pid=7&seconds=30", "200",
		 "heap pid=7 seconds=30"},
		{"the longest", "/debug/pprof/mutex?seconds=240", "200", "mutex pid=0 seconds=240"},
		{"longer", "/debug/pprof/mutex?seconds=241", "400", "from 1 to 240"},
		{"no difference", "/debug/pprof/allocs?seconds=0", "400", "from 1 to 240"},
		{"a collection", "/debug/pprof/heap?pid=7&gc=1", "400", "gc"},
		{"another kind", "/debug/pprof/threadcreate?pid=7", "404", "there are profile"},
		{"no kind", "/debug/pprof/", "404", "there are profile"},
		{"below a kind", "/debug/pprof/heap/x?pid=7", "404", "there are profile"},
		{"a misspelt selector", "/debug/pprof/profile?seconds=1&namespace=shop", "400",
		 "?namespace= is unknown"},
		{"in other letters", "/debug/pprof/heap?Pod=shop%2Fcart", "400", "?Pod= is"},
		{"a selector twice", "/debug/pprof/heap?service=a&service=b", "400",
		 "?service= is unknown, there twice"},
		{"a selector without a value", "/debug/pprof/heap?container", "400",
		 "?container= is unknown, there twice or without a value"},
		{"a name of control characters", "/debug/pprof/heap?%1b%5b=1", "400", "\n??[= is"},
	};
	struct fixture f;

	(void)state;
	start(&f, true, true);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);

		row_begin(rows[i].name);
		ask(&f, "GET", rows[i].target, &reply);
		assert_memory_equal(reply.data + strlen("HTTP/1.1 "), rows[i].status, 3);
		assert_non_null(strstr(reply.data, "X-Content-Type-Options: nosniff"));
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
	static const struct {
		const char *name;
		bool on;
		const char *target, *has;
	} rows[] = {
		{"all", false, "/debug/pprof/heap?pid=7", "--pull"},
		{"all, CPU", false, "/debug/pprof/profile", "--pull"},
		{"Go's", true, "/debug/pprof/heap?pid=7", "--go-heap-profiler"},
		{"CPU", true, "/debug/pprof/profile", "--cpu-rate"},
		{"off-CPU", true, "/debug/pprof/offcpu", "--cpu-rate"},
		{"CPU, for a reason", true, "/debug/pprof/profile", "no BTF"},
	};
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		start(&f, rows[i].on, false);
		f.sources.no_cpu = strstr(rows[i].name, "reason") ? "no BTF" : NULL;
		buf_reset(&reply);
		ask(&f, "GET", rows[i].target, &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 404", 12);
		assert_non_null(strstr(reply.data, rows[i].has));
		served_stop(&f.served);
		server_free(f.server);
		stop(&f);
	}
}

/* Clients wait, a waiting client disconnects, and other clients are served in between. Then the
 * answers arrive, or the server ends first, or both. */
static void nobody_waits(void **state)
{
	static const char request[] = "GET /debug/pprof/heap?pid=3 HTTP/1.1" END;

	(void)state;
	for (int server_first = 0; server_first < 2; server_first++) {
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
		struct fixture f;
		int fds[LATER];

		start(&f, true, true);
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
