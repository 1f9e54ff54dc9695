// SPDX-License-Identifier: Apache-2.0
/*
 * libmicrohttpd in its external mode: the loop watches the library's epoll descriptor. When the
 * descriptor is readable, or the library's timeout has passed, MHD_run() does the pending work
 * without blocking.
 *
 * libmicrohttpd closes idle connections, but a connection with a byte now and then is never idle,
 * and the library does not count refused connections. Therefore this file keeps a list of
 * connections: the accept policy counts by address, and a timer shuts down the sockets of
 * connections beyond their time. libmicrohttpd then sees a close by the client.
 *
 * A connection is idle until its request is there: before the first byte, during the TLS handshake
 * and the headers, and between two requests. At a ceiling a new connection evicts an idle
 * connection, or else a connection with a slow reader. So clients that hold connections open, or
 * send or read slowly, do not keep others out. A client that sends its request at once is idle for
 * as long as the loop takes to read it: other connections of its address spare it for a moment.
 *
 * A connection with a later answer is suspended: libmicrohttpd ignores the connection until its
 * resumption, and then requests the answer again. MHD_stop_daemon() requires that no connection is
 * suspended. Meanwhile the loop itself watches the socket for the client's close.
 */
#include "server/httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <microhttpd.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "server/accept.h"
#include "server/gzip.h"
#include "server/tls_front.h"

/* Connections that are shut down and still open for libmicrohttpd, which notices within one turn of
 * the loop. Reached: new clients wait for that turn. */
#define HTTPD_LEAVING_MAX 64
/* Interval of checking the connections' age. */
#define HTTPD_SWEEP_NS	  (5 * NSEC_PER_SEC)
/* Seconds of Retry-After. */
#define HTTPD_RETRY_S	  5

enum connection_outcome {
	CONNECTION_ACCEPTED,
	CONNECTION_FULL,
	CONNECTION_PER_ADDRESS,
	CONNECTION_EXPIRED,
	CONNECTION_EVICTED,
	CONNECTION_OUTCOME_MAX,
};

/* The statuses of this file's answers; libmicrohttpd answers bad requests itself. */
static const unsigned int httpd_statuses[] = {200, 304, 400, 401, 404, 405, 421, 429, 500, 503};
static const char *const httpd_status_names[] = {"200", "304", "400", "401", "404",
						 "405", "421", "429", "500", "503"};

/* What a connection is doing. */
enum client_state {
	CLIENT_IDLE,	  /* the client owes a request */
	CLIENT_WAITING,	  /* for an answer that is being made */
	CLIENT_ANSWERED,  /* the client reads the answer */
	CLIENT_SHUT_DOWN, /* by this file; libmicrohttpd has not noticed yet */
};

/* In a list, the newest connection first. */
struct client {
	struct client *prev, *next;
	struct sockaddr_storage addr;
	int fd;
	enum client_state state;
	uint64_t since_ns; /* monotonic; of the state */
};

/**
 * struct httpd_later - a later answer; lives until both sides have released it
 * @httpd: NULL after the end of the request: the answer is then discarded
 * @held:  not answered yet
 * @is_waiting: the connection is suspended
 * @hangup: watches the socket while @is_waiting; NULL without memory
 * @is_gone: the client has closed the connection
 * @is_allowed: the guard allows the request: the handler is next
 */
struct httpd_later {
	struct httpd_later *prev, *next;
	struct httpd *httpd;
	struct MHD_Connection *connection;
	bool held;
	bool is_waiting;
	bool is_gone;
	bool is_allowed;
	struct loop_source *hangup;
	void (*gone)(void *ctx);
	void *gone_ctx;
	struct httpd_response response;
};

/* A body that libmicrohttpd sends. */
struct answer_body {
	struct httpd *httpd;
	char *data;
	size_t len;
};

struct httpd {
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct loop_source *source;
	struct loop_source *timer; /* when libmicrohttpd wants to be called */
	struct loop_source *sweep; /* armed only while there are clients */
	uint64_t sweep_ns;
	httpd_fn handler;
	httpd_guard_fn guard;
	void *ctx;
	bool loopback;
	uint64_t header_max_ns;
	uint64_t answer_max_ns;
	uint64_t owing_ns;
	uint64_t reading_ns;
	char address[LISTEN_TEXT_MAX];
	struct client *clients;
	size_t n_clients; /* in the list */
	struct httpd_later *laters;
	size_t answer_bytes; /* of generated bodies not yet sent */
	struct cpu_share *share;
	bool is_paused;
	uint64_t connections[CONNECTION_OUTCOME_MAX];
	uint64_t requests[array_size(httpd_statuses)];
};

struct httpd_request {
	struct httpd *httpd;
	struct MHD_Connection *connection;
	const char *path;
	struct httpd_later **later; /* place for the handler's struct httpd_later */
};

/* NULL: the client is not in the list, without memory. */
static struct client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

const char *httpd_path(const struct httpd_request *r)
{
	return r->path;
}

const char *httpd_query(const struct httpd_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* @seen: bits of the names */
struct odd_search {
	const char *const *names;
	uint64_t seen;
	const char *found;
};

static enum MHD_Result on_parameter(void *ctx, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	struct odd_search *search = ctx;
	size_t i = 0;

	(void)kind;
	while (search->names[i] && strcmp(search->names[i], key) != 0)
		i++;
	if (!value || !search->names[i] || search->seen & 1ull << i)
		search->found = key;
	search->seen |= 1ull << i;
	return search->found ? MHD_NO : MHD_YES;
}

const char *httpd_query_odd(const struct httpd_request *r, const char *const names[])
{
	struct odd_search search = {.names = names};

	(void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, on_parameter,
					&search);
	return search.found;
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

bool httpd_accepts_gzip(const struct httpd_request *r)
{
	return accept_gzip(httpd_header(r, "Accept-Encoding"));
}

void httpd_client(const struct httpd_request *r, struct sockaddr_storage *ret)
{
	const struct client *c = client_of(r->connection);

	*ret = c ? c->addr : (struct sockaddr_storage){.ss_family = AF_UNSPEC};
}

void httpd_fail(struct httpd_response *ret, unsigned int status, const char *text)
{
	buf_reset(&ret->body);
	ret->fixed = NULL;
	ret->fixed_len = 0;
	ret->etag = NULL;
	ret->filename[0] = '\0';
	ret->is_gzip = false;
	ret->is_challenge = false;
	ret->retry_after_s = 0;
	ret->status = status;
	ret->content_type = "text/plain; charset=utf-8";
	/* without memory the status must suffice */
	if (buf_printf(&ret->body, "%s\n", text))
		buf_reset(&ret->body);
}

static void client_enter(struct client *c, enum client_state state)
{
	if (!c || c->state == CLIENT_SHUT_DOWN)
		return;
	c->state = state;
	c->since_ns = nsec_monotonic();
}

/* ---------------------------------------------------------------- answers */

static void count_status(struct httpd *h, unsigned int status)
{
	for (size_t i = 0; i < array_size(httpd_statuses); i++)
		if (httpd_statuses[i] == status)
			h->requests[i]++;
}

int httpd_compress(struct httpd_response *response)
{
	_cleanup_(buf_deinit) struct buf packed = BUF_INIT(HTTPD_BODY_MAX);
	int r = gzip_append(response->body.data, response->body.len, &packed);

	if (r)
		return r;
	buf_deinit(&response->body);
	response->body = packed;
	packed = (struct buf)BUF_INIT(HTTPD_BODY_MAX);
	response->is_gzip = true;
	return 0;
}

/* "attachment; filename=..." with only characters that need no quotes. */
static void put_filename(struct MHD_Response *to, const char *filename)
{
	char value[HTTPD_FILENAME_MAX + 32] = "attachment; filename=";
	size_t n = strlen(value);

	for (; *filename && n + 1 < sizeof(value); filename++) {
		bool plain = (*filename >= 'a' && *filename <= 'z') ||
			     (*filename >= 'A' && *filename <= 'Z') ||
			     (*filename >= '0' && *filename <= '9') || strchr("._-", *filename);

		value[n++] = (char)(plain ? *filename : '_');
	}
	value[n] = '\0';
	MHD_add_response_header(to, "Content-Disposition", value);
}

/* Forbids resources from elsewhere, frames of other pages, and guesses of the content type. */
static void put_headers(struct MHD_Response *to, const struct httpd_response *response)
{
	static const char *const always[][2] = {
		{"Content-Security-Policy",
		 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
		 "connect-src 'self'; base-uri 'none'; form-action 'self'; "
		 "frame-ancestors 'none'"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
	};

	for (size_t i = 0; i < array_size(always); i++)
		MHD_add_response_header(to, always[i][0], always[i][1]);
	if (response->content_type)
		MHD_add_response_header(to, "Content-Type", response->content_type);
	if (response->etag)
		MHD_add_response_header(to, "ETag", response->etag);
	MHD_add_response_header(to, "Cache-Control", response->etag ? "no-cache" : "no-store");
	if (*response->filename)
		put_filename(to, response->filename);
	if (response->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(to, "Allow", "GET, HEAD");
	if (response->is_challenge)
		MHD_add_response_header(to, "WWW-Authenticate",
					"Basic realm=\"podprof\", charset=\"UTF-8\"");
	if (response->retry_after_s) {
		char seconds[16];

		snprintf(seconds, sizeof(seconds), "%u", response->retry_after_s);
		MHD_add_response_header(to, "Retry-After", seconds);
	}
	if (response->compress || response->is_gzip)
		MHD_add_response_header(to, "Vary", "Accept, Accept-Encoding");
}

static void body_sent(void *cls)
{
	_cleanup_(freep) struct answer_body *body = cls;

	body->httpd->answer_bytes -= body->len;
	free(body->data);
}

static struct MHD_Response *make_response(struct httpd *h, struct httpd_response *response)
{
	_cleanup_(freep) struct answer_body *body = NULL;
	struct MHD_Response *to;

	/* libmicrohttpd takes pointers to non-const and leaves persistent bytes alone */
	if (response->fixed)
		return MHD_create_response_from_buffer(response->fixed_len, (void *)response->fixed,
						       MHD_RESPMEM_PERSISTENT);
	if (!response->body.len)
		return MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	body = calloc(1, sizeof(*body));
	if (!body)
		return NULL;
	*body = (struct answer_body){h, response->body.data, response->body.len};
	to = MHD_create_response_from_buffer_with_free_callback_cls(body->len, body->data,
								    body_sent, body);
	if (!to)
		return NULL;
	h->answer_bytes += body->len;
	(void)take_ptr(body);
	(void)buf_take(&response->body);
	return to;
}

_Static_assert(HTTPD_BODY_MAX <= HTTPD_ANSWERS_MAX, "an answer has room if no other waits");

static enum MHD_Result answer(struct httpd *h, const struct httpd_request *request,
			      struct httpd_response *response)
{
	const char *known = httpd_header(request, "If-None-Match");
	struct MHD_Response *to;
	enum MHD_Result result;

	if (response->etag && known && strcmp(known, response->etag) == 0) {
		response->status = MHD_HTTP_NOT_MODIFIED;
		response->fixed = NULL;
		buf_reset(&response->body);
	}
	/* without memory the body is sent as it is */
	if (!response->is_gzip && response->compress && response->body.len &&
	    httpd_accepts_gzip(request))
		(void)httpd_compress(response);
	if (!response->is_essential && response->body.len &&
	    h->answer_bytes + response->body.len > HTTPD_ANSWERS_MAX) {
		httpd_fail(response, MHD_HTTP_SERVICE_UNAVAILABLE,
			   "other clients have not read their answers yet, come again later");
		response->retry_after_s = HTTPD_RETRY_S;
	}
	to = make_response(h, response);
	if (!to)
		return MHD_NO;
	put_headers(to, response);
	if (response->is_gzip)
		MHD_add_response_header(to, "Content-Encoding", "gzip");
	client_enter(client_of(request->connection), CLIENT_ANSWERED);
	result = MHD_queue_response(request->connection, response->status, to);
	MHD_destroy_response(to);
	count_status(h, response->status);
	return result;
}

/* ---- later answers */

struct httpd_later *httpd_later(const struct httpd_request *r)
{
	struct httpd_later *later = *r->later ? NULL : calloc(1, sizeof(*later));

	if (!later)
		return NULL;
	later->httpd = r->httpd;
	later->connection = r->connection;
	later->held = true;
	later->response.body = (struct buf)BUF_INIT(HTTPD_BODY_MAX);
	later->next = r->httpd->laters;
	if (later->next)
		later->next->prev = later;
	r->httpd->laters = later;
	*r->later = later;
	return later;
}

static void later_free(struct httpd_later *later)
{
	buf_deinit(&later->response.body);
	free(later);
}

/* The request is over. */
static void later_detach(struct httpd_later *later)
{
	struct httpd *h = later->httpd;

	if (later->prev)
		later->prev->next = later->next;
	else
		h->laters = later->next;
	if (later->next)
		later->next->prev = later->prev;
	later->httpd = NULL;
	if (!later->held)
		later_free(later);
}

static void later_resume(struct httpd_later *later)
{
	loop_remove(later->hangup);
	later->hangup = NULL;
	if (later->is_waiting)
		MHD_resume_connection(later->connection);
	later->is_waiting = false;
}

static void httpd_pump(struct httpd *h);

/* The holder has answered. */
static void later_release(struct httpd_later *later)
{
	bool was_waiting = later->is_waiting;
	struct httpd *h = later->httpd;

	later->held = false;
	if (!h) {
		later_free(later);
		return;
	}
	later_resume(later);
	if (was_waiting)
		httpd_pump(h);
}

void httpd_later_answer(struct httpd_later *later, struct httpd_response *response)
{
	buf_deinit(&later->response.body);
	later->response = *response;
	response->body = (struct buf)BUF_INIT(HTTPD_BODY_MAX);
	later_release(later);
}

void httpd_later_allow(struct httpd_later *later)
{
	later->is_allowed = true;
	later_release(later);
}

void httpd_later_on_gone(struct httpd_later *later, void (*gone)(void *ctx), void *ctx)
{
	later->gone = gone;
	later->gone_ctx = ctx;
}

/* The resumed connection is then closed by on_request(). */
static void on_hangup(void *ctx, int fd, uint32_t events)
{
	struct httpd_later *later = ctx;
	struct httpd *h = later->httpd;

	(void)fd;
	(void)events;
	later->is_gone = true;
	if (later->gone)
		later->gone(later->gone_ctx);
	later_resume(later);
	httpd_pump(h);
}

static void later_suspend(struct httpd_later *later)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(later->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	later->is_waiting = true;
	MHD_suspend_connection(later->connection);
	/* without memory the job of a client that has gone runs to its end */
	if (info)
		(void)loop_add_fd(later->httpd->loop, info->connect_fd, EPOLLRDHUP, on_hangup,
				  later, &later->hangup);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	(void)code;
	client_enter(client_of(connection), CLIENT_IDLE);
	if (*state && *state != ctx)
		later_detach(take_ptr(*state));
}

/* ---------------------------------------------------------------- requests */

/* Whether a Host header names this machine's loopback: "localhost", 127.x.y.z or [::1], with or
 * without a port. */
static bool host_is_loopback(const char *host)
{
	struct strview t = strview_of(host), name;
	struct in_addr in;
	char addr[INET_ADDRSTRLEN];

	if (strview_prefix(&t, "[::1]"))
		return strview_empty(&t) || *t.p == ':';
	if (!strview_until(&t, ':', &name))
		return false;
	if (strview_is(&name, "localhost"))
		return true;
	if (strview_len(&name) >= sizeof(addr))
		return false;
	snprintf(addr, sizeof(addr), "%.*s", (int)strview_len(&name), name.p);
	return inet_pton(AF_INET, addr, &in) == 1 && ntohl(in.s_addr) >> 24 == 127;
}

/* @is_allowed: by the guard, earlier. */
static void handle(struct httpd *h, const struct httpd_request *request, const char *method,
		   bool is_allowed, struct httpd_response *response)
{
	const char *host = httpd_header(request, "Host");

	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		httpd_fail(response, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
	else if (h->loopback && host && !host_is_loopback(host))
		httpd_fail(response, MHD_HTTP_MISDIRECTED_REQUEST,
			   "this server listens on loopback and answers to that name only");
	else if (is_allowed || !h->guard ||
		 h->guard(h->ctx, request, response) == HTTPD_GUARD_ALLOW)
		h->handler(h->ctx, request, response);
}

/* The handler's answer, or none yet. */
static enum MHD_Result ask_handler(struct httpd *h, struct httpd_request *request,
				   const char *method, bool is_allowed,
				   struct httpd_later **ret_later)
{
	struct httpd_response response = {.status = MHD_HTTP_OK, .body = BUF_INIT(HTTPD_BODY_MAX)};
	enum MHD_Result result = MHD_YES;

	handle(h, request, method, is_allowed, &response);
	if (!*ret_later)
		result = answer(h, request, &response);
	buf_deinit(&response.body);
	return result;
}

/* libmicrohttpd calls this first with the headers, then with the body in pieces, then once more. No
 * body is accepted: a GET waits for the second call, and other requests are refused at once. The
 * state distinguishes the calls: nothing, the server itself, a later answer. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *n_upload, void **state)
{
	struct httpd *h = ctx;
	struct httpd_later *later = *state == h ? NULL : *state;
	struct httpd_request request = {h, connection, url, &later};
	const bool is_allowed = later && later->is_allowed && !later->is_gone;
	enum MHD_Result result = MHD_YES;

	(void)version;
	(void)upload;
	if (!*state && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)) {
		*state = h;
		return MHD_YES;
	}
	if (*n_upload) {
		*n_upload = 0;
		return MHD_YES;
	}
	if (is_allowed) { /* the handler may want an answer of its own later */
		later_detach(take_ptr(later));
		*state = h;
	}
	if (!later) {
		client_enter(client_of(connection), CLIENT_WAITING);
		result = ask_handler(h, &request, method, is_allowed, &later);
		if (later)
			*state = later;
	}
	if (later && later->is_gone) {
		result = MHD_NO;
	} else if (later && later->held) {
		later_suspend(later);
	} else if (later) {
		result = answer(h, &request, &later->response);
	}
	return result;
}

/* ---------------------------------------------------------------- connections */

static void client_shut_down(struct httpd *h, struct client *c, enum connection_outcome why)
{
	client_enter(c, CLIENT_SHUT_DOWN);
	h->connections[why]++;
	(void)shutdown(c->fd, SHUT_RDWR);
}

/* Whether a new client may rather take the place of @c than of @than (NULL: of none). */
static bool goes_before(const struct httpd *h, const struct client *c, const struct client *than,
			uint64_t owing_ns, uint64_t now_ns)
{
	const uint64_t patience_ns = c->state == CLIENT_IDLE ? owing_ns : h->reading_ns;

	if ((c->state != CLIENT_IDLE && c->state != CLIENT_ANSWERED) ||
	    now_ns - c->since_ns < patience_ns)
		return false;
	if (!than || c->state != than->state)
		return !than || c->state == CLIENT_IDLE;
	return c->since_ns < than->since_ns;
}

/* Makes room for one more connection of @addr (NULL: of any client) below @max. */
static bool make_room(struct httpd *h, const struct sockaddr *addr, size_t max)
{
	/* a crowd of new connections does not keep other addresses out */
	const uint64_t owing_ns = addr ? h->owing_ns : 0, now_ns = nsec_monotonic();
	struct client *victim = NULL;
	size_t n = 0;

	for (struct client *c = h->clients; c; c = c->next) {
		if (c->state == CLIENT_SHUT_DOWN ||
		    (addr && !listen_same_host((const struct sockaddr *)&c->addr, addr)))
			continue;
		n++;
		if (goes_before(h, c, victim, owing_ns, now_ns))
			victim = c;
	}
	if (n < max)
		return true;
	if (victim)
		client_shut_down(h, victim, CONNECTION_EVICTED);
	return victim;
}

static enum MHD_Result on_accept(void *ctx, const struct sockaddr *addr, socklen_t len)
{
	struct httpd *h = ctx;
	enum connection_outcome outcome = CONNECTION_ACCEPTED;

	(void)len;
	if (!make_room(h, addr, HTTPD_PER_ADDRESS_MAX))
		outcome = CONNECTION_PER_ADDRESS;
	else if (!make_room(h, NULL, HTTPD_CONNECTIONS_MAX))
		outcome = CONNECTION_FULL;
	h->connections[outcome]++;
	return outcome == CONNECTION_ACCEPTED ? MHD_YES : MHD_NO;
}

static void client_add(struct httpd *h, struct MHD_Connection *connection, void **ret)
{
	const union MHD_ConnectionInfo *info;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return; /* the connection is served, with libmicrohttpd's own limit */
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	c->fd = info ? info->connect_fd : -1;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (info && info->client_addr)
		memcpy(&c->addr, info->client_addr,
		       info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								: sizeof(struct sockaddr_in));
	c->since_ns = nsec_monotonic();
	c->next = h->clients;
	if (c->next)
		c->next->prev = c;
	h->clients = c;
	if (h->n_clients++ == 0)
		(void)loop_arm(h->sweep, h->sweep_ns, h->sweep_ns); /* cannot fail */
	*ret = c;
}

static void client_remove(struct httpd *h, struct client *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		h->clients = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (--h->n_clients == 0)
		(void)loop_disarm(h->sweep);
	free(c);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct httpd *h = ctx;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		client_add(h, connection, state);
	else if (*state)
		client_remove(h, take_ptr(*state));
}

static void on_sweep(void *ctx)
{
	struct httpd *h = ctx;
	uint64_t now = nsec_monotonic();

	for (struct client *c = h->clients; c; c = c->next) {
		if ((c->state == CLIENT_IDLE && now - c->since_ns >= h->header_max_ns) ||
		    (c->state == CLIENT_ANSWERED && now - c->since_ns >= h->answer_max_ns))
			client_shut_down(h, c, CONNECTION_EXPIRED);
	}
}

/* ---------------------------------------------------------------- the daemon */

/* Charges the share of CPU time. In debt, the pause that keeps work like the last to the share. */
static uint64_t httpd_charge(struct httpd *h, uint64_t cpu_ns)
{
	uint64_t now_ns = nsec_monotonic(), pause_ns, wait_ns;

	cpu_share_charge(h->share, now_ns, cpu_ns);
	wait_ns = cpu_share_wait_ns(h->share, now_ns);
	pause_ns = cpu_ns * (h->share->parts - 1);
	pause_ns = pause_ns < wait_ns ? pause_ns : wait_ns;
	return pause_ns < HTTPD_PAUSE_MAX_NS ? pause_ns : HTTPD_PAUSE_MAX_NS;
}

/* During a pause only the timer calls httpd_pump(). */
static void httpd_set_paused(struct httpd *h, bool paused)
{
	if (h->is_paused != paused && loop_change_fd(h->source, paused ? 0 : EPOLLIN) == 0)
		h->is_paused = paused;
}

static void httpd_pump(struct httpd *h)
{
	uint64_t cpu_ns = h->share ? cpu_share_thread_ns() : 0, pause_ns = 0;
	MHD_UNSIGNED_LONG_LONG wait_ms;

	(void)MHD_run(h->daemon);
	if (h->share)
		pause_ns = httpd_charge(h, cpu_share_thread_ns() - cpu_ns);
	httpd_set_paused(h, pause_ns && loop_arm(h->timer, pause_ns, 0) == 0);
	if (h->is_paused)
		return;
	if (MHD_get_timeout(h->daemon, &wait_ms) == MHD_YES)
		(void)loop_arm(h->timer, wait_ms * NSEC_PER_MSEC, 0);
	else
		(void)loop_disarm(h->timer);
}

static void on_ready(void *ctx, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	httpd_pump(ctx);
}

static void on_timer(void *ctx)
{
	httpd_pump(ctx);
}

/* Takes @fd. A front accepts the connections itself and adds them one by one. The sizes are int or
 * unsigned int as each option wants. */
static struct MHD_Daemon *start_daemon(struct httpd *h, int fd, bool has_front, unsigned int idle_s)
{
	const struct MHD_OptionItem listen[] = {
		{has_front ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, fd, NULL},
		{MHD_OPTION_END, 0, NULL},
	};

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
					(has_front ? MHD_USE_NO_LISTEN_SOCKET : 0),
				0, on_accept, h, on_request, h, MHD_OPTION_ARRAY, listen,
				MHD_OPTION_CONNECTION_LIMIT,
				(unsigned int)HTTPD_CONNECTIONS_MAX + HTTPD_LEAVING_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, idle_s ? idle_s : HTTPD_IDLE_S,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTPD_REQUEST_MAX,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

static int watch(struct httpd *h, struct loop *loop)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info)
		return -EINVAL;
	h->sweep_ns = h->header_max_ns < HTTPD_SWEEP_NS ? h->header_max_ns : HTTPD_SWEEP_NS;
	r = loop_add_timer(loop, on_timer, h, &h->timer);
	if (!r)
		r = loop_add_timer(loop, on_sweep, h, &h->sweep);
	if (!r)
		r = loop_add_fd(loop, info->epoll_fd, EPOLLIN, on_ready, h, &h->source);
	return r;
}

/* The front's connection: libmicrohttpd takes the descriptor in any case. */
static void on_decrypted(void *ctx, int fd, const struct sockaddr_storage *addr)
{
	struct httpd *h = ctx;
	const socklen_t len = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							  : sizeof(struct sockaddr_in);

	(void)MHD_add_connection(h->daemon, fd, (const struct sockaddr *)addr, len);
	if (!h->is_paused)
		httpd_pump(h);
}

DEFINE_CLEANUP(struct httpd *, httpd_freep, httpd_free);

int httpd_new(const struct httpd_opts *opts, struct httpd **ret)
{
	_cleanup_(httpd_freep) struct httpd *h = calloc(1, sizeof(*h));
	_cleanup_(close_fdp) int fd = -1;
	int r;

	if (!h)
		return -ENOMEM;
	r = listen_open(opts->address, &fd);
	if (r)
		return r;
	listen_text(fd, h->address);
	h->loop = opts->loop;
	h->share = opts->share;
	h->handler = opts->handler;
	h->guard = opts->guard;
	h->ctx = opts->ctx;
	h->loopback = listen_is_loopback(opts->address);
	h->header_max_ns = opts->header_max_ns ? opts->header_max_ns : HTTPD_HEADER_MAX_NS;
	h->answer_max_ns = opts->answer_max_ns ? opts->answer_max_ns : HTTPD_ANSWER_MAX_NS;
	h->owing_ns = opts->owing_ns ? opts->owing_ns : HTTPD_OWING_NS;
	h->reading_ns = opts->reading_ns ? opts->reading_ns : HTTPD_READING_NS;
	h->daemon = start_daemon(h, fd, opts->tls, opts->idle_s);
	if (!h->daemon)
		return -ENOMEM;
	if (!opts->tls)
		(void)take_fd(fd);
	r = watch(h, opts->loop);
	if (!r && opts->tls)
		r = tls_front_listen(opts->tls, fd, on_decrypted, h);
	if (!r && opts->tls)
		(void)take_fd(fd);
	if (r)
		return r;
	*ret = take_ptr(h);
	return 0;
}

void httpd_free(struct httpd *h)
{
	if (!h)
		return;
	loop_remove(h->source);
	loop_remove(h->timer);
	for (struct httpd_later *later = h->laters; later; later = later->next)
		later_resume(later);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	loop_remove(h->sweep); /* the last clients disarm the timer */
	free(h);
}

const char *httpd_address(const struct httpd *h)
{
	return h->address;
}

void httpd_collect(const struct httpd *const all[], size_t n, struct metric_sink *sink)
{
	static const struct metric_family_desc requests = {"podprof_http_requests", METRIC_COUNTER,
							   "HTTP requests answered, by status.",
							   NULL};
	static const struct metric_family_desc connections = {
		"podprof_http_connections", METRIC_COUNTER,
		"HTTP connections by outcome; expired and evicted ones were accepted first.", NULL};
	static const struct metric_family_desc open = {
		"podprof_http_open_connections", METRIC_GAUGE, "Open HTTP connections.", NULL};
	static const char *const outcomes[CONNECTION_OUTCOME_MAX] = {
		[CONNECTION_ACCEPTED] = "accepted",	  [CONNECTION_FULL] = "full",
		[CONNECTION_PER_ADDRESS] = "per_address", [CONNECTION_EXPIRED] = "expired",
		[CONNECTION_EVICTED] = "evicted",
	};
	struct httpd sum = {.n_clients = 0};

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < array_size(sum.requests); j++)
			sum.requests[j] += all[i]->requests[j];
		for (size_t j = 0; j < array_size(sum.connections); j++)
			sum.connections[j] += all[i]->connections[j];
		sum.n_clients += all[i]->n_clients;
	}

	metric_by_name(sink, &requests, "code", sum.requests, httpd_status_names,
		       array_size(httpd_statuses));
	metric_by_name(sink, &connections, "outcome", sum.connections, outcomes,
		       CONNECTION_OUTCOME_MAX);
	metric_family(sink, &open);
	metric_u64(sink, sum.n_clients, NULL, 0);
}
