// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/allocfail.h"
#include "support/sink.h"
#include "support/until.h"

#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"

/* The end of a call, copied. */
struct result {
	bool done;
	long status;
	bool timed_out;
	uint64_t retry_after_ns;
	int64_t date_s;
	size_t body_len;
	char body[64]; /* the beginning */
	char error[256];
	size_t streamed;
	size_t stop_at; /* bytes streamed; 0: never */
	int stopped;
};

struct fixture {
	size_t n_fds;
	struct loop *loop;
	struct http *http;
	struct sink *sink;
};

static size_t count_fds(void)
{
	_cleanup_(closedirp) DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	return n;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->n_fds = count_fds();
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("HTTPS_PROXY");
	unsetenv("ALL_PROXY");
	unsetenv("all_proxy");
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(http_new(f->loop, &f->http), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_free(f->http);
	sink_free(f->sink);
	loop_free(f->loop);
	assert_int_equal(count_fds(), f->n_fds);
	free(f);
	return 0;
}

static void finished(void *ctx, const struct http_reply *reply)
{
	struct result *result = ctx;

	assert_false(result->done);
	assert_non_null(reply->error);
	assert_int_equal(reply->body[reply->body_len], '\0');
	result->done = true;
	result->status = reply->status;
	result->timed_out = reply->timed_out;
	result->stopped = reply->stopped;
	result->retry_after_ns = reply->retry_after_ns;
	result->date_s = reply->date_s;
	result->body_len = reply->body_len;
	snprintf(result->body, sizeof(result->body), "%s", reply->body);
	snprintf(result->error, sizeof(result->error), "%s", reply->error);
}

static bool is_finished(void *ctx)
{
	struct result *result = ctx;

	return result->done;
}

static struct result call(struct fixture *f, const struct http_request *request)
{
	struct http_request with_times = *request;
	struct result result = {0};
	struct http_call *started;

	if (!with_times.connect_ns)
		with_times.connect_ns = 10 * NSEC_PER_SEC;
	if (!with_times.total_ns)
		with_times.total_ns = 30 * NSEC_PER_SEC;
	if (!with_times.url)
		with_times.url = sink_url(f->sink);
	assert_int_equal(http_start(f->http, &with_times, finished, &result, &started), 0);
	loop_until(f->loop, is_finished, &result);
	return result;
}

/* A body given in pieces. */
struct sending {
	struct result result; /* first: the context is of both */
	size_t left;
	size_t fail_at; /* of @left */
	ssize_t fail;
};

static ssize_t give(void *ctx, char *ret, size_t n)
{
	struct sending *s = ctx;
	const size_t take = s->left < n ? s->left : n;

	if (s->left <= s->fail_at)
		return s->fail;
	memset(ret, 'x', take);
	s->left -= take;
	return (ssize_t)take;
}

static void test_send(void **state)
{
	static const struct sink_answer ok = {.status = 200, .body = "fine"};
	static const struct {
		const char *name;
		size_t n, fail_at;
		ssize_t fail;
		long status;
		int stopped;
	} rows[] = {
		{"a byte", 1, 0, 0, 200, 0},
		{"in pieces", 1000000, 0, 0, 200, 0},
		{"an error", 1000000, 500000, -ENODATA, 0, -ENODATA},
		{"too short", 1000000, 500000, 0, 0, -EIO},
	};
	struct fixture *f = *state;

	f->sink = sink_new(&ok, 1, NULL);
	for (size_t i = 0, n_seen = 0; i < array_size(rows); i++) {
		const struct http_request request = {.url = sink_url(f->sink),
						     .on_send = give,
						     .body_len = rows[i].n,
						     .connect_ns = 10 * NSEC_PER_SEC,
						     .total_ns = 60 * NSEC_PER_SEC};
		struct sending s = {
			.left = rows[i].n, .fail_at = rows[i].fail_at, .fail = rows[i].fail};
		struct http_call *started;

		row_begin(rows[i].name);
		assert_int_equal(http_start(f->http, &request, finished, &s, &started), 0);
		loop_until(f->loop, is_finished, &s);
		assert_int_equal(s.result.status, rows[i].status);
		assert_int_equal(s.result.stopped, rows[i].stopped);
		n_seen += rows[i].status == 200;
		assert_int_equal(sink_n_requests(f->sink), n_seen);
		if (rows[i].status == 200)
			assert_int_equal(sink_request(f->sink, n_seen - 1)->body_len, rows[i].n);
	}
}

static void test_post(void **state)
{
	static const struct sink_answer ok = {.status = 200, .body = "fine"};
	static const char body[] = "a\0b";
	const char *headers[] = {"Content-Type: application/proto", "X-Scope-OrgID: team"};
	struct fixture *f = *state;
	const struct sink_request *seen;
	struct result result;

	f->sink = sink_new(&ok, 1, NULL);
	result = call(f, &(struct http_request){.headers = headers,
						.n_headers = 2,
						.user = "me",
						.password = "secret",
						.body = body,
						.body_len = 4});
	assert_int_equal(result.status, 200);
	assert_string_equal(result.body, "fine");
	seen = sink_request(f->sink, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->content_type, "application/proto");
	assert_string_equal(seen->tenant, "team");
	assert_string_equal(seen->authorization, "Basic bWU6c2VjcmV0");
	assert_null(seen->expect);
	assert_int_equal(strncmp(seen->user_agent, "podprof/", 8), 0);
	assert_int_equal(seen->body_len, 4);
	assert_memory_equal(seen->body, body, 4);
}

static void test_get_again(void **state)
{
	static const struct sink_answer ok = {.status = 204};
	struct fixture *f = *state;

	f->sink = sink_new(&ok, 1, NULL);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(call(f, &(struct http_request){.bearer = "t0ken"}).status, 204);
	assert_string_equal(sink_request(f->sink, 2)->method, "GET");
	assert_string_equal(sink_request(f->sink, 2)->authorization, "Bearer t0ken");
	assert_int_equal(sink_n_connections(f->sink), 1);
}

/* A body far larger than the sockets' buffers, written in many parts. */
static void test_large_body(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	const size_t n = 16u << 20;
	_cleanup_(freep) char *body = malloc(n);
	struct fixture *f = *state;

	for (size_t i = 0; i < n; i++)
		body[i] = (char)(i % 251);
	f->sink = sink_new(&ok, 1, NULL);
	assert_int_equal(call(f, &(struct http_request){.body = body, .body_len = n}).status, 200);
	assert_int_equal(sink_request(f->sink, 0)->body_len, n);
	assert_memory_equal(sink_request(f->sink, 0)->body, body, n);
}

struct reply_row {
	const char *name;
	struct sink_answer answer;
	long status;
	size_t body_len;
	uint64_t retry_after_ns;
};

static const struct reply_row reply_rows[] = {
	{"as long as may be",
	 {.status = 500, .body = "x", .body_repeat = HTTP_REPLY_MAX},
	 500,
	 HTTP_REPLY_MAX,
	 0},
	{"one byte longer",
	 {.status = 500, .body = "x", .body_repeat = HTTP_REPLY_MAX + 1},
	 500,
	 HTTP_REPLY_MAX,
	 0},
	{"much longer, and right",
	 {.status = 200, .body = "0123456789", .body_repeat = 1000000},
	 200,
	 HTTP_REPLY_MAX,
	 0},
	{"a redirect is not followed",
	 {.status = 302, .location = "http://127.0.0.1:1/elsewhere"},
	 302,
	 0,
	 0},
	{"seconds", {.status = 429, .retry_after = "7"}, 429, 0, 7 * NSEC_PER_SEC},
	{"very many seconds",
	 {.status = 429, .retry_after = "999999999"},
	 429,
	 0,
	 3600 * NSEC_PER_SEC},
	{"a date that has passed",
	 {.status = 503, .retry_after = "Sun, 06 Nov 1994 08:49:37 GMT"},
	 503,
	 0,
	 0},
	{"neither", {.status = 503, .retry_after = "soon"}, 503, 0, 0},
	{"closed without an answer", {.how = SINK_CLOSE}, 0, 0, 0},
};

static void test_replies(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(reply_rows); i++) {
		const struct reply_row *row = &reply_rows[i];
		struct result result;

		row_begin(row->name);
		f->sink = sink_new(&row->answer, 1, NULL);
		result = call(f, &(struct http_request){0});
		assert_int_equal(result.status, row->status);
		assert_int_equal(result.body_len, row->body_len);
		assert_int_equal(result.retry_after_ns, row->retry_after_ns);
		/* this machine's clock, where there was a reply */
		assert_in_range(result.date_s, row->status ? time(NULL) - 60 : 0,
				row->status ? time(NULL) + 60 : 0);
		assert_false(result.timed_out);
		sink_free(take_ptr(f->sink));
	}
}

static void test_retry_after_date(void **state)
{
	time_t at = time(NULL) + 3600;
	char date[64];
	struct sink_answer answer = {.status = 503, .retry_after = date};
	struct fixture *f = *state;
	struct result result;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&at));
	f->sink = sink_new(&answer, 1, NULL);
	result = call(f, &(struct http_request){0});
	assert_in_range(result.retry_after_ns, 3000 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC);
}

static void test_timeout(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture *f = *state;
	struct result result;

	f->sink = sink_new(&hang, 1, NULL);
	result = call(f, &(struct http_request){.total_ns = 300 * NSEC_PER_MSEC});
	assert_int_equal(result.status, 0);
	assert_true(result.timed_out);
	assert_int_not_equal(result.error[0], '\0');
}

/* ---- servers that do not speak HTTP as they should: bytes on a socket */

/**
 * @head, @piece: sent at first, and then as often as the client reads, with @pause_us between
 * @status:       of the reply
 * @is_tls:       the client expects TLS
 */
struct raw_row {
	const char *name;
	const char *head;
	const char *piece;
	useconds_t pause_us;
	long status;
	bool timed_out;
	bool is_tls;
};

/* Bytes that a server without end may send at most, until the test fails: libcurl has a ceiling of
 * 300 KiB of headers, the client one of HTTP_REPLY_MAX for the body, and the sockets have buffers.
 */
#define RAW_BYTES_MAX (64u << 20)

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct raw_row raw_rows[] = {
	{"garbage", "\001\002 no HTTP here\r\n\r\n", NULL, 0, 0, false, false},
	{"garbage without end", "", "\001\002\003", 0, 0, false, false},
	{"a header line without end", "HTTP/1.1 200 OK\r\nX: ", "xxxxxxxx", 0, 0, false, false},
	{"headers without end", "HTTP/1.1 200 OK\r\n", "X-Header: value\r\n", 0, 0, false, false},
	{"interim replies without end", "", "HTTP/1.1 102 Processing\r\nX: y\r\n\r\n", 0, 0, false,
	 false},
	{"a body without end", "HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxx", 0, 200, false, false},
	{"chunks without end", CHUNKED, "8\r\nxxxxxxxx\r\n", 0, 200, false, false},
	{"a wrong chunk", CHUNKED "zz\r\n", NULL, 0, 0, false, false},
	{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", NULL, 0, 0, false,
	 false},
	{"a reply that drips", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "x", 10000, 0,
	 true, false},
	{"headers that drip", "HTTP/1.1 200 OK\r\nX: ", "x", 10000, 0, true, false},
	{"a chunk extension without end", CHUNKED "8;", "xxxxxxxx", 0, 0, false, false},
	{"trailers without end", CHUNKED "0\r\n", "X-Trailer: value\r\n", 0, 0, false, false},
	{"HTTP in place of TLS", "HTTP/1.1 200 OK\r\n\r\n", NULL, 0, 0, false, true},
	{"garbage in place of TLS, without end", "", "\026\003\003\002", 0, 0, false, true},
	/* of 16,130 bytes: later versions of OpenSSL refuse longer ones at once */
	{"a TLS handshake that drips", "\026\003\003\077", "\002", 10000, 0, true, true},
};

struct raw_server {
	const struct raw_row *row;
	int fd;
	size_t sent;
};

/* Ends when the client hangs up. */
static void *raw_serve(void *arg)
{
	char request[4096], pieces[4096];
	struct raw_server *s = arg;
	const struct raw_row *row = s->row;
	size_t n = 0, len = row->piece ? strlen(row->piece) : 0;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

	assert_true(fd >= 0 && read(fd, request, sizeof(request)) > 0);
	/* many at once, or one after the other */
	while (len && n + len <= (row->pause_us ? len : sizeof(pieces))) {
		memcpy(pieces + n, row->piece, len);
		n += len;
	}
	assert_true(send(fd, row->head, strlen(row->head), MSG_NOSIGNAL) >= 0);
	while (n && s->sent < RAW_BYTES_MAX && send(fd, pieces, n, MSG_NOSIGNAL) > 0) {
		s->sent += n;
		if (row->pause_us)
			usleep(row->pause_us);
	}
	close(fd);
	return NULL;
}

static int listen_any(char url[64])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	snprintf(url, 64, "http://127.0.0.1:%d/", ntohs(address.sin_port));
	return fd;
}

/* Returns what the client saw, and the bytes sent to @ret_sent. */
static struct result raw_call(struct fixture *f, const struct raw_row *row, http_body_fn on_body,
			      size_t *ret_sent)
{
	struct raw_server server = {.row = row};
	struct result result;
	pthread_t thread;
	char url[64], secure[80];

	row_begin(row->name);
	server.fd = listen_any(url);
	if (row->is_tls)
		snprintf(secure, sizeof(secure), "https%s", url + strlen("http"));
	assert_int_equal(pthread_create(&thread, NULL, raw_serve, &server), 0);
	result = call(f, &(struct http_request){.url = row->is_tls ? secure : url,
						.on_body = on_body,
						.total_ns = row->timed_out ? 500 * NSEC_PER_MSEC
									   : 300 * NSEC_PER_SEC});
	pthread_join(thread, NULL);
	close(server.fd);
	assert_int_equal(result.status, row->status);
	assert_int_equal(result.timed_out, row->timed_out);
	*ret_sent = server.sent;
	return result;
}

static void test_raw(void **state)
{
	struct fixture *f = *state;
	size_t sent;

	for (size_t i = 0; i < array_size(raw_rows); i++) {
		assert_in_range(raw_call(f, &raw_rows[i], NULL, &sent).body_len, 0, HTTP_REPLY_MAX);
		assert_in_range(sent, 0, RAW_BYTES_MAX - 1);
	}
}

/* The same for a body that is read as it arrives; @is_read: all that the server sends. */
static const struct raw_stream_row {
	struct raw_row raw;
	bool is_read;
} raw_stream_rows[] = {
	{{"a chunk extension without end", CHUNKED "8;", "xxxxxxxx", 0, 0, false, false}, false},
	{{"trailers without end", CHUNKED "1\r\nx\r\n0\r\n", "X-Trailer: value\r\n", 0, 0, false,
	  false},
	 false},
	{{"extensions longer than the chunks", CHUNKED, "1;xxxxxxx\r\nx\r\n", 0, 0, false, false},
	 false},
	{{"an error with a chunk extension without end",
	  "HTTP/1.1 404 Gone\r\nTransfer-Encoding: chunked\r\n\r\n8;", "xxxxxxxx", 0, 0, false,
	  false},
	 false},
	{{"small chunks", CHUNKED, "8\r\nxxxxxxxx\r\n", 0, 0, false, false}, true},
	{{"extensions and ends as long as the chunks", CHUNKED, "8;xx\r\nxxxxxxxx\r\n", 0, 0, false,
	  false},
	 true},
};

static int take(void *ctx, const char *bytes, size_t n)
{
	struct result *result = ctx;

	assert_int_equal(bytes[n - 1], 'x');
	result->streamed += n;
	return result->stop_at && result->streamed >= result->stop_at ? 42 : 0;
}

static void test_raw_stream(void **state)
{
	struct fixture *f = *state;
	size_t sent;

	for (size_t i = 0; i < array_size(raw_stream_rows); i++) {
		raw_call(f, &raw_stream_rows[i].raw, take, &sent);
		if (raw_stream_rows[i].is_read)
			assert_true(sent >= RAW_BYTES_MAX);
		else
			assert_in_range(sent, 0, RAW_BYTES_MAX - 1);
	}
}

/* A port bound and closed again: refused. */
static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct result result;
	char url[64];

	close(listen_any(url));
	result = call(f, &(struct http_request){.url = url});
	assert_int_equal(result.status, 0);
	assert_false(result.timed_out);
	assert_non_null(strstr(result.error, "onnect"));
}

struct stream_row {
	const char *name;
	struct sink_answer answer;
	size_t stop_at;
	long status;
	size_t streamed;
	size_t body_len;
	int stopped;
};

static const struct stream_row stream_rows[] = {
	{"longer than what is kept",
	 {.status = 200, .body = "xx", .body_repeat = HTTP_REPLY_MAX},
	 0,
	 200,
	 2 * HTTP_REPLY_MAX,
	 0,
	 0},
	{"an error is kept", {.status = 403, .body = "xx"}, 0, 403, 0, 2, 0},
	{"ended by the reader", {.status = 200, .body = "x"}, 1, 0, 1, 0, 42},
};

static void test_stream(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < array_size(stream_rows); i++) {
		const struct stream_row *row = &stream_rows[i];
		struct result result = {.stop_at = row->stop_at};
		struct http_request request = {
			.on_body = take,
			.connect_ns = 10 * NSEC_PER_SEC,
			.total_ns = 30 * NSEC_PER_SEC,
		};
		struct http_call *started;

		row_begin(row->name);
		f->sink = sink_new(&row->answer, 1, NULL);
		request.url = sink_url(f->sink);
		assert_int_equal(http_start(f->http, &request, finished, &result, &started), 0);
		loop_until(f->loop, is_finished, &result);
		assert_int_equal(result.status, row->status);
		assert_int_equal(result.streamed, row->streamed);
		assert_int_equal(result.body_len, row->body_len);
		assert_int_equal(result.stopped, row->stopped);
		sink_free(take_ptr(f->sink));
	}
}

struct flow {
	struct loop *loop;
	bool is_finished;
	size_t streamed;
	size_t last;
	size_t most; /* bytes between two turns */
};

static int take_flow(void *ctx, const char *bytes, size_t n)
{
	struct flow *flow = ctx;

	(void)bytes;
	flow->streamed += n;
	usleep(500); /* slower than the server: more is always there */
	return 0;
}

static void flow_finished(void *ctx, const struct http_reply *reply)
{
	struct flow *flow = ctx;

	assert_int_equal(reply->status, 200);
	flow->is_finished = true;
}

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct flow *flow = ctx;

	(void)fd;
	(void)events;
	if (flow->streamed - flow->last > flow->most)
		flow->most = flow->streamed - flow->last;
	flow->last = flow->streamed;
	if (flow->is_finished)
		loop_stop(flow->loop);
}

/* However much has arrived, the reader gets at most 256 KiB between two turns of the loop:
 * libcurl reads 100 KiB for a socket that is ready and as much when its timer ends. */
static void test_stream_turns(void **state)
{
	const struct sink_answer answer = {
		.status = 200, .body = "0123456789", .body_repeat = 100000};
	struct fixture *f = *state;
	struct flow flow = {.loop = f->loop};
	struct http_request request = {
		.on_body = take_flow,
		.connect_ns = 60 * NSEC_PER_SEC,
		.total_ns = 600 * NSEC_PER_SEC,
	};
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;
	struct http_call *started;

	f->sink = sink_new(&answer, 1, NULL);
	request.url = sink_url(f->sink);
	assert_int_equal(loop_add_fd(f->loop, fd, EPOLLIN, on_turn, &flow, &turn), 0);
	assert_int_equal(http_start(f->http, &request, flow_finished, &flow, &started), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(flow.streamed, 1000000);
	assert_in_range(flow.most, 1, 256 << 10);
	loop_remove(turn);
	close(fd);
}

static void test_scheme(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call(f, &(struct http_request){.url = "file:///etc/passwd"}).status, 0);
}

static const struct verify_row {
	bool trusted;
	enum http_verify verify;
	long status;
} verify_rows[] = {
	{true, HTTP_VERIFY_ALL, 0},
	{true, HTTP_VERIFY_CHAIN, 200},
	{false, HTTP_VERIFY_CHAIN, 0},
	{false, HTTP_VERIFY_NOTHING, 200},
};

/* Makes the folder from its template, with a server's key and certificate. */
static void make_certificate(char *folder)
{
	char command[512];

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
		 "-nodes "
		 "-subj /CN=%s -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout key.pem "
		 "-out cert.pem 2>/dev/null",
		 folder, strrchr(folder, '/') + 1);
	assert_int_equal(system(command), 0);
}

static void remove_folder(const char *folder)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_tls(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	char folder[] = "/tmp/podprof-http-XXXXXX", ca[64], url[64];
	struct fixture *f = *state;
	struct result result;

	make_certificate(folder);
	f->sink = sink_new(&ok, 1, folder);

	result = call(f, &(struct http_request){0});
	assert_int_equal(result.status, 0);
	assert_non_null(strstr(result.error, "certificate"));
	assert_int_equal(sink_n_requests(f->sink), 0);

	snprintf(ca, sizeof(ca), "%s/cert.pem", folder);
	assert_int_equal(call(f, &(struct http_request){.ca_file = ca}).status, 200);

	/* a name missing from the certificate */
	snprintf(url, sizeof(url), "https://localhost%s", strrchr(sink_url(f->sink), ':'));
	for (size_t i = 0; i < array_size(verify_rows); i++) {
		struct http_request request = {.url = url, .verify = verify_rows[i].verify};

		request.ca_file = verify_rows[i].trusted ? ca : NULL;
		assert_int_equal(call(f, &request).status, verify_rows[i].status);
	}

	remove_folder(folder);
}

/* A mount namespace of this thread: @folder's certificate is in the system's folder of authorities,
 * and the system's file has the one of @other. Returns the namespace of before. */
static int trust_as_system(const char *folder, const char *other)
{
	const int before = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	char command[512];

	assert_true(before >= 0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("certs", "/etc/ssl/certs", "tmpfs", 0, NULL), 0);
	snprintf(command, sizeof(command),
		 "cd /etc/ssl/certs && cp %s/cert.pem ca-certificates.crt && "
		 "cp %s/cert.pem $(openssl x509 -hash -noout -in %s/cert.pem).0",
		 other, folder, folder);
	assert_int_equal(system(command), 0);
	return before;
}

/* A file of authorities takes the place of the system's authorities, those in the folder too, and
 * is read for each connection. */
static void test_tls_authorities(void **state)
{
	static const struct sink_answer ok = {.status = 200};
	char folder[] = "/tmp/podprof-http-XXXXXX", other[] = "/tmp/podprof-http-XXXXXX";
	char ca[64], command[256];
	struct fixture *f = *state;
	int before;

	if (geteuid() != 0)
		skip();
	make_certificate(folder);
	make_certificate(other);
	f->sink = sink_new(&ok, 1, folder);
	before = trust_as_system(folder, other);

	assert_int_equal(call(f, &(struct http_request){0}).status, 200);
	snprintf(ca, sizeof(ca), "%s/cert.pem", other);
	assert_int_equal(call(f, &(struct http_request){.ca_file = ca}).status, 0);
	snprintf(command, sizeof(command), "cp %s/cert.pem %s", folder, ca);
	assert_int_equal(system(command), 0);
	assert_int_equal(call(f, &(struct http_request){.ca_file = ca}).status, 200);

	assert_int_equal(setns(before, CLONE_NEWNS), 0);
	close(before);
	remove_folder(folder);
	remove_folder(other);
}

/* Starts OpenSSL's server on a free port, for one connection, with more options. It agrees to
 * HTTP/2 if the client offers it, but cannot read such a request. */
static FILE *start_openssl_server(const char *folder, const char *more, char *ret_url, size_t size)
{
	char line[512];
	FILE *server;

	snprintf(line, sizeof(line),
		 "cd %s && printf xxxx > file && exec openssl s_server -accept 127.0.0.1:0 -cert "
		 "cert.pem "
		 "-key key.pem -alpn %s -WWW -naccept 1 </dev/null 2>&1",
		 folder, more);
	server = popen(line, "r");
	assert_non_null(server);
	while (fgets(line, sizeof(line), server))
		if (strncmp(line, "ACCEPT ", 7) == 0) {
			snprintf(ret_url, size, "https://%.*s/file", (int)strcspn(line + 7, "\n"),
				 line + 7);
			return server;
		}
	fail_msg("openssl s_server does not start");
	return NULL;
}

/* A reply that is read as it arrives comes by HTTP/1.1, for all servers. */
static void test_stream_version(void **state)
{
	char folder[] = "/tmp/podprof-http-XXXXXX", url[64];
	struct fixture *f = *state;
	struct http_request request = {.url = url, .verify = HTTP_VERIFY_NOTHING, .on_body = take};
	FILE *server;

	make_certificate(folder);
	server = start_openssl_server(folder, "h2,http/1.1", url, sizeof(url));
	assert_int_equal(call(f, &request).status, 200);
	assert_int_equal(pclose(server), 0);
	remove_folder(folder);
}

struct client_row {
	const char *name;
	bool cert, key;
	long status;
};

static const struct client_row client_rows[] = {
	{"certificate and key in one file", true, false, 200},
	{"certificate and key in two files", true, true, 200},
	{"no certificate", false, false, 0},
};

/* A server that asks for a client's certificate. */
static void test_client_certificate(void **state)
{
	char folder[] = "/tmp/podprof-http-XXXXXX", url[64], both[64], cert[64], key[64], line[256];
	struct fixture *f = *state;

	make_certificate(folder);
	snprintf(both, sizeof(both), "%s/both.pem", folder);
	snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
	snprintf(key, sizeof(key), "%s/key.pem", folder);
	snprintf(line, sizeof(line), "cat %s %s > %s", cert, key, both);
	assert_int_equal(system(line), 0);
	for (size_t i = 0; i < array_size(client_rows); i++) {
		const struct client_row *row = &client_rows[i];
		struct http_request request = {.url = url, .ca_file = cert, .on_body = take};
		FILE *server;

		row_begin(row->name);
		server = start_openssl_server(
			folder, "http/1.1 -Verify 1 -verify_return_error -CAfile cert.pem", url,
			sizeof(url));
		request.cert_file = !row->cert ? NULL : row->key ? cert : both;
		request.key_file = row->key ? key : NULL;
		assert_int_equal(call(f, &request).status, row->status);
		(void)pclose(server); /* fails together with the handshake */
	}
	remove_folder(folder);
}

static bool has_request(void *ctx)
{
	return sink_n_requests(ctx) > 0;
}

static void test_cancel(void **state)
{
	static const struct sink_answer hang = {.how = SINK_HANG};
	struct fixture *f = *state;
	struct result result = {0};
	struct http_call *calls[2];
	struct http_request request = {.connect_ns = NSEC_PER_SEC, .total_ns = 30 * NSEC_PER_SEC};

	f->sink = sink_new(&hang, 1, NULL);
	request.url = sink_url(f->sink);
	for (size_t i = 0; i < array_size(calls); i++)
		assert_int_equal(http_start(f->http, &request, finished, &result, &calls[i]), 0);
	loop_until(f->loop, has_request, f->sink);
	http_cancel(calls[0]);
	assert_false(result.done);
	http_cancel(NULL);
	/* http_free() ends the other call. */
}

static int start_and_cancel(void *ctx)
{
	struct fixture *f = ctx;
	struct http_request request = {.url = "http://127.0.0.1:1/", .total_ns = NSEC_PER_SEC};
	struct result result = {0};
	struct http_call *started;
	int r = http_start(f->http, &request, finished, &result, &started);

	if (r == 0)
		http_cancel(started);
	return r;
}

static void test_no_memory(void **state)
{
	allocfail_each(start_and_cancel, *state);
}

static void test_values(void **state)
{
	(void)state;
	assert_true(http_value_ok(""));
	assert_true(http_value_ok("a b~"));
	assert_false(http_value_ok("a\nb"));
	assert_false(http_value_ok("a\r"));
	assert_false(http_value_ok("a\tb"));
	assert_false(http_value_ok("\x7f"));
	assert_false(http_value_ok("\xc3\xa4"));
}

struct header_row {
	const char *line;
	bool ok;
};

static const struct header_row header_rows[] = {
	{"Name: value", true}, {"n:v", true},	      {"X-Api_Key.2:  a: b ", true},
	{"", false},	       {"Name", false},	      {"Name:", false},
	{"Name:   ", false},   {": value", false},    {"Na me: value", false},
	{"Name : v", false},   {"Name: a\nb", false}, {"Name: \xc3\xa4", false},
};

static void test_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(header_rows); i++) {
		row_begin(header_rows[i].line);
		assert_int_equal(http_header_ok(header_rows[i].line), header_rows[i].ok);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_post, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_get_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry_after_date, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scheme, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tls_authorities, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_client_certificate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
