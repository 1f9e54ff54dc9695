// SPDX-License-Identifier: Apache-2.0
/* The server with slow, wrong or many clients. */
#include "support/test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "server/exposition.h"
#include "server/httpd.h"
#include "support/allocfail.h"
#include "support/served.h"
#include "support/timers.h"

struct fixture {
	struct served served;
	struct httpd *httpd;
	const char *address;
	struct httpd_later *kept[HTTPD_PER_ADDRESS_MAX]; /* of /wait */
	_Atomic size_t n_kept;
	uint64_t reading_ns;
};

#define LARGE_BYTES (HTTPD_ANSWERS_MAX / 2 + 1)

/* More than both sockets hold, and no memory for each answer. */
static char unread[8 << 20];

/* Half of what may wait for slow clients, and a byte. */
static void give_large(const struct httpd_request *request, struct httpd_response *ret)
{
	char *to;

	assert_int_equal(buf_reserve(&ret->body, LARGE_BYTES, &to), 0);
	memset(to, 'x', LARGE_BYTES);
	ret->body.len += LARGE_BYTES;
	ret->is_essential = httpd_query(request, "essential");
}

/* Echoes the request. */
static void echo(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	const char *value = httpd_query(request, "q");
	const char *agent = httpd_header(request, "User-Agent");
	struct fixture *f = ctx;

	if (strcmp(httpd_path(request), "/wait") == 0) {
		f->kept[f->n_kept] = httpd_later(request);
		assert_non_null(f->kept[f->n_kept++]);
		return;
	}
	if (strcmp(httpd_path(request), "/fixed") == 0) {
		ret->fixed = unread;
		ret->fixed_len = sizeof(unread);
		return;
	}
	if (strcmp(httpd_path(request), "/large") == 0) {
		give_large(request, ret);
		return;
	}
	ret->content_type = "text/plain; charset=utf-8";
	assert_int_equal(buf_printf(&ret->body, "path=%s q=%s agent=%s", httpd_path(request),
				    value ? value : "(none)", agent ? agent : "(none)"),
			 0);
	strcpy(ret->filename, "a b\"\r\nx: y.txt");
}

static void start(struct fixture *f, unsigned int idle_s, uint64_t header_max_ns,
		  uint64_t answer_max_ns)
{
	struct listen_address address;

	f->n_kept = 0;
	assert_true(listen_parse("127.0.0.1:0", &address));
	served_init(&f->served);
	assert_int_equal(httpd_new(&(struct httpd_opts){.loop = f->served.loop,
							.address = &address,
							.handler = echo,
							.ctx = f,
							.idle_s = idle_s,
							.header_max_ns = header_max_ns,
							.answer_max_ns = answer_max_ns,
							.owing_ns = 1,
							.reading_ns = f->reading_ns},
				   &f->httpd),
			 0);
	f->address = httpd_address(f->httpd);
	served_start(&f->served);
}

static void stop(struct fixture *f)
{
	served_stop(&f->served);
	httpd_free(f->httpd);
	served_deinit(&f->served);
}

/* A request of @n bytes of @fill around @head and @tail. */
static char *long_request(const char *head, char fill, size_t n, const char *tail)
{
	size_t n_head = strlen(head);
	size_t n_tail = strlen(tail);
	char *request = malloc(n_head + n + n_tail + 1);

	assert_non_null(request);
	memcpy(request, head, n_head);
	memset(request + n_head, fill, n);
	memcpy(request + n_head + n, tail, n_tail + 1);
	return request;
}

struct request_row {
	const char *name;
	const char *request;
	const char *status; /* start of the answer; "" for none at all */
	const char *has;    /* contained text; or NULL */
};

#define END "\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static const struct request_row request_rows[] = {
	{"usual", "GET /a?q=1 HTTP/1.1" END, "HTTP/1.1 200", "path=/a q=1 agent=(none)"},
	{"percent-encoded", "GET /%3Cb%3E%20?q=%26+x HTTP/1.1" END, "HTTP/1.1 200",
	 "path=/<b>  q=& x"},
	{"half an escape", "GET /%4?q=%zz HTTP/1.1" END, "HTTP/1.1 200", "path=/%4 q=%zz"},
	{"a NUL in the path ends it", "GET /a%00b HTTP/1.1" END, "HTTP/1.1 200", "path=/a q="},
	{"dots", "GET /../../etc/passwd HTTP/1.1" END, "HTTP/1.1 200", "path=/../../etc/passwd"},
	{"head", "HEAD /a HTTP/1.1" END, "HTTP/1.1 200", "Content-Length: "},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "path=/"},
	{"body with a GET",
	 "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
	 "HTTP/1.1 200", "path=/"},
	{"POST",
	 "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
	 "HTTP/1.1 405", "Allow: GET, HEAD"},
	{"PUT without a body", "PUT / HTTP/1.1" END, "HTTP/1.1 405", NULL},
	{"DELETE", "DELETE / HTTP/1.1" END, "HTTP/1.1 405", NULL},
	{"OPTIONS", "OPTIONS * HTTP/1.1" END, "HTTP/1.1 405", NULL},
	{"CONNECT", "CONNECT evil.example:80 HTTP/1.1" END, "HTTP/1.1 405", NULL},
	{"a method of its own", "BREW / HTTP/1.1" END, "HTTP/1.1 405", NULL},
	{"another host", "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
	 "HTTP/1.1 421", NULL},
	{"a host that starts well",
	 "GET / HTTP/1.1\r\nHost: localhost.evil.example:7070\r\nConnection: close\r\n\r\n",
	 "HTTP/1.1 421", NULL},
	{"an address that starts well",
	 "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\nConnection: close\r\n\r\n",
	 "HTTP/1.1 421", NULL},
	{"IPv6 that starts well",
	 "GET / HTTP/1.1\r\nHost: [::1].evil.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421",
	 NULL},
	{"host with a port", "GET / HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nConnection: close\r\n\r\n",
	 "HTTP/1.1 200", NULL},
	{"IPv6 host", "GET / HTTP/1.1\r\nHost: [::1]:7070\r\nConnection: close\r\n\r\n",
	 "HTTP/1.1 200", NULL},
	{"no host at all", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400", NULL},
	{"not HTTP", "\x16\x03\x01\x02\x01\r\n\r\n", "", NULL},
	{"policy", "GET / HTTP/1.1" END, "HTTP/1.1 200",
	 "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';"},
	{"policy of a refusal", "PUT / HTTP/1.1" END, "HTTP/1.1 405",
	 "X-Content-Type-Options: nosniff\r\n"},
	{"file name", "GET / HTTP/1.1" END, "HTTP/1.1 200",
	 "Content-Disposition: attachment; filename=a_b___x__y.txt\r\n"},
};

static void test_requests(void **state)
{
	struct fixture f = {0};

	(void)state;
	start(&f, 0, 0, 0);
	for (size_t i = 0; i < array_size(request_rows); i++) {
		const struct request_row *row = &request_rows[i];
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);

		row_begin(row->name);
		served_exchange(f.address, row->request, strlen(row->request), &reply);
		assert_memory_equal(reply.data, row->status, strlen(row->status));
		if (row->has)
			assert_non_null(strstr(reply.data, row->has));
	}
	stop(&f);
}

/* Too much of anything is refused with a status, and the server goes on. */
static void test_large(void **state)
{
	static const struct {
		const char *name, *head;
		size_t n;
		const char *tail, *status;
	} rows[] = {
		{"long path that fits", "GET /", 20000, " HTTP/1.1" END, "HTTP/1.1 200"},
		{"too long a path", "GET /", 200000, " HTTP/1.1" END, "HTTP/1.1 414"},
		{"too long a header", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", 200000,
		 "\r\n\r\n", "HTTP/1.1 431"},
		{"too long a name", "GET / HTTP/1.1\r\nHost: localhost\r\n", 200000, ": x\r\n\r\n",
		 "HTTP/1.1 431"},
	};
	struct fixture f = {0};

	(void)state;
	start(&f, 0, 0, 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *request =
			long_request(rows[i].head, 'x', rows[i].n, rows[i].tail);
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);

		row_begin(rows[i].name);
		served_exchange(f.address, request, strlen(request), &reply);
		/* closing with bytes unread may cost the client the answer, never the server */
		if (reply.len)
			assert_memory_equal(reply.data, rows[i].status, strlen(rows[i].status));
		else
			assert_true(rows[i].n == 200000);
	}
	stop(&f);
}

static void test_many_headers(void **state)
{
	static const char *const end = "Connection: close\r\n\r\n";
	_cleanup_(buf_deinit) struct buf request = BUF_INIT(1 << 20);
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f = {0};

	(void)state;
	start(&f, 0, 0, 0);
	assert_int_equal(buf_puts(&request, "GET / HTTP/1.1\r\nHost: localhost\r\n"), 0);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(buf_printf(&request, "X-%d: y\r\n", i), 0);
	assert_int_equal(buf_puts(&request, end), 0);
	served_exchange(f.address, request.data, request.len, &reply);
	if (reply.len)
		assert_memory_equal(reply.data, "HTTP/1.1 431", 12);
	buf_reset(&reply);
	served_exchange(f.address, "GET / HTTP/1.1" END, strlen("GET / HTTP/1.1" END), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	stop(&f);
}

static void collect_one(void *ctx, struct metric_sink *sink)
{
	const struct httpd *const all[] = {ctx};

	httpd_collect(all, 1, sink);
}

static uint64_t number(metric_collect_fn collect, void *ctx, const char *line)
{
	_cleanup_(metric_list_deinit) struct metric_list list = {0};
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(100000);
	struct exposition_stats stats = {0};
	const char *at;

	assert_int_equal(metric_list_add(&list, collect, ctx), 0);
	assert_int_equal(exposition_render(&list, ACCEPT_TEXT, &stats, &page), 0);
	at = strstr(page.data, line);
	assert_non_null(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static const char usual[] = "GET / HTTP/1.1" END;

/* True if the connection is closed without a byte. */
static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

/* Connections without a complete request make room for new connections, the longest-waiting
 * connections first; a new connection is served even so. */
static void test_evicted(void **state)
{
	static const struct {
		const char *name, *sends;
	} rows[] = {
		{"silent", ""},
		{"within the headers", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "},
		{"within a body",
		 "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"},
		{"between two requests", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	};
	int fds[HTTPD_PER_ADDRESS_MAX];
	struct fixture f = {0};
	char byte;

	(void)state;
	for (size_t row = 0; row < array_size(rows); row++) {
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
		size_t n = strlen(rows[row].sends), n_evicted = 0;

		row_begin(rows[row].name);
		start(&f, 0, 0, 0);
		for (size_t i = 0; i < array_size(fds); i++) {
			fds[i] = served_connect(f.address);
			assert_int_equal(send(fds[i], rows[row].sends, n, MSG_NOSIGNAL), n);
			if (row == 3) /* the answer has arrived, so the next request is owed */
				assert_int_equal(recv(fds[i], &byte, 1, MSG_PEEK), 1);
		}
		for (size_t i = 0; i < 3; i++) {
			buf_reset(&reply);
			served_exchange(f.address, usual, strlen(usual), &reply);
			assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
		}
		served_stop(&f.served);
		n_evicted = number(collect_one, f.httpd,
				   "podprof_http_connections_total{outcome=\"evicted\"} ");
		/* a closed connection may not be noticed before the next one */
		assert_true(n_evicted >= 1 && n_evicted <= 3);
		assert_int_equal(number(collect_one, f.httpd,
					"podprof_http_connections_total{outcome=\"per_address\"} "),
				 0);
		if (row != 3)
			assert_true(is_closed(fds[0]));
		httpd_free(f.httpd);
		served_deinit(&f.served);
		for (size_t i = 0; i < array_size(fds); i++)
			close(fds[i]);
	}
}

/* Clients that do not read their answers make room after a while, and not before. */
static void test_unread_evicted(void **state)
{
	static const char request[] = "GET /fixed HTTP/1.1" END;
	static const struct {
		const char *name;
		uint64_t reading_ns;
		uint64_t evicted;
	} rows[] = {{"at once", 60 * NSEC_PER_SEC, 0}, {"after a while", NSEC_PER_MSEC, 1}};

	(void)state;
	for (size_t row = 0; row < array_size(rows); row++) {
		struct fixture f = {.reading_ns = rows[row].reading_ns};
		_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
		int fds[HTTPD_PER_ADDRESS_MAX], size = 4096;
		char byte;

		row_begin(rows[row].name);
		start(&f, 0, 0, 0);
		for (size_t i = 0; i < array_size(fds); i++) {
			fds[i] = served_connect(f.address);
			assert_int_equal(
				setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
			assert_int_equal(send(fds[i], request, strlen(request), MSG_NOSIGNAL),
					 strlen(request));
			assert_int_equal(recv(fds[i], &byte, 1, MSG_PEEK), 1);
		}
		usleep(2000);
		served_exchange(f.address, usual, strlen(usual), &reply);
		served_stop(&f.served);
		assert_int_equal(reply.len != 0, rows[row].evicted);
		assert_int_equal(number(collect_one, f.httpd,
					"podprof_http_connections_total{outcome=\"evicted\"} "),
				 rows[row].evicted);
		assert_int_equal(number(collect_one, f.httpd,
					"podprof_http_connections_total{outcome=\"per_address\"} "),
				 !rows[row].evicted);
		for (size_t i = 0; i < array_size(fds); i++)
			close(fds[i]);
		httpd_free(f.httpd);
		served_deinit(&f.served);
	}
}

/* Connections with requests under way make no room: the limit of one address, and no more; after
 * their end the address may connect again. */
static void test_per_address(void **state)
{
	static const char wait[] = "GET /wait HTTP/1.1" END;
	int fds[HTTPD_PER_ADDRESS_MAX], last;
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f = {0};

	(void)state;
	start(&f, 0, 0, 0);
	for (size_t i = 0; i < array_size(fds); i++) {
		fds[i] = served_connect(f.address);
		assert_int_equal(send(fds[i], wait, strlen(wait), MSG_NOSIGNAL), strlen(wait));
	}
	while (f.n_kept < array_size(fds))
		usleep(1000);
	last = served_connect(f.address);
	assert_true(is_closed(last));
	close(last);
	for (size_t i = 0; i < array_size(fds); i++)
		close(fds[i]);
	/* the closing is seen in time, if not before the next connection */
	while (!reply.len)
		served_exchange(f.address, usual, strlen(usual), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	served_stop(&f.served);
	assert_true(number(collect_one, f.httpd,
			   "podprof_http_connections_total{outcome=\"accepted\"} ") ==
		    HTTPD_PER_ADDRESS_MAX + 1);
	assert_true(number(collect_one, f.httpd,
			   "podprof_http_connections_total{outcome=\"per_address\"} ") >= 1);
	assert_true(number(collect_one, f.httpd,
			   "podprof_http_connections_total{outcome=\"evicted\"} ") == 0);
	assert_true(number(collect_one, f.httpd, "podprof_http_requests_total{code=\"200\"} ") ==
		    1);
	httpd_free(f.httpd);
	for (size_t i = 0; i < f.n_kept; i++) {
		struct httpd_response response = {.status = 200, .body = BUF_INIT(1)};

		httpd_later_answer(f.kept[i], &response);
	}
	served_deinit(&f.served);
}

/* A silent client is dropped after a second. */
static void test_idle(void **state)
{
	struct fixture f = {0};
	char byte;
	int fd;

	(void)state;
	start(&f, 1, 0, 0);
	fd = served_connect(f.address);
	assert_int_equal(send(fd, "GET / HT", 8, MSG_NOSIGNAL), 8);
	/* MHD may send 408 before the close; the connection ends either way */
	while (recv(fd, &byte, 1, 0) > 0)
		;
	close(fd);
	stop(&f);
}

/* A client that sends a byte now and then is never idle; the server closes the connection for its
 * age. */
static void test_drip(void **state)
{
	struct fixture f = {0};
	int fd;

	(void)state;
	start(&f, 30, 300 * NSEC_PER_MSEC, 0);
	fd = served_connect(f.address);
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL), 19);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 20) > 0)
			break;
		if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	served_stop(&f.served);
	assert_true(number(collect_one, f.httpd,
			   "podprof_http_connections_total{outcome=\"expired\"} ") == 1);
	httpd_free(f.httpd);
	served_deinit(&f.served);
}

/* A client that does not read its answer to the end, and is not silent either: it reads a byte now
 * and then. */
static void test_unfinished(void **state)
{
	static const char large[] = "GET /large HTTP/1.1" END;
	int fd, size = 4096;
	struct fixture f = {0};
	char byte;

	(void)state;
	start(&f, 30, 100 * NSEC_PER_MSEC, 300 * NSEC_PER_MSEC);
	fd = served_connect(f.address);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
	assert_int_equal(send(fd, large, strlen(large), MSG_NOSIGNAL), strlen(large));
	while (!timers_armed())
		usleep(1000);
	/* no timer: the server has no client any more, whose end waits behind unread bytes */
	while (timers_armed()) {
		(void)recv(fd, &byte, 1, MSG_DONTWAIT);
		usleep(20000);
	}
	close(fd);
	served_stop(&f.served);
	assert_true(number(collect_one, f.httpd,
			   "podprof_http_connections_total{outcome=\"expired\"} ") == 1);
	httpd_free(f.httpd);
	served_deinit(&f.served);
}

/* The age of connections is checked only while there are some. */
static void test_no_clients(void **state)
{
	struct fixture f = {0};
	int fd;

	(void)state;
	start(&f, 30, 0, 0);
	assert_int_equal(timers_armed(), 0);
	for (int i = 0; i < 2; i++) {
		fd = served_connect(f.address);
		while (!timers_armed())
			usleep(1000);
		close(fd);
		while (timers_armed())
			usleep(1000);
	}
	stop(&f);
}

static void first_bytes(int fd, char ret[13])
{
	ret[12] = '\0';
	assert_int_equal(recv(fd, ret, 12, MSG_WAITALL), 12);
}

/* Clients that do not read cost so much memory and no more; what is essential is still answered. */
static void test_unread(void **state)
{
	static const struct {
		const char *request, *status;
	} rows[] = {
		{"GET /large HTTP/1.1" END, "HTTP/1.1 200"},
		{"GET /large HTTP/1.1" END, "HTTP/1.1 503"},
		{"GET /large?essential=1 HTTP/1.1" END, "HTTP/1.1 200"},
	};
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(2 * (size_t)LARGE_BYTES);
	int fds[array_size(rows)];
	char status[13];
	struct fixture f = {0};

	(void)state;
	start(&f, 0, 0, 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t n = strlen(rows[i].request);

		fds[i] = served_connect(f.address);
		assert_int_equal(send(fds[i], rows[i].request, n, MSG_NOSIGNAL), n);
		first_bytes(fds[i], status);
		assert_string_equal(status, rows[i].status);
	}
	for (size_t i = 0; i < array_size(rows); i++)
		close(fds[i]);
	/* the closing is seen in time, if not before the next request */
	do {
		buf_reset(&reply);
		served_exchange(f.address, rows[0].request, strlen(rows[0].request), &reply);
	} while (memcmp(reply.data, "HTTP/1.1 503", 12) == 0);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	assert_true(reply.len > LARGE_BYTES);
	stop(&f);
}

static int build(void *ctx)
{
	struct listen_address address;
	struct httpd *httpd;
	struct loop *loop;
	int r = loop_new(&loop);

	(void)ctx;
	if (r)
		return r;
	assert_true(listen_parse("127.0.0.1:0", &address));
	r = httpd_new(&(struct httpd_opts){.loop = loop, .address = &address, .handler = echo},
		      &httpd);
	if (!r)
		httpd_free(httpd);
	loop_free(loop);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* the loop, the server, three sources */
	assert_int_equal(allocfail_each(build, NULL), 5);
	httpd_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),       cmocka_unit_test(test_large),
		cmocka_unit_test(test_many_headers),   cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_unread_evicted), cmocka_unit_test(test_per_address),
		cmocka_unit_test(test_unfinished),     cmocka_unit_test(test_idle),
		cmocka_unit_test(test_drip),	       cmocka_unit_test(test_no_clients),
		cmocka_unit_test(test_unread),	       cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
