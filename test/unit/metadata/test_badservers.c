// SPDX-License-Identifier: Apache-2.0
/* Kubelets and API servers that lie, stall, break off or send too much; and impostors. */
#include "support/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "metadata/apiserver.h"
#include "metadata/podclient.h"
#include "metadata/pods.h"
#include "support/rawserver.h"
#include "support/sink.h"
#include "support/tree.h"
#include "support/until.h"

#define HEAD	 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define POD(uid) "{\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"s\",\"name\":\"" uid "\"}}"
#define LIST(items) \
	"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}"
#define EVENT(uid)                                                     \
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":\"" uid \
	"\",\"namespace\":\"s\",\"name\":\"" uid "\",\"resourceVersion\":\"" uid "\"}}}\n"

struct fixture {
	struct loop *loop;
	struct http *http;
	struct pods *pods;
	struct tree folder;
	char token_file[96];
	size_t n_replies;
	size_t n_wanted;
	struct podclient_reply reply;
	char error[256];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("all_proxy");
	tree_init(&f->folder);
	tree_write(f->folder.fd, "token", "secret");
	snprintf(f->token_file, sizeof(f->token_file), "%s/token", f->folder.path);
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
	tree_deinit(&f->folder);
	free(f);
	return 0;
}

static void on_reply(void *ctx, const struct podclient_reply *reply)
{
	struct fixture *f = ctx;

	f->n_replies++;
	f->reply = *reply;
	snprintf(f->error, sizeof(f->error), "%s", reply->error);
}

static bool has_replies(void *ctx)
{
	const struct fixture *f = ctx;

	return f->n_replies >= f->n_wanted;
}

static struct podclient_opts opts_of(const struct fixture *f, const char *url)
{
	return (struct podclient_opts){
		.http = f->http,
		.url = url,
		.token_file = f->token_file,
		.pods = f->pods,
	};
}

/* A complete request. */
static void get(struct fixture *f, const struct podclient_opts *opts, enum podstream_kind kind,
		uint64_t total_ns)
{
	const struct podclient_request request = {
		.path = "/pods",
		.kind = kind,
		.version = kind == PODSTREAM_WATCH ? "1" : NULL,
		.total_ns = total_ns,
	};
	struct podclient *client;

	f->n_replies = 0;
	f->n_wanted = 1;
	assert_int_equal(podclient_new(opts, on_reply, f, &client), 0);
	podclient_get(client, &request);
	loop_until(f->loop, has_replies, f);
	podclient_free(client);
}

/* ---------------------------------------------------------------- one reply */

struct row {
	const char *name;
	struct rawserver_answer answer;
	enum podstream_kind kind;
	enum podclient_outcome outcome;
	const char *error;
	uint64_t total_ms; /* 0: enough */
	bool keeps;	   /* the known pod stays known */
};

static const struct row rows[] = {
	{.name = "promises more than it sends",
	 .answer = {HEAD "Content-Length: 5000\r\n\r\n" LIST(POD("a"))},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "promises less than it sends",
	 .answer = {HEAD "Content-Length: 20\r\n\r\n" LIST(POD("a"))},
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
	{.name = "promises what is no number",
	 .answer = {HEAD "Content-Length: -5\r\n\r\n" LIST(POD("a"))},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "promises nothing and closes", .answer = {HEAD "\r\n" LIST(POD("a"))}},
	{.name = "promises nothing and closes early",
	 .answer = {HEAD "\r\n{\"kind\":\"PodList\",\"items\":[" POD("a")},
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
	{.name = "nothing at all",
	 .answer = {HEAD "Content-Length: 0\r\n\r\n"},
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
	{.name = "a byte at a time",
	 .answer = {.bytes = HEAD "\r\n" LIST(POD("a")) "                                        "
							"                                        ",
		    .slowly = true,
		    .end = RAWSERVER_HOLD},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .error = "timed out",
	 .total_ms = 100,
	 .keeps = true},
	{.name = "a byte of the head at a time",
	 .answer =
		 {.bytes = "HTTP/1.1 200 OK\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		  .slowly = true,
		  .end = RAWSERVER_HOLD},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .error = "timed out",
	 .total_ms = 50,
	 .keeps = true},
	{.name = "hangs in the middle",
	 .answer = {.bytes = HEAD "\r\n{\"kind\":\"PodList\",\"items\":[" POD("a"),
		    .end = RAWSERVER_HOLD},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .error = "timed out",
	 .total_ms = 100,
	 .keeps = true},
	{.name = "resets in the middle",
	 .answer = {.bytes = HEAD "Content-Length: 5000\r\n\r\n{\"kind\":\"PodList\",\"items\":[",
		    .end = RAWSERVER_RESET},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "no HTTP",
	 .answer = {"SSH-2.0-OpenSSH_9.2\r\n"},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "chunks that break off",
	 .answer = {HEAD "Transfer-Encoding: chunked\r\n\r\n40\r\n{\"kind\":\"PodList\""},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "a chunk of a size that overflows",
	 .answer = {HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{"},
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "gzip that nobody asked for",
	 .answer = {HEAD "Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08xxxxxxx"},
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
	{.name = "JSON of something else",
	 .answer = {HEAD "\r\n{\"kind\":\"Status\",\"items\":[]}"},
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
	{.name = "pods that are none",
	 .answer = {HEAD "\r\n" LIST("1,null,[],\"a\",{},{\"metadata\":[]}," POD("a"))}},
	{.name = "a watch that is reset",
	 .answer = {.bytes = HEAD "Content-Length: 9999\r\n\r\n" EVENT("7") "{\"type\":\"ADDED\"",
		    .end = RAWSERVER_RESET},
	 .kind = PODSTREAM_WATCH,
	 .outcome = PODCLIENT_UNREACHABLE,
	 .keeps = true},
	{.name = "a watch without a word",
	 .answer = {.bytes = HEAD "\r\n", .end = RAWSERVER_HOLD},
	 .kind = PODSTREAM_WATCH,
	 .outcome = PODCLIENT_UNREACHABLE,
	 .error = "timed out",
	 .total_ms = 100,
	 .keeps = true},
	{.name = "a watch of something else",
	 .answer = {HEAD "\r\n{\"type\":1}"},
	 .kind = PODSTREAM_WATCH,
	 .outcome = PODCLIENT_ODD,
	 .error = "malformed",
	 .keeps = true},
};

static void put(struct pods *pods, const char *json)
{
	struct pod *pod;

	assert_int_equal(pod_parse(json, strlen(json), &pod), 0);
	assert_int_equal(pods_put(pods, pod), 0);
}

static void test_rows(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct rawserver *server = rawserver_new(&row->answer, 1);
		const struct podclient_opts opts = opts_of(f, rawserver_url(server));

		row_begin(row->name);
		put(f->pods, POD("known"));
		get(f, &opts, row->kind,
		    row->total_ms ? row->total_ms * NSEC_PER_MSEC : 60 * NSEC_PER_SEC);
		assert_int_equal(f->reply.outcome, row->outcome);
		if (row->error)
			assert_non_null(strstr(f->error, row->error));
		assert_int_equal(pods_by_uid(f->pods, "known") != NULL, row->keeps);
		rawserver_free(server);
	}
}

/* ---------------------------------------------------------------- too much */

/* A list of @n pods; @one makes each pod from a number. */
static char *make_list(size_t n, void (*one)(struct buf *b, size_t i))
{
	struct buf b = BUF_INIT((size_t)64 << 20);

	assert_int_equal(buf_puts(&b, HEAD "\r\n{\"kind\":\"PodList\",\"items\":["), 0);
	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_int_equal(buf_putc(&b, ','), 0);
		one(&b, i);
	}
	assert_int_equal(buf_puts(&b, "]}"), 0);
	return buf_take(&b);
}

static void get_list(struct fixture *f, size_t n, void (*one)(struct buf *b, size_t i))
{
	_cleanup_(freep) char *text = make_list(n, one);
	const struct rawserver_answer answer = {.bytes = text};
	struct rawserver *server = rawserver_new(&answer, 1);
	const struct podclient_opts opts = opts_of(f, rawserver_url(server));

	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	rawserver_free(server);
}

static void small_pod(struct buf *b, size_t i)
{
	assert_int_equal(buf_printf(b,
				    "{\"metadata\":{\"uid\":\"u%zu\",\"namespace\":\"s\","
				    "\"name\":\"n%zu\"}}",
				    i, i),
			 0);
}

static void too_many_pods(void **state)
{
	struct fixture *f = *state;

	get_list(f, PODS_MAX + 10, small_pod);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(f->reply.n_odd, 10);
	assert_int_equal(pods_count(f->pods), PODS_MAX);
}

/* Annotations that fill the limit of one pod. */
static void fat_pod(struct buf *b, size_t i)
{
	char value[1001];

	memset(value, 'v', 1000);
	value[1000] = '\0';
	assert_int_equal(buf_printf(b,
				    "{\"metadata\":{\"uid\":\"u%zu\",\"namespace\":\"s\","
				    "\"name\":\"n%zu\",\"annotations\":{\"a\":\"\"",
				    i, i),
			 0);
	for (int n = 0; n < 125; n++)
		assert_int_equal(buf_printf(b, ",\"a%d\":\"%s\"", n, value), 0);
	assert_int_equal(buf_puts(b, "}}}"), 0);
}

static void too_many_bytes(void **state)
{
	struct fixture *f = *state;

	get_list(f, 400, fat_pod); /* 50 MB */
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_true(f->reply.n_odd > 100);
	assert_true(pods_count(f->pods) > 200);
	assert_int_equal(f->reply.n_odd + pods_count(f->pods), 400);
}

static void wide_pod(struct buf *b, size_t n)
{
	size_t n_containers = n == 0 ? 10000 : POD_CONTAINERS_MAX + 7;

	assert_int_equal(
		buf_printf(b,
			   "{\"metadata\":{\"uid\":\"u%zu\",\"namespace\":\"s\",\"name\":\"n\"},"
			   "\"status\":{\"containerStatuses\":[{}",
			   n),
		0);
	for (size_t i = 0; i < n_containers; i++)
		assert_int_equal(
			buf_printf(b, ",{\"name\":\"c\",\"containerID\":\"x://%zu%064zu\"}", n, i),
			0);
	assert_int_equal(buf_puts(b, "]}}"), 0);
}

static void too_many_containers(void **state)
{
	struct fixture *f = *state;
	const struct pod_container *container;
	char id[80];

	get_list(f, 2, wide_pod);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(f->reply.n_containers_left_out, 7);
	for (size_t i = 0; i < 10000; i++) {
		snprintf(id, sizeof(id), "0%064zu", i);
		assert_non_null(pods_by_container(f->pods, id, &container));
	}
}

static void huge_pod(struct buf *b, size_t i)
{
	assert_int_equal(
		buf_printf(b,
			   "{\"metadata\":{\"uid\":\"u%zu\",\"namespace\":\"s\",\"name\":\"n\","
			   "\"annotations\":{\"a\":\"%*s\"}}}",
			   i, i ? 1 : (int)PODSTREAM_VALUE_MAX, ""),
		0);
}

static void a_pod_that_is_too_large(void **state)
{
	struct fixture *f = *state;

	get_list(f, 2, huge_pod);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(f->reply.n_odd, 1);
	assert_non_null(pods_by_uid(f->pods, "u1"));
}

static void deep_pod(struct buf *b, size_t i)
{
	for (int n = 0; n < 200000; n++)
		assert_int_equal(buf_puts(b, i ? "{\"a\":" : "["), 0);
	for (int n = 0; n < 200000; n++)
		assert_int_equal(buf_putc(b, i ? '}' : ']'), 0);
}

static void brackets_without_end(void **state)
{
	struct fixture *f = *state;

	get_list(f, 2, deep_pod);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(f->reply.n_odd, 2);
}

/* ---------------------------------------------------------------- the API server's watch */

static bool has_third(void *ctx)
{
	return rawserver_request(ctx, 2);
}

/* The watch continues from the last event, without a list. */
static void a_watch_goes_on(void **state)
{
	static const struct rawserver_answer script[] = {
		{.bytes = HEAD "\r\n" LIST(POD("a"))},
		{.bytes = HEAD "Content-Length: 9999\r\n\r\n" EVENT("7") "{\"type\"",
		 .end = RAWSERVER_RESET},
		{.bytes = HEAD "\r\n", .end = RAWSERVER_HOLD},
	};
	struct fixture *f = *state;
	struct rawserver *server = rawserver_new(script, array_size(script));
	const struct podclient_opts opts = opts_of(f, rawserver_url(server));
	struct apiserver *apiserver;

	assert_int_equal(apiserver_new(f->loop, &opts, "n", on_reply, f, &apiserver), 0);
	loop_until(f->loop, has_third, server);
	assert_non_null(strstr(rawserver_request(server, 1), "resourceVersion=5&"));
	assert_non_null(strstr(rawserver_request(server, 2), "watch=1"));
	assert_non_null(strstr(rawserver_request(server, 2), "resourceVersion=7&"));
	assert_non_null(pods_by_uid(f->pods, "a"));
	assert_non_null(pods_by_uid(f->pods, "7"));
	apiserver_free(apiserver);
	rawserver_free(server);
}

/* The kernel probes a silent peer. */
static void a_watch_has_keepalive(void **state)
{
	static const struct rawserver_answer silent = {.bytes = HEAD "\r\n", .end = RAWSERVER_HOLD};
	struct fixture *f = *state;
	struct rawserver *server = rawserver_new(&silent, 1);
	const struct podclient_opts opts = opts_of(f, rawserver_url(server));
	struct sockaddr_in peer;
	int n_sockets = 0, port = atoi(strrchr(rawserver_url(server), ':') + 1);
	struct apiserver *apiserver;

	assert_int_equal(apiserver_new(f->loop, &opts, "n", on_reply, f, &apiserver), 0);
	while (!rawserver_request(server, 0)) {
		f->n_replies = 0;
		f->n_wanted = 0;
		loop_until(f->loop, has_replies, f);
	}
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t len = sizeof(peer), n = sizeof(int);
		int on = 0, idle = 0;

		if (getpeername(fd, (struct sockaddr *)&peer, &len) || ntohs(peer.sin_port) != port)
			continue;
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &n), 0);
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &n), 0);
		assert_int_equal(on, 1);
		assert_int_equal(idle, 30);
		n_sockets++;
	}
	assert_int_equal(n_sockets, 1);
	apiserver_free(apiserver);
	rawserver_free(server);
}

/* ---------------------------------------------------------------- identity */

static void redirects_are_not_followed(void **state)
{
	static const struct sink_answer there = {.status = 200, .body = LIST(POD("b"))};
	struct fixture *f = *state;
	struct sink *other = sink_new(&there, 1, NULL);
	const struct sink_answer script[] = {
		{.status = 301, .location = sink_url(other)},
		{.status = 307, .location = sink_url(other)},
	};
	struct sink *server = sink_new(script, array_size(script), NULL);
	const struct podclient_opts opts = opts_of(f, sink_url(server));

	for (size_t i = 0; i < array_size(script); i++) {
		get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
		assert_int_equal(f->reply.outcome, PODCLIENT_ODD);
	}
	assert_int_equal(sink_n_connections(other), 0);
	sink_free(server);
	sink_free(other);
}

/* OpenSSL before 3.4 has no options for the dates of a certificate, and later releases accept no
 * negative number of days. */
static void make_certificate(const struct fixture *f, const char *name, bool expired)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "cd %s && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
		 "-subj /CN=sink -keyout key.pem -out request.pem 2>/dev/null && "
		 "echo 'subjectAltName=%s' >extensions && "
		 "sign() { openssl x509 -req -in request.pem -signkey key.pem "
		 "-extfile extensions -out cert.pem \"$@\" 2>/dev/null; } && %s",
		 f->folder.path, name,
		 expired ? "{ sign -days -1 || "
			   "sign -not_before 20200101000000Z -not_after 20200102000000Z; }"
			 : "sign -days 2");
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own words */
}

static void certificates(void **state)
{
	static const struct {
		const char *name;
		const char *subject;
		bool expired;
		bool trusted;
		enum http_verify verify;
		enum podclient_outcome outcome;
	} certs[] = {
		{"good", "IP:127.0.0.1", false, true, HTTP_VERIFY_ALL, PODCLIENT_OK},
		{"of nobody", "IP:127.0.0.1", false, false, HTTP_VERIFY_ALL, PODCLIENT_UNREACHABLE},
		{"expired", "IP:127.0.0.1", true, true, HTTP_VERIFY_ALL, PODCLIENT_UNREACHABLE},
		{"expired, chain", "IP:127.0.0.1", true, true, HTTP_VERIFY_CHAIN,
		 PODCLIENT_UNREACHABLE},
		{"another name", "DNS:other", false, true, HTTP_VERIFY_ALL, PODCLIENT_UNREACHABLE},
		{"another name, chain", "DNS:other", false, true, HTTP_VERIFY_CHAIN, PODCLIENT_OK},
		{"expired, nothing checked", "DNS:other", true, false, HTTP_VERIFY_NOTHING,
		 PODCLIENT_OK},
	};
	static const struct sink_answer ok = {.status = 200, .body = LIST(POD("a"))};
	struct fixture *f = *state;
	char ca[96];

	snprintf(ca, sizeof(ca), "%s/cert.pem", f->folder.path);
	for (size_t i = 0; i < array_size(certs); i++) {
		struct podclient_opts opts;
		struct sink *server;

		row_begin(certs[i].name);
		make_certificate(f, certs[i].subject, certs[i].expired);
		server = sink_new(&ok, 1, f->folder.path);
		opts = opts_of(f, sink_url(server));
		opts.ca_file = certs[i].trusted ? ca : NULL;
		opts.verify = certs[i].verify;
		get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
		assert_int_equal(f->reply.outcome, certs[i].outcome);
		/* An untrusted server does not get the token. */
		assert_int_equal(sink_n_requests(server), f->reply.outcome == PODCLIENT_OK);
		if (f->reply.outcome != PODCLIENT_OK)
			assert_non_null(strstr(f->error, "certificate"));
		sink_free(server);
	}
}

/* The token vanishes, returns, changes, is empty, is too long. */
static void tokens(void **state)
{
	static const struct sink_answer ok = {.status = 200, .body = LIST(POD("a"))};
	static char longer[20000];
	struct fixture *f = *state;
	struct sink *server = sink_new(&ok, 1, NULL);
	const struct podclient_opts opts = opts_of(f, sink_url(server));

	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(unlinkat(f->folder.fd, "token", 0), 0);
	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_equal(f->reply.outcome, PODCLIENT_DENIED);
	assert_non_null(strstr(f->error, "token"));
	assert_int_equal(mkfifoat(f->folder.fd, "token", 0600), 0);
	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_equal(f->reply.outcome, PODCLIENT_DENIED);
	assert_int_equal(unlinkat(f->folder.fd, "token", 0), 0);
	memset(longer, 't', sizeof(longer) - 1);
	tree_write(f->folder.fd, "token", longer);
	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_equal(f->reply.outcome, PODCLIENT_DENIED);
	tree_write(f->folder.fd, "token", "a\r\nX-Other: b");
	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_not_equal(f->reply.outcome, PODCLIENT_OK);
	assert_int_equal(sink_n_requests(server), 1);
	tree_write(f->folder.fd, "token", "second");
	get(f, &opts, PODSTREAM_LIST, 60 * NSEC_PER_SEC);
	assert_int_equal(f->reply.outcome, PODCLIENT_OK);
	assert_string_equal(sink_request(server, 1)->authorization, "Bearer second");
	sink_free(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),
		TEST(too_many_pods),
		TEST(too_many_bytes),
		TEST(too_many_containers),
		TEST(a_pod_that_is_too_large),
		TEST(brackets_without_end),
		TEST(a_watch_goes_on),
		TEST(a_watch_has_keepalive),
		TEST(redirects_are_not_followed),
		TEST(certificates),
		TEST(tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
