// SPDX-License-Identifier: Apache-2.0
/* The server over TLS and with users, against OpenSSL's client. */
#include "support/test.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/metric.h"
#include "base/nsec.h"
#include "server/basic_auth.h"
#include "server/httpd.h"
#include "server/server.h"
#include "server/tls_context.h"
#include "server/tls_front.h"
#include "server/web_access.h"
#include "support/certificate.h"
#include "support/metrics.h"
#include "support/served.h"
#include "support/tree.h"

/* bcrypt of "secret", of the lowest cost. */
#define HASH	  "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
#define TLS	  "tls_server_config: {cert_file: server.crt, key_file: server.key"
#define GET	  "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
/* "prom:secret", "prom:wrong", "nobody:secret" */
#define RIGHT	  "Authorization: Basic cHJvbTpzZWNyZXQ=\r\n"
#define WRONG	  "Authorization: Basic cHJvbTp3cm9uZw==\r\n"
#define NOBODY	  "Authorization: Basic bm9ib2R5OnNlY3JldA==\r\n"
#define WAIT_MS	  20000
#define RELOAD_NS (5 * NSEC_PER_MSEC)

struct fixture {
	struct served served;
	struct tree dir;
	struct certificate ca, server, client, stranger;
	struct server *http;
	struct metric_list metrics;
	struct health health;
	_Atomic unsigned int n_read; /* changed files in force */
	_Atomic unsigned int n_refused;
	char refusal[WEB_ERROR_MAX];
};

static void on_told(void *ctx, const char *error)
{
	struct fixture *f = ctx;

	if (error) {
		snprintf(f->refusal, sizeof(f->refusal), "%s", error);
		f->n_refused++;
	} else {
		f->n_read++;
	}
}

static void write_config(struct fixture *f, const char *text)
{
	tree_write(f->dir.fd, "web.yml.new", text);
	assert_int_equal(renameat(f->dir.fd, "web.yml.new", f->dir.fd, "web.yml"), 0);
}

static int access_new(struct fixture *f, struct web_access **ret, char error[WEB_ERROR_MAX])
{
	char path[128];
	const struct web_access_opts opts = {.loop = f->served.loop,
					     .path = path,
					     .reload_ns = RELOAD_NS,
					     .told = on_told,
					     .ctx = f};

	snprintf(path, sizeof(path), "%s/web.yml", f->dir.path);
	return web_access_new(&opts, ret, error);
}

static void start(struct fixture *f, const char *config)
{
	struct server_opts opts = {.metrics = &f->metrics, .health = &f->health};
	struct listen_plan plan;
	char error[WEB_ERROR_MAX];
	bool is_ui;

	f->n_read = f->n_refused = 0;
	assert_int_equal(listen_plan("127.0.0.1:0", NULL, &plan), 0);
	opts.addresses = &plan;
	served_init(&f->served);
	opts.loop = f->served.loop;
	write_config(f, config);
	assert_int_equal(access_new(f, &opts.access, error), 0);
	assert_int_equal(server_new(&opts, &is_ui, &f->http), 0);
	assert_int_equal(metric_list_add(&f->metrics, server_collect, f->http), 0);
	served_start(&f->served);
}

static void stop(struct fixture *f)
{
	served_stop(&f->served);
	server_free(f->http);
	metric_list_deinit(&f->metrics);
	served_deinit(&f->served);
}

/* Polls until the thread of the loop has counted. */
static void until(_Atomic unsigned int *count, unsigned int wanted)
{
	for (int i = 0; i < WAIT_MS && *count < wanted; i++)
		(void)poll(NULL, 0, 1);
	assert_true(*count >= wanted);
}

/* ---------------------------------------------------------------- a client */

struct client {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
};

/* @cert: NULL for none. Trusts the fixture's authority alone. False: no handshake. */
static bool client_open_at(struct fixture *f, const char *address, const struct certificate *cert,
			   struct client *c)
{
	c->ctx = SSL_CTX_new(TLS_client_method());
	assert_non_null(c->ctx);
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(c->ctx), f->ca.cert), 1);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
	if (cert) {
		assert_int_equal(SSL_CTX_use_certificate(c->ctx, cert->cert), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey(c->ctx, cert->key), 1);
	}
	c->fd = served_connect(address);
	c->ssl = SSL_new(c->ctx);
	assert_non_null(c->ssl);
	assert_int_equal(SSL_set_fd(c->ssl, c->fd), 1);
	assert_int_equal(SSL_set1_host(c->ssl, "localhost"), 1);
	return SSL_connect(c->ssl) == 1;
}

static bool client_open(struct fixture *f, const struct certificate *cert, struct client *c)
{
	return client_open_at(f, server_address(f->http), cert, c);
}

static void client_close(struct client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	close(c->fd);
	ERR_clear_error();
}

/* The status of the answer, 0 without one; the rest replaces what is in *@ret. */
static int client_ask(struct client *c, const char *request, struct buf *ret)
{
	char *to;
	int n;

	buf_reset(ret);
	if (SSL_write(c->ssl, request, (int)strlen(request)) <= 0)
		return 0;
	do {
		assert_int_equal(buf_reserve(ret, 4096, &to), 0);
		n = SSL_read(c->ssl, to, 4096);
		if (n > 0)
			ret->len += (size_t)n;
	} while (n > 0);
	if (ret->len < 13)
		return 0;
	assert_int_equal(buf_putc(ret, '\0'), 0);
	return atoi(ret->data + strlen("HTTP/1.1 "));
}

static int get(struct fixture *f, const struct certificate *cert, const char *request,
	       struct buf *ret)
{
	struct client c;
	int status = client_open(f, cert, &c) ? client_ask(&c, request, ret) : 0;

	client_close(&c);
	return status;
}

/* ---------------------------------------------------------------- TLS */

struct client_row {
	const char *name;
	const char *config; /* behind TLS */
	int none, own,
		other; /* status without a certificate, with one of the authority, of another */
};

static const struct client_row client_rows[] = {
	{"no certificates", "}\n", 200, 200, 200},
	{"requested", ", client_auth_type: RequestClientCert}\n", 200, 200, 200},
	{"any", ", client_auth_type: RequireAnyClientCert}\n", 0, 200, 200},
	{"verified if given",
	 ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.crt}\n", 200, 200, 0},
	{"verified", ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt}\n", 0,
	 200, 0},
	{"verified, without the issuer of the file's",
	 ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: client.crt}\n", 0, 200,
	 0},
	{"a name",
	 ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt,"
	 " client_allowed_sans: [x, scraper]}\n",
	 0, 200, 0},
	{"an address",
	 ", client_auth_type: RequireAnyClientCert, client_allowed_sans: [10.0.0.1]}\n", 0, 200, 0},
	{"another name",
	 ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.crt,"
	 " client_allowed_sans: [Scraper, 10.0.0.2]}\n",
	 0, 0, 0},
	{"TLS 1.2", ", max_version: TLS12}\n", 200, 200, 200},
	{"one curve and suite",
	 ", curve_preferences: [CurveP384], max_version: TLS12,"
	 " cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]}\n",
	 200, 200, 200},
	{"no suite for the key",
	 ", max_version: TLS12, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]}\n", 0, 0,
	 0},
};

/* A client may change its keys between two bytes of a request: SSL_read() then returns without
 * bytes, and the next ones come with a further event. */
static void check_key_updates(struct fixture *f, int type)
{
	static const char request[] = GET "\r\n";
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct client c;

	assert_true(client_open(f, NULL, &c));
	for (size_t i = 0; i + 1 < sizeof(request) - 1; i++) {
		assert_int_equal(SSL_write(c.ssl, request + i, 1), 1);
		assert_int_equal(SSL_key_update(c.ssl, type), 1);
		assert_int_equal(SSL_do_handshake(c.ssl), 1);
	}
	assert_int_equal(client_ask(&c, "\n", &body), 200);
	client_close(&c);
}

static void test_clients(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct fixture *f = *state;
	char config[512];

	for (size_t i = 0; i < array_size(client_rows); i++) {
		const struct client_row *row = &client_rows[i];

		row_begin(row->name);
		snprintf(config, sizeof(config), TLS "%s", row->config);
		start(f, config);
		assert_int_equal(get(f, NULL, GET "\r\n", &body), row->none);
		assert_int_equal(get(f, &f->client, GET "\r\n", &body), row->own);
		assert_int_equal(get(f, &f->stranger, GET "\r\n", &body), row->other);
		stop(f);
	}
	start(f, TLS "}\n");
	check_key_updates(f, SSL_KEY_UPDATE_NOT_REQUESTED);
	check_key_updates(f, SSL_KEY_UPDATE_REQUESTED);
	stop(f);
}

static void test_plain_text(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct fixture *f = *state;

	start(f, TLS "}\n");
	served_exchange(server_address(f->http), GET "\r\n", strlen(GET "\r\n"), &body);
	assert_int_equal(buf_putc(&body, '\0'), 0);
	assert_non_null(strstr(body.data, "HTTP/1.1 400"));
	assert_non_null(strstr(body.data, "this is HTTPS"));
	stop(f);
}

/* A client with an endless handshake does not keep other clients out, and a crowd of such clients
 * gives up the places to new clients. */
static void test_crowd(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	int fds[TLS_PER_ADDRESS_MAX * 3];
	struct fixture *f = *state;

	start(f, TLS "}\n");
	for (size_t i = 0; i < array_size(fds); i++) {
		fds[i] = served_connect(server_address(f->http));
		if (i % 2)
			assert_int_equal(send(fds[i], "\x16\x03\x01", 3, MSG_NOSIGNAL), 3);
	}
	/* refused until a client of the crowd has sent no bytes for 200 ms */
	for (int i = 0; i < WAIT_MS / 10 && get(f, NULL, GET "\r\n", &body) != 200; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(get(f, NULL, GET "\r\n", &body), 200);
	assert_non_null(
		strstr(body.data, "podprof_http_tls_connections_total{outcome=\"evicted\"}"));
	assert_null(strstr(body.data,
			   "podprof_http_tls_connections_total{outcome=\"per_address\"} 0\n"));
	for (size_t i = 0; i < array_size(fds); i++)
		close(fds[i]);
	stop(f);
}

/* Certificates of expired readings, and errors, change nothing. */
static void test_reload(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct certificate next, other_ca;
	struct fixture *f = *state;
	struct client held;

	certificate_init(&next, "next", "DNS:localhost", &f->ca);
	certificate_init(&other_ca, "other", NULL, NULL);
	start(f, TLS "}\n");
	assert_true(client_open(f, NULL, &held));

	/* the certificate alone does not fit the key */
	tree_write(f->dir.fd, "server.crt", "no certificate\n");
	until(&f->n_refused, 1);
	assert_non_null(strstr(f->refusal, "tls_server_config.cert_file: "));
	assert_int_equal(get(f, NULL, GET "\r\n", &body), 200);

	certificate_write(&next, f->dir.path, "server");
	until(&f->n_read, 1);
	{
		struct client c;
		X509 *cert;

		/* the thread takes new settings at its next turn */
		for (int i = 0;; i++) {
			assert_true(i < WAIT_MS);
			assert_true(client_open(f, NULL, &c));
			cert = SSL_get0_peer_certificate(c.ssl);
			if (X509_cmp(cert, next.cert) == 0)
				break;
			client_close(&c);
		}
		assert_int_equal(client_ask(&c, GET "\r\n", &body), 200);
		client_close(&c);
	}
	/* a connection from before goes on */
	assert_int_equal(client_ask(&held, GET "\r\n", &body), 200);
	client_close(&held);

	f->n_refused = 0;
	write_config(f, "");
	until(&f->n_refused, 1);
	assert_non_null(strstr(f->refusal, "takes a restart"));
	assert_int_equal(get(f, NULL, GET "\r\n", &body), 200);

	stop(f);
	certificate_write(&f->server, f->dir.path, "server");
	certificate_deinit(&next);
	certificate_deinit(&other_ca);
}

/* More than all sockets on the way hold. */
static char large[8 << 20];

static void give_large(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	(void)ctx;
	(void)request;
	ret->content_type = "application/octet-stream";
	ret->fixed = large;
	ret->fixed_len = sizeof(large);
}

/* Reads an answer to its end; returns the bytes of the body, each checked. */
static size_t read_large(struct client *c)
{
	_cleanup_(buf_deinit) struct buf got = BUF_INIT(sizeof(large) + 65536);
	const char *body;
	size_t n;
	char *to;
	int r;

	do {
		assert_int_equal(buf_reserve(&got, 5000, &to), 0);
		r = SSL_read(c->ssl, to, 5000);
		got.len += r > 0 ? (size_t)r : 0;
	} while (r > 0);
	body = got.len ? memmem(got.data, got.len, "\r\n\r\n", 4) : NULL;
	if (!body)
		return 0;
	n = got.len - (size_t)(body + 4 - got.data);
	assert_true(n <= sizeof(large));
	assert_memory_equal(body + 4, large, n);
	return n;
}

/* An answer larger than all buffers arrives whole, also at a client that begins to read after the
 * server has filled all buffers. A client that leaves in the middle ends its own connection. */
static void test_large(void **state)
{
	static const char request[] =
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct fixture *f = *state;
	struct listen_address address;
	struct web_access *access;
	char error[WEB_ERROR_MAX];
	struct httpd *httpd;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)(i * 7 + i / 251);
	served_init(&f->served);
	write_config(f, TLS "}\n");
	assert_int_equal(access_new(f, &access, error), 0);
	assert_true(listen_parse("127.0.0.1:0", &address));
	assert_int_equal(httpd_new(&(struct httpd_opts){.loop = f->served.loop,
							.address = &address,
							.handler = give_large,
							.tls = web_access_tls(access)},
				   &httpd),
			 0);
	served_start(&f->served);
	for (int how = 0; how < 3; how++) {
		struct client c;
		char byte;

		assert_true(client_open_at(f, httpd_address(httpd), NULL, &c));
		assert_int_equal(SSL_write(c.ssl, request, sizeof(request) - 1),
				 sizeof(request) - 1);
		if (how == 1)
			(void)poll(NULL, 0, 100);
		if (how == 2)
			assert_int_equal(SSL_read(c.ssl, &byte, 1), 1);
		else
			assert_int_equal(read_large(&c), sizeof(large));
		client_close(&c);
	}
	served_stop(&f->served);
	web_access_free(access);
	httpd_free(httpd);
	served_deinit(&f->served);
}

/* Descriptors of this process, the server's and the clients'. */
static size_t n_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void front_new(struct fixture *f, struct tls_front **ret)
{
	const struct tls_front_opts opts = {.loop = f->served.loop, .closing_max_ns = RELOAD_NS};
	struct tls_settings settings = {.ctx = NULL};
	struct web_config config;
	char path[128], error[WEB_ERROR_MAX];

	write_config(f, TLS "}\n");
	snprintf(path, sizeof(path), "%s/web.yml", f->dir.path);
	assert_int_equal(web_config_read(path, &config, error), 0);
	assert_int_equal(tls_context_new(&config, &settings.ctx, error), 0);
	web_config_deinit(&config);
	assert_int_equal(tls_front_new(&opts, &settings, ret), 0);
}

/* The server gives up a client that does not read its answer. The front does, too, although it
 * waits for room in the client's socket and cannot read the end of the server's bytes. */
static void test_unread(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct fixture *f = *state;
	struct listen_address address;
	struct tls_front *front;
	struct httpd *httpd;
	struct client c;
	size_t n;

	served_init(&f->served);
	front_new(f, &front);
	assert_true(listen_parse("127.0.0.1:0", &address));
	/* the second is the interval of looking at answers */
	assert_int_equal(httpd_new(&(struct httpd_opts){.loop = f->served.loop,
							.address = &address,
							.handler = give_large,
							.tls = front,
							.header_max_ns = NSEC_PER_SEC,
							.answer_max_ns = 1},
				   &httpd),
			 0);
	served_start(&f->served);
	n = n_open();
	assert_true(client_open_at(f, httpd_address(httpd), NULL, &c));
	(void)SSL_write(c.ssl, request, sizeof(request) - 1);
	for (int i = 0; i < WAIT_MS && n_open() > n + 1; i++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(n_open(), n + 1);
	client_close(&c);
	served_stop(&f->served);
	tls_front_free(front);
	httpd_free(httpd);
	served_deinit(&f->served);
}

/* ---------------------------------------------------------------- users */

struct auth_row {
	const char *request;
	int status;
	const char *has;
};

static const struct auth_row auth_rows[] = {
	{GET "\r\n", 401, "WWW-Authenticate: Basic realm=\"podprof\""},
	{GET "Authorization: Bearer abc\r\n\r\n", 401, "WWW-Authenticate"},
	{GET WRONG "\r\n", 401, "WWW-Authenticate"},
	{GET WRONG "\r\n", 401, "WWW-Authenticate"},
	{GET NOBODY "\r\n", 401, "WWW-Authenticate"},
	{GET RIGHT "\r\n", 200, "podprof_http_auth_total{outcome=\"ok\"} 1\n"},
	{GET RIGHT "\r\n", 200, NULL},
	{"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" RIGHT "\r\n", 404, "no such"},
	{"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401, NULL},
	{"GET /debug/pprof/profile HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401,
	 NULL},
	{"GET //-/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401, NULL},
	{"GET /-/ready/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401, NULL},
	{"GET /-/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 503,
	 "\r\n\r\nnot ready\n"},
	{"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200,
	 "\r\n\r\nhealthy\n"},
	{"POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405, NULL},
	{"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" RIGHT "\r\n", 421,
	 NULL},
};

static void check_auth(struct fixture *f, bool is_tls)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);

	for (size_t i = 0; i < array_size(auth_rows); i++) {
		const struct auth_row *row = &auth_rows[i];
		int status;

		row_begin(row->request);
		if (is_tls) {
			status = get(f, NULL, row->request, &body);
		} else {
			buf_reset(&body);
			served_exchange(server_address(f->http), row->request, strlen(row->request),
					&body);
			assert_int_equal(buf_putc(&body, '\0'), 0);
			status = atoi(body.data + strlen("HTTP/1.1 "));
		}
		assert_int_equal(status, row->status);
		if (row->has)
			assert_non_null(strstr(body.data, row->has));
		if (strstr(row->request, "/-/")) /* no reasons */
			assert_null(strstr(body.data, "secret reason"));
	}
}

/* A right password whose check is under way at the end of the server. */
static void check_end(struct fixture *f)
{
	/* cost 12: the check is not over yet */
	static const char request[] = GET "Authorization: Basic b3RoZXI6c2VjcmV0\r\n\r\n";
	static const char healthy[] =
		"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	int fd;

	start(f, "basic_auth_users: {other: "
		 "$2y$12$abcdefghijklmnopqrstuuT1Iwu6o8Wx7BoOyIMHfgVJq6JO/IJhW}\n");
	fd = served_connect(server_address(f->http));
	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	/* the loop reads the requests in their order */
	served_exchange(server_address(f->http), healthy, sizeof(healthy) - 1, &body);
	assert_memory_equal(body.data, "HTTP/1.1 200", 12);
	stop(f);
	close(fd);
}

static void test_users(void **state)
{
	struct fixture *f = *state;

	for (int is_tls = 0; is_tls < 2; is_tls++) {
		start(f, is_tls ? TLS "}\nbasic_auth_users: {prom: " HASH "}\n"
				: "basic_auth_users: {prom: " HASH "}\n");
		check_auth(f, is_tls);
		stop(f);
	}
	check_end(f);
}

static void test_users_reload(void **state)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	struct fixture *f = *state;

	start(f, TLS "}\nbasic_auth_users: {prom: " HASH "}\n");
	assert_int_equal(get(f, NULL, GET RIGHT "\r\n", &body), 200);
	write_config(f, TLS "}\nbasic_auth_users: {nobody: " HASH "}\n");
	until(&f->n_read, 1);
	/* remembered, and no longer right */
	assert_int_equal(get(f, NULL, GET RIGHT "\r\n", &body), 401);
	assert_int_equal(get(f, NULL, GET NOBODY "\r\n", &body), 200);
	write_config(f, TLS "}\nbasic_auth_users: {nobody: secret}\n");
	until(&f->n_refused, 1);
	assert_int_equal(get(f, NULL, GET NOBODY "\r\n", &body), 200);
	write_config(f, TLS "}\n");
	until(&f->n_refused, 2);
	assert_int_equal(get(f, NULL, GET "\r\n", &body), 401);
	stop(f);
}

/* Each of many new passwords costs a bcrypt: more than a few of one address are put off, and a
 * remembered password is answered meanwhile. */
static void test_flood(void **state)
{
	/* cost 12: a few hundred milliseconds each */
	static const char costly[] =
		"basic_auth_users: {prom: " HASH
		", other: $2y$12$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW}\n";
	static const char ask[] = GET "Authorization: Basic %s\r\n\r\n";
	/* "other:0000" to "other:0007" */
	static const char *const words[] = {
		"b3RoZXI6MDAwMA==", "b3RoZXI6MDAwMQ==", "b3RoZXI6MDAwMg==", "b3RoZXI6MDAwMw==",
		"b3RoZXI6MDAwNA==", "b3RoZXI6MDAwNQ==", "b3RoZXI6MDAwNg==", "b3RoZXI6MDAwNw=="};
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(1u << 20);
	int fds[array_size(words)], n_busy = 0, n_wrong = 0;
	struct fixture *f = *state;

	start(f, costly);
	served_exchange(server_address(f->http), GET RIGHT "\r\n", strlen(GET RIGHT "\r\n"), &body);
	assert_memory_equal(body.data, "HTTP/1.1 200", 12);
	for (size_t i = 0; i < array_size(words); i++) {
		char request[256];
		int n = snprintf(request, sizeof(request), ask, words[i]);

		fds[i] = served_connect(server_address(f->http));
		assert_int_equal(send(fds[i], request, (size_t)n, MSG_NOSIGNAL), n);
	}
	buf_reset(&body);
	served_exchange(server_address(f->http), GET RIGHT "\r\n", strlen(GET RIGHT "\r\n"), &body);
	assert_memory_equal(body.data, "HTTP/1.1 200", 12);
	for (size_t i = 0; i < array_size(words); i++) {
		char answer[2048] = "";
		ssize_t n = recv(fds[i], answer, sizeof(answer) - 1, 0);

		assert_true(n > 12);
		n_wrong += strncmp(answer, "HTTP/1.1 401", 12) == 0;
		n_busy +=
			strncmp(answer, "HTTP/1.1 503", 12) == 0 && strstr(answer, "Retry-After: ");
		close(fds[i]);
	}
	assert_int_equal(n_wrong + n_busy, array_size(words));
	/* on a busy machine the next in the queue waits for too long */
	assert_true(n_wrong > 0);
	assert_true(n_busy > 0);
	stop(f);
}

/* ---------------------------------------------------------------- bad files */

struct file_row {
	const char *config;
	const char *error;
};

static const struct file_row file_rows[] = {
	{"tls_server_config: {cert_file: none, key_file: server.key}\n", "cert_file: "},
	{"tls_server_config: {cert_file: server.crt, key_file: none}\n", "key_file: "},
	{"tls_server_config: {cert_file: server.key, key_file: server.key}\n", "cert_file: "},
	{"tls_server_config: {cert_file: server.crt, key_file: server.crt}\n", "key_file: "},
	{"tls_server_config: {cert_file: server.crt, key_file: client.key}\n", "key_file: "},
	{TLS ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: server.key}\n",
	 "client_ca_file: "},
	{"tls_server_config: {cert_file: ., key_file: server.key}\n", "not a file"},
	{"tls_server_config: {cert: x, key: y}\n", "tls_server_config.cert: "},
	{"", "neither a certificate nor users"},
	{"tls_server_config:\nbasic_auth_users:\n", "neither a certificate nor users"},
	{"http_server_config: {http2: false}\n", "neither a certificate nor users"},
};

static void test_bad_files(void **state)
{
	struct fixture *f = *state;
	struct web_access *access;
	char error[WEB_ERROR_MAX];

	served_init(&f->served);
	for (size_t i = 0; i < array_size(file_rows); i++) {
		row_begin(file_rows[i].config);
		write_config(f, file_rows[i].config);
		assert_true(access_new(f, &access, error) > 0);
		assert_non_null(strstr(error, file_rows[i].error));
	}
	served_deinit(&f->served);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tree_init(&f->dir);
	certificate_init(&f->ca, "authority", NULL, NULL);
	certificate_init(&f->server, "server", "DNS:localhost", &f->ca);
	certificate_init(&f->client, "client", "DNS:scraper,IP:10.0.0.1", &f->ca);
	certificate_init(&f->stranger, "stranger", "DNS:scraper", NULL);
	certificate_write(&f->ca, f->dir.path, "ca");
	certificate_write(&f->server, f->dir.path, "server");
	certificate_write(&f->client, f->dir.path, "client");
	health_set(&f->health, HEALTH_READY, "sampling", false, "secret reason");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tree_deinit(&f->dir);
	certificate_deinit(&f->ca);
	certificate_deinit(&f->server);
	certificate_deinit(&f->client);
	certificate_deinit(&f->stranger);
	free(f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients),	     cmocka_unit_test(test_plain_text),
		cmocka_unit_test(test_crowd),	     cmocka_unit_test(test_reload),
		cmocka_unit_test(test_large),	     cmocka_unit_test(test_users),
		cmocka_unit_test(test_users_reload), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_bad_files),    cmocka_unit_test(test_unread),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* a refused client notices at its first write */
	return cmocka_run_group_tests(tests, setup, teardown);
}
