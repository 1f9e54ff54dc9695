// SPDX-License-Identifier: Apache-2.0
/*
 * The thread has an epoll of its own. Each connection has two descriptors: the client's socket, and
 * after the handshake one end of a pair of sockets. Bytes without room on the other side stay in a
 * block of at most TLS_CHUNK bytes for each direction, and the side that sends them is not read
 * meanwhile. So an idle connection has no block, and a slow one at most two.
 *
 * A turn takes at most TLS_EVENTS_MAX events, and each event little work: one step of a handshake,
 * or four chunks. After a turn the thread pays for the CPU time, asleep. epoll reports ready
 * descriptors in turn, so a client waits at most for one step of each other connection.
 *
 * The end of a client's stream is passed on as such: the server may still answer. The end of the
 * server's stream ends the connection once the client has read everything.
 */
#include "server/tls_front.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "server/listen.h"
#include "server/tls_context.h"

/* Bytes of a step, the most that a TLS record has: SSL_read() then leaves nothing behind that epoll
 * does not report. */
#define TLS_CHUNK      16384
/* Bytes of the server's end that the kernel keeps for the thread; the kernel doubles the number. */
#define TLS_PAIR_BYTES (64 << 10)
/* Events of a turn: the thread pays for the CPU time between two turns. Reached: the others come in
 * the next turn. */
#define TLS_EVENTS_MAX 16
/* Connections accepted, and chunks of a direction, in one turn. */
#define TLS_BATCH      16
#define TLS_CHUNKS     4
#define TLS_OWING_NS   (200 * NSEC_PER_MSEC)
/* The thread looks for its end and for deadlines at least this often while it has connections in
 * their handshake or end. */
#define TLS_SWEEP_MS   500

enum tls_outcome {
	TLS_OK,
	TLS_FAILED,    /* no TLS, no common version, a bad certificate, or the client left */
	TLS_FORBIDDEN, /* no name of client_allowed_sans */
	TLS_EXPIRED,
	TLS_FULL,
	TLS_PER_ADDRESS,
	TLS_EVICTED,
	TLS_OUTCOME_MAX,
};

enum watch_kind { WATCH_WAKE, WATCH_LISTENER, WATCH_CLIENT, WATCH_PAIR };

/* A descriptor in the epoll. */
struct watch {
	enum watch_kind kind;
	int fd;
	uint32_t events;
	void *owner;
};

struct listener {
	struct watch watch;
	tls_accept_fn accept;
	void *ctx;
};

enum conn_state { CONN_HANDSHAKE, CONN_OPEN, CONN_CLOSING, CONN_DEAD };

/* Bytes on their way. */
struct chunk {
	char *data;
	size_t off, len;
};

struct conn {
	struct conn *prev, *next; /* in the list of its state, the oldest first */
	enum conn_state state;
	SSL *ssl;
	struct watch client, pair;
	struct listener *listener;
	/* reading waits for room in the client's socket */
	bool read_wants_write;
	struct sockaddr_storage addr;
	uint64_t since_ns; /* monotonic; of the state */
	uint64_t owing_ns; /* since the client owes bytes of its handshake; 0: not owing */
	struct chunk up;   /* for the server */
	struct chunk down; /* for the client */
	bool client_ended;
	bool server_ended; /* bytes of the server may still be in the pair */
	bool wants_write;  /* TLS waits for room in the client's socket */
};

/* A connection for the loop. */
struct ready {
	struct ready *prev, *next;
	struct listener *listener;
	struct sockaddr_storage addr;
	int fd;
};

struct tls_front {
	struct loop *loop;
	struct loop_source *source;
	int ready_fd; /* wakes the loop */
	pthread_t thread;
	bool is_started;
	uint64_t handshake_max_ns;
	uint64_t closing_max_ns;
	uint64_t owing_ns;
	_Atomic uint64_t outcomes[TLS_OUTCOME_MAX];
	struct listener listeners[TLS_LISTENERS_MAX];
	size_t n_listeners;

	pthread_mutex_t lock; /* guards the next four */
	bool is_ending;
	struct tls_settings fresh; /* for the thread to take; ctx NULL: none */
	struct ready *ready;
	size_t n_ready;

	/* the thread's */
	int epoll_fd;
	struct watch wake;
	struct tls_settings settings;
	struct cpu_share share;
	struct conn *lists[CONN_DEAD + 1];
	size_t n[CONN_DEAD + 1];
	char chunk[TLS_CHUNK];
};

void tls_settings_deinit(struct tls_settings *s)
{
	SSL_CTX_free(s->ctx);
	for (size_t i = 0; i < s->sans.n; i++)
		free(s->sans.items[i]);
	*s = (struct tls_settings){.ctx = NULL};
}

/* ---------------------------------------------------------------- connections */

static void conn_enter(struct tls_front *f, struct conn *c, enum conn_state state)
{
	DL_DELETE(f->lists[c->state], c);
	f->n[c->state]--;
	c->state = state;
	c->since_ns = nsec_monotonic();
	DL_APPEND(f->lists[state], c);
	f->n[state]++;
}

static void watch_close(struct watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->events = 0;
}

/* The memory stays until the end of the turn: an event of its other descriptor may be there. */
static void conn_close(struct tls_front *f, struct conn *c)
{
	if (c->state == CONN_DEAD)
		return;
	watch_close(&c->client);
	watch_close(&c->pair);
	conn_enter(f, c, CONN_DEAD);
}

static void conn_free(struct tls_front *f, struct conn *c)
{
	DL_DELETE(f->lists[c->state], c);
	f->n[c->state]--;
	watch_close(&c->client);
	watch_close(&c->pair);
	SSL_free(c->ssl);
	free(c->up.data);
	free(c->down.data);
	free(c);
}

static void conn_fail(struct tls_front *f, struct conn *c, enum tls_outcome why)
{
	f->outcomes[why]++;
	conn_close(f, c);
}

/* A descriptor without events leaves the epoll, which would report a hang-up again and again. */
static int watch_set(struct tls_front *f, struct watch *w, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = w};
	int op = EPOLL_CTL_MOD;

	if (w->events == events)
		return 0;
	if (!w->events)
		op = EPOLL_CTL_ADD;
	else if (!events)
		op = EPOLL_CTL_DEL;
	if (epoll_ctl(f->epoll_fd, op, w->fd, &event) < 0)
		return -errno;
	w->events = events;
	return 0;
}

/* ---------------------------------------------------------------- open connections */

enum flow {
	FLOW_GOES,
	FLOW_WAITS,
	FLOW_ENDED,
	FLOW_REFUSED, /* the server reads no more */
	FLOW_BROKEN,
};

/* Keeps the rest of @f's chunk. */
static enum flow keep(struct tls_front *f, struct chunk *to, size_t off, size_t n)
{
	to->data = malloc(n - off);
	if (!to->data)
		return FLOW_BROKEN;
	memcpy(to->data, f->chunk + off, n - off);
	to->off = 0;
	to->len = n - off;
	return FLOW_WAITS;
}

/* To the server. FLOW_GOES: *@ret_n bytes. */
static enum flow put_pair(struct conn *c, const char *bytes, size_t n, size_t *ret_n)
{
	ssize_t sent = send(c->pair.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return errno == EAGAIN ? FLOW_WAITS : FLOW_REFUSED;
	*ret_n = (size_t)sent;
	return FLOW_GOES;
}

static enum flow get_pair(struct conn *c, char *bytes, size_t n, size_t *ret_n)
{
	ssize_t got = recv(c->pair.fd, bytes, n, MSG_DONTWAIT);

	/* ECONNRESET: all bytes are read, and the server has closed with some of the client's
	 * unread, as after a request that it refuses */
	if (got < 0 && errno == ECONNRESET)
		return FLOW_ENDED;
	if (got < 0)
		return errno == EAGAIN ? FLOW_WAITS : FLOW_BROKEN;
	*ret_n = (size_t)got;
	return got ? FLOW_GOES : FLOW_ENDED;
}

static enum flow tls_flow(struct conn *c, int r)
{
	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_NONE:
		return FLOW_GOES;
	case SSL_ERROR_WANT_WRITE:
		c->wants_write = true;
		return FLOW_WAITS;
	case SSL_ERROR_WANT_READ:
		return FLOW_WAITS;
	case SSL_ERROR_ZERO_RETURN:
		return FLOW_ENDED;
	default:
		return FLOW_BROKEN;
	}
}

static enum flow put_client(struct conn *c, const char *bytes, size_t n, size_t *ret_n)
{
	ERR_clear_error();
	return tls_flow(c, SSL_write_ex(c->ssl, bytes, n, ret_n));
}

static enum flow get_client(struct conn *c, char *bytes, size_t n, size_t *ret_n)
{
	enum flow flow;

	ERR_clear_error();
	flow = tls_flow(c, SSL_read_ex(c->ssl, bytes, n, ret_n));
	c->read_wants_write = flow == FLOW_WAITS && SSL_want_write(c->ssl);
	return flow;
}

typedef enum flow (*put_fn)(struct conn *c, const char *bytes, size_t n, size_t *ret_n);
typedef enum flow (*get_fn)(struct conn *c, char *bytes, size_t n, size_t *ret_n);

/* The bytes of an earlier turn. FLOW_GOES: all of them. */
static enum flow flow_rest(struct conn *c, put_fn put, struct chunk *rest)
{
	enum flow flow = FLOW_GOES;
	size_t n;

	while (rest->data && (flow = put(c, rest->data + rest->off, rest->len, &n)) == FLOW_GOES) {
		rest->off += n;
		rest->len -= n;
		if (!rest->len) {
			free(rest->data);
			rest->data = NULL;
		}
	}
	return flow;
}

/* One chunk. */
static enum flow flow_chunk(struct tls_front *f, struct conn *c, get_fn get, put_fn put,
			    struct chunk *rest)
{
	size_t n_got = 0, n_put, off = 0;
	enum flow flow = get(c, f->chunk, sizeof(f->chunk), &n_got);

	while (flow == FLOW_GOES && off < n_got) {
		n_put = 0;
		flow = put(c, f->chunk + off, n_got - off, &n_put);
		off += n_put;
		if (flow == FLOW_WAITS)
			return keep(f, rest, off, n_got);
	}
	return flow;
}

static enum flow flow_go(struct tls_front *f, struct conn *c, get_fn get, put_fn put,
			 struct chunk *rest)
{
	enum flow flow = flow_rest(c, put, rest);

	for (int i = 0; flow == FLOW_GOES && i < TLS_CHUNKS; i++)
		flow = flow_chunk(f, c, get, put, rest);
	return flow;
}

/* Says the end to the client, which is not waited for. */
static void conn_end(struct tls_front *f, struct conn *c)
{
	ERR_clear_error();
	(void)SSL_shutdown(c->ssl);
	conn_close(f, c);
}

static void conn_watch(struct tls_front *f, struct conn *c)
{
	uint32_t client = 0, pair = 0;

	/* the answer to a key update may wait for room, before more is read */
	if (!c->client_ended && !c->up.data && !c->read_wants_write)
		client |= EPOLLIN;
	if (c->down.data || c->wants_write)
		client |= EPOLLOUT;
	if (!c->down.data)
		pair |= EPOLLIN;
	else if (!c->server_ended) /* not read now, and its end begins a deadline */
		pair |= EPOLLRDHUP;
	if (c->up.data)
		pair |= EPOLLOUT;
	if (watch_set(f, &c->client, client) || watch_set(f, &c->pair, pair))
		conn_close(f, c);
}

/* The server takes no more bytes. */
static void conn_deafen(struct conn *c)
{
	free(c->up.data);
	c->up.data = NULL;
	c->client_ended = true;
}

/* The server has closed its end: the rest, here and in the pair, is for the client. */
static void conn_closing(struct tls_front *f, struct conn *c)
{
	conn_deafen(c);
	if (f->n[CONN_CLOSING] == TLS_CLOSING_MAX)
		conn_close(f, f->lists[CONN_CLOSING]);
	conn_enter(f, c, CONN_CLOSING);
}

static void conn_flow(struct tls_front *f, struct conn *c)
{
	enum flow up = FLOW_WAITS, down;

	c->wants_write = false;
	if (!c->client_ended)
		up = flow_go(f, c, get_client, put_pair, &c->up);
	else if (c->up.data)
		up = flow_rest(c, put_pair, &c->up);
	if (up == FLOW_ENDED) {
		c->client_ended = true;
		(void)shutdown(c->pair.fd, SHUT_WR);
	}
	if (up == FLOW_REFUSED)
		conn_deafen(c);
	down = flow_go(f, c, get_pair, put_client, &c->down);
	if (down == FLOW_ENDED) {
		conn_end(f, c);
	} else if (up == FLOW_BROKEN || down == FLOW_BROKEN) {
		conn_close(f, c);
	} else {
		if (c->server_ended && c->state == CONN_OPEN)
			conn_closing(f, c);
		conn_watch(f, c);
	}
}

/* ---------------------------------------------------------------- handshakes */

/* 0, or -errno. */
static int pass_on(struct tls_front *f, struct conn *c, int fd)
{
	struct ready *ready = calloc(1, sizeof(*ready));
	int r = 0;

	if (!ready)
		return -ENOMEM;
	*ready = (struct ready){.listener = c->listener, .addr = c->addr, .fd = fd};
	pthread_mutex_lock(&f->lock);
	if (f->n_ready == TLS_READY_MAX) {
		r = -ENOBUFS;
	} else {
		DL_APPEND(f->ready, ready);
		f->n_ready++;
	}
	pthread_mutex_unlock(&f->lock);
	if (r)
		free(ready);
	else
		wakeup_send(f->ready_fd);
	return r;
}

static void conn_open(struct tls_front *f, struct conn *c)
{
	_cleanup_(close_fdp) int theirs = -1;
	const int bytes = TLS_PAIR_BYTES;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
		conn_fail(f, c, TLS_FULL);
		return;
	}
	theirs = fds[1];
	c->pair = (struct watch){.kind = WATCH_PAIR, .fd = fds[0], .owner = c};
	/* on errors more memory of the kernel is in use */
	(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (watch_set(f, &c->pair, EPOLLIN) || pass_on(f, c, theirs)) {
		conn_fail(f, c, TLS_FULL);
		return;
	}
	(void)take_fd(theirs);
	f->outcomes[TLS_OK]++;
	c->owing_ns = 0;
	conn_enter(f, c, CONN_OPEN);
	conn_flow(f, c);
}

/* A line of text for a client that speaks HTTP without TLS. */
static void tell_plain(const struct conn *c)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
				   "Content-Type: text/plain; charset=utf-8\r\n"
				   "Content-Length: 36\r\nConnection: close\r\n\r\n"
				   "this is HTTPS: the address is https\n";

	_Static_assert(sizeof("this is HTTPS: the address is https\n") - 1 == 36, "the length");
	(void)send(c->client.fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void conn_shake(struct tls_front *f, struct conn *c)
{
	enum flow flow;

	ERR_clear_error();
	c->wants_write = false;
	c->owing_ns = 0;
	flow = tls_flow(c, SSL_accept(c->ssl));
	if (flow == FLOW_WAITS) {
		c->owing_ns = nsec_monotonic();
		if (watch_set(f, &c->client, c->wants_write ? EPOLLOUT : EPOLLIN))
			conn_fail(f, c, TLS_FAILED);
	} else if (flow != FLOW_GOES) {
		if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST)
			tell_plain(c);
		conn_fail(f, c, TLS_FAILED);
	} else if (!tls_context_allows(&f->settings.sans, SSL_get0_peer_certificate(c->ssl))) {
		conn_fail(f, c, TLS_FORBIDDEN);
	} else {
		conn_open(f, c);
	}
}

/* The bytes of a client may be there, and the thread has not come to them. */
static bool is_silent(const struct conn *c)
{
	char byte;

	return recv(c->client.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* Room for one more handshake of @addr (NULL: of any client) below @max. */
static bool make_room(struct tls_front *f, const struct sockaddr_storage *addr, size_t max)
{
	/* a crowd of new connections does not keep other addresses out */
	const uint64_t owing_ns = addr ? f->owing_ns : 0, now_ns = nsec_monotonic();
	struct conn *c, *victim = NULL;
	size_t n = 0;

	DL_FOREACH(f->lists[CONN_HANDSHAKE], c)
	{
		if (addr && !listen_same_host((const struct sockaddr *)&c->addr,
					      (const struct sockaddr *)addr))
			continue;
		n++;
		if (!victim && c->owing_ns && now_ns - c->owing_ns >= owing_ns && is_silent(c))
			victim = c;
	}
	if (n < max)
		return true;
	if (victim)
		conn_fail(f, victim, TLS_EVICTED);
	return victim;
}

/* 0; the descriptor is taken. -errno. */
static int conn_new(struct tls_front *f, struct listener *l, int fd,
		    const struct sockaddr_storage *addr)
{
	struct conn *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (!c)
		return r;
	c->listener = l;
	c->addr = *addr;
	c->client = (struct watch){.kind = WATCH_CLIENT, .fd = fd, .owner = c};
	c->pair.fd = -1;
	c->since_ns = nsec_monotonic();
	c->owing_ns = c->since_ns;
	c->ssl = SSL_new(f->settings.ctx);
	if (c->ssl && SSL_set_fd(c->ssl, fd) == 1)
		r = watch_set(f, &c->client, EPOLLIN);
	if (r) {
		SSL_free(c->ssl);
		free(c);
		return r;
	}
	DL_APPEND(f->lists[CONN_HANDSHAKE], c);
	f->n[CONN_HANDSHAKE]++;
	return 0;
}

/* False: there are no more. */
static bool accept_one(struct tls_front *f, struct listener *l)
{
	struct sockaddr_storage addr = {0};
	socklen_t len = sizeof(addr);
	_cleanup_(close_fdp) int fd =
		accept4(l->watch.fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		/* without descriptors the queue stays ready: rest instead of a spin */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			(void)nanosleep(&(struct timespec){.tv_nsec = TLS_PAUSE_MAX_NS}, NULL);
		return false;
	}
	if (!make_room(f, &addr, TLS_PER_ADDRESS_MAX))
		f->outcomes[TLS_PER_ADDRESS]++;
	else if (!make_room(f, NULL, TLS_HANDSHAKES_MAX) || conn_new(f, l, fd, &addr))
		f->outcomes[TLS_FULL]++;
	else
		(void)take_fd(fd);
	return true;
}

static void on_listener(struct tls_front *f, struct listener *l)
{
	for (int i = 0; i < TLS_BATCH && accept_one(f, l); i++)
		;
}

/* ---------------------------------------------------------------- the thread */

/* False: the thread ends. */
static bool take_orders(struct tls_front *f)
{
	struct tls_settings fresh;
	bool is_ending;

	wakeup_take(f->wake.fd);
	pthread_mutex_lock(&f->lock);
	is_ending = f->is_ending;
	fresh = f->fresh;
	f->fresh = (struct tls_settings){.ctx = NULL};
	pthread_mutex_unlock(&f->lock);
	if (fresh.ctx) {
		tls_settings_deinit(&f->settings);
		f->settings = fresh;
	}
	return !is_ending;
}

static void sweep(struct tls_front *f, enum conn_state state, uint64_t max_ns)
{
	const uint64_t now_ns = nsec_monotonic();
	struct conn *c;

	while ((c = f->lists[state]) && now_ns - c->since_ns >= max_ns) {
		if (state == CONN_HANDSHAKE)
			f->outcomes[TLS_EXPIRED]++;
		conn_close(f, c);
	}
}

/* Asleep for as long as keeps work like the last to the share. */
static void pay(struct tls_front *f, uint64_t cpu_ns)
{
	const uint64_t now_ns = nsec_monotonic();
	uint64_t pause_ns = cpu_ns * (TLS_SHARE_PARTS - 1), wait_ns;

	cpu_share_charge(&f->share, now_ns, cpu_ns);
	wait_ns = cpu_share_wait_ns(&f->share, now_ns);
	pause_ns = pause_ns < wait_ns ? pause_ns : wait_ns;
	pause_ns = pause_ns < TLS_PAUSE_MAX_NS ? pause_ns : TLS_PAUSE_MAX_NS;
	if (pause_ns)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
}

static void on_event(struct tls_front *f, struct watch *w, uint32_t events)
{
	struct conn *c = w->owner;

	if (w->kind == WATCH_PAIR && events & (EPOLLRDHUP | EPOLLHUP))
		c->server_ended = true;
	if (w->kind == WATCH_LISTENER)
		on_listener(f, w->owner);
	else if (w->kind == WATCH_WAKE || c->state == CONN_DEAD)
		return;
	else if (c->state == CONN_HANDSHAKE)
		conn_shake(f, c);
	else
		conn_flow(f, c);
}

static void turn(struct tls_front *f)
{
	const bool has_deadline = f->n[CONN_HANDSHAKE] || f->n[CONN_CLOSING];
	struct epoll_event events[TLS_EVENTS_MAX];
	int n = epoll_wait(f->epoll_fd, events, TLS_EVENTS_MAX, has_deadline ? TLS_SWEEP_MS : -1);
	const uint64_t begun_ns = cpu_share_thread_ns();

	for (int i = 0; i < n; i++)
		on_event(f, events[i].data.ptr, events[i].events);
	sweep(f, CONN_HANDSHAKE, f->handshake_max_ns);
	sweep(f, CONN_CLOSING, f->closing_max_ns);
	while (f->lists[CONN_DEAD])
		conn_free(f, f->lists[CONN_DEAD]);
	pay(f, cpu_share_thread_ns() - begun_ns);
}

static void *tls_main(void *arg)
{
	struct tls_front *f = arg;

	while (take_orders(f))
		turn(f);
	OPENSSL_thread_stop();
	return NULL;
}

/* ---------------------------------------------------------------- the loop's side */

static void on_ready(void *ctx, int fd, uint32_t events)
{
	struct tls_front *f = ctx;
	struct ready *ready, *next, *all;

	(void)events;
	wakeup_take(fd);
	pthread_mutex_lock(&f->lock);
	all = f->ready;
	f->ready = NULL;
	f->n_ready = 0;
	pthread_mutex_unlock(&f->lock);
	DL_FOREACH_SAFE(all, ready, next) {
		ready->listener->accept(ready->listener->ctx, ready->fd, &ready->addr);
		free(ready);
	}
}

/* The thread blocks a SIGPIPE of SSL_write(), too. */
static int start(struct tls_front *f)
{
	int r = thread_start("web-tls", tls_main, f, &f->thread);

	f->is_started = !r;
	return r;
}

DEFINE_CLEANUP(struct tls_front *, tls_front_freep, tls_front_free);

int tls_front_new(const struct tls_front_opts *opts, struct tls_settings *settings,
		  struct tls_front **ret)
{
	_cleanup_(tls_front_freep) struct tls_front *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	f->loop = opts->loop;
	f->handshake_max_ns =
		opts->handshake_max_ns ? opts->handshake_max_ns : TLS_HANDSHAKE_MAX_NS;
	f->closing_max_ns = opts->closing_max_ns ? opts->closing_max_ns : TLS_CLOSING_MAX_NS;
	f->owing_ns = opts->owing_ns ? opts->owing_ns : TLS_OWING_NS;
	f->share = (struct cpu_share){.parts = TLS_SHARE_PARTS, .burst_ns = TLS_SHARE_BURST_NS};
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	f->ready_fd = wakeup_open();
	f->wake = (struct watch){.kind = WATCH_WAKE, .fd = wakeup_open()};
	if (f->epoll_fd < 0 || f->ready_fd < 0 || f->wake.fd < 0)
		return -errno;
	r = watch_set(f, &f->wake, EPOLLIN);
	if (!r)
		r = loop_add_fd(f->loop, f->ready_fd, EPOLLIN, on_ready, f, &f->source);
	if (r)
		return r;
	f->settings = *settings;
	r = start(f);
	if (r) {
		f->settings = (struct tls_settings){.ctx = NULL};
		return r;
	}
	*settings = (struct tls_settings){.ctx = NULL};
	*ret = take_ptr(f);
	return 0;
}

int tls_front_listen(struct tls_front *f, int fd, tls_accept_fn accept, void *ctx)
{
	struct listener *l = &f->listeners[f->n_listeners];
	int r;

	if (f->n_listeners == TLS_LISTENERS_MAX)
		return -ENOSPC;
	*l = (struct listener){.accept = accept, .ctx = ctx};
	l->watch = (struct watch){.kind = WATCH_LISTENER, .fd = fd, .owner = l};
	r = watch_set(f, &l->watch, EPOLLIN);
	if (!r)
		f->n_listeners++;
	return r;
}

void tls_front_set(struct tls_front *f, struct tls_settings *settings)
{
	struct tls_settings old;

	pthread_mutex_lock(&f->lock);
	old = f->fresh;
	f->fresh = *settings;
	pthread_mutex_unlock(&f->lock);
	*settings = (struct tls_settings){.ctx = NULL};
	tls_settings_deinit(&old);
	wakeup_send(f->wake.fd);
}

static void stop(struct tls_front *f)
{
	pthread_mutex_lock(&f->lock);
	f->is_ending = true;
	pthread_mutex_unlock(&f->lock);
	wakeup_send(f->wake.fd);
	pthread_join(f->thread, NULL);
}

void tls_front_free(struct tls_front *f)
{
	struct ready *ready, *next;

	if (!f)
		return;
	if (f->is_started)
		stop(f);
	loop_remove(f->source);
	DL_FOREACH_SAFE(f->ready, ready, next) {
		close(ready->fd);
		free(ready);
	}
	for (size_t i = 0; i < array_size(f->lists); i++)
		while (f->lists[i])
			conn_free(f, f->lists[i]);
	for (size_t i = 0; i < f->n_listeners; i++)
		watch_close(&f->listeners[i].watch);
	watch_close(&f->wake);
	close_fdp(&f->ready_fd);
	close_fdp(&f->epoll_fd);
	tls_settings_deinit(&f->settings);
	tls_settings_deinit(&f->fresh);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void tls_front_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc connections = {
		"podprof_http_tls_connections", METRIC_COUNTER,
		"Connections of HTTPS clients by the outcome of their handshake.", NULL};
	static const char *const names[TLS_OUTCOME_MAX] = {
		[TLS_OK] = "ok",
		[TLS_FAILED] = "failed",
		[TLS_FORBIDDEN] = "forbidden",
		[TLS_EXPIRED] = "expired",
		[TLS_FULL] = "full",
		[TLS_PER_ADDRESS] = "per_address",
		[TLS_EVICTED] = "evicted",
	};
	const struct tls_front *f = ctx;
	uint64_t outcomes[TLS_OUTCOME_MAX];

	for (size_t i = 0; i < TLS_OUTCOME_MAX; i++)
		outcomes[i] = atomic_load(&f->outcomes[i]);
	metric_by_name(sink, &connections, "outcome", outcomes, names, TLS_OUTCOME_MAX);
}
