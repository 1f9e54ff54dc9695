/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_HTTPD_H
#define PODPROF_SERVER_HTTPD_H

/*
 * The HTTP server: connections, limits, and the headers of every answer. A handler makes the
 * answers. The server accepts GET and HEAD only, changes nothing, and runs on the loop.
 *
 * On a loopback address a request's Host header, if any, must also name a loopback address or
 * "localhost"; else the answer is 421. Otherwise any web page opened by the node's user could point
 * a name of its own to 127.0.0.1 and read profiles through the user's browser.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/nsec.h"
#include "server/listen.h"

struct cpu_share;
struct httpd;
struct httpd_later;
struct httpd_request;
struct loop;
struct metric_sink;
struct tls_front;

/* Connections at a time, some 40 KiB each. Reached: a new connection evicts the connection with the
 * longest wait for its request, or else the one with the slowest reader,
 * `podprof_http_connections_total{outcome="evicted"}`; without such a connection the new one is
 * closed, `{outcome="full"}`. */
#define HTTPD_CONNECTIONS_MAX 128
/* Connections of one client's address. Reached: the same among these, or
 * `podprof_http_connections_total{outcome="per_address"}`. */
#define HTTPD_PER_ADDRESS_MAX 32
/* Bytes of a request's line and headers. Reached: 414 or 431. */
#define HTTPD_REQUEST_MAX     (32u << 10)
/* Bytes of a generated answer. Reached: 500. */
#define HTTPD_BODY_MAX	      (80u << 20)
/* Bytes of generated answers that clients have not read yet, all connections together. Reached: 503
 * with Retry-After, except for a response marked as essential. */
#define HTTPD_ANSWERS_MAX     (96u << 20)
/* Seconds without a byte until a connection is closed. */
#define HTTPD_IDLE_S	      30
/* Nanoseconds for a request's line and headers, with the wait for them: a slow client, but not for
 * ever. Reached: `podprof_http_connections_total{outcome="expired"}`. */
#define HTTPD_HEADER_MAX_NS   (60 * NSEC_PER_SEC)
/* Nanoseconds for the reading of an answer, without the time for making it. Reached:
 * `podprof_http_connections_total{outcome="expired"}`. */
#define HTTPD_ANSWER_MAX_NS   (300 * NSEC_PER_SEC)
/* Nanoseconds without a request before a new connection of the same address may take the place: the
 * request of a new connection is there, but the loop has not read it yet. */
#define HTTPD_OWING_NS	      (200 * NSEC_PER_MSEC)
/* Nanoseconds for the reading of an answer before a new client may take the place. */
#define HTTPD_READING_NS      (5 * NSEC_PER_SEC)
/* Nanoseconds of a pause between requests while the share of CPU time is in debt. Reached: the
 * server takes more than its share, and health checks are still answered in time. */
#define HTTPD_PAUSE_MAX_NS    (20 * NSEC_PER_MSEC)
/* Bytes of a file name in Content-Disposition, with its NUL. Reached: cut. */
#define HTTPD_FILENAME_MAX    256

/**
 * struct httpd_response - filled by the handler; starts as 200 without a body
 * @content_type: borrowed, a constant
 * @body:         taken
 * @fixed:        instead of @body: constant bytes
 * @etag:         a constant, quoted; the client may cache the answer and revalidate with the tag
 * @filename:     name for saving; bytes other than letters, digits, '.', '_' and '-' become '_';
 *                "": none
 * @compress:     gzip the body for clients that accept gzip
 * @is_gzip:      the body is gzip already, for a client that accepts gzip
 * @is_essential: never refused for lack of memory: health and metrics
 * @is_challenge: of a 401: asks for basic authentication
 * @retry_after_s: value of the Retry-After header; 0: none
 */
struct httpd_response {
	unsigned int status;
	const char *content_type;
	struct buf body;
	const void *fixed;
	size_t fixed_len;
	const char *etag;
	char filename[HTTPD_FILENAME_MAX];
	bool compress;
	bool is_gzip;
	bool is_essential;
	bool is_challenge;
	unsigned int retry_after_s;
};

typedef void (*httpd_fn)(void *ctx, const struct httpd_request *request,
			 struct httpd_response *ret);

enum httpd_guard_result {
	HTTPD_GUARD_ALLOW,  /* the handler is asked */
	HTTPD_GUARD_ANSWER, /* the response is the answer */
	HTTPD_GUARD_LATER,  /* the guard holds a struct httpd_later */
};

/* Decides about a request before the handler sees it. */
typedef int (*httpd_guard_fn)(void *ctx, const struct httpd_request *request,
			      struct httpd_response *ret);

struct httpd_opts {
	struct loop *loop;
	const struct listen_address *address;
	httpd_fn handler;
	httpd_guard_fn guard; /* NULL: every request is allowed */
	void *ctx;
	/* Accepts the connections, for HTTPS. Must be freed before the httpd. NULL: plain HTTP. */
	struct tls_front *tls;
	unsigned int idle_s;	/* 0: HTTPD_IDLE_S */
	uint64_t header_max_ns; /* 0: HTTPD_HEADER_MAX_NS */
	uint64_t answer_max_ns; /* 0: HTTPD_ANSWER_MAX_NS */
	uint64_t owing_ns;	/* 0: HTTPD_OWING_NS */
	uint64_t reading_ns;	/* 0: HTTPD_READING_NS */
	/* Share of CPU time, charged with the server's work on the loop; in debt, the server
	 * pauses between requests for at most HTTPD_PAUSE_MAX_NS. NULL: none. */
	struct cpu_share *share;
};

/* -errno: of listening (EADDRINUSE: the port is taken), or without memory. */
int httpd_new(const struct httpd_opts *opts, struct httpd **ret);
void httpd_free(struct httpd *h);
/* The listening address, with the port chosen by the kernel; borrowed. */
const char *httpd_address(const struct httpd *h);
/* podprof_http_requests, podprof_http_connections, podprof_http_open_connections over the @n
 * servers of @all. */
void httpd_collect(const struct httpd *const all[], size_t n, struct metric_sink *sink);

/* Of a request, borrowed: foreign bytes without a NUL. The path is percent-decoded. */
const char *httpd_path(const struct httpd_request *r);
/* NULL if absent. A parameter of the query string, percent-decoded; a header. */
const char *httpd_query(const struct httpd_request *r, const char *name);
const char *httpd_header(const struct httpd_request *r, const char *name);
/* The first parameter of the query string with an unknown name, a repeated name, or no value; NULL:
 * none. @names: the known names, then NULL. */
const char *httpd_query_odd(const struct httpd_request *r, const char *const names[]);
bool httpd_accepts_gzip(const struct httpd_request *r);
/* The client's address; of family AF_UNSPEC if unknown. */
void httpd_client(const struct httpd_request *r, struct sockaddr_storage *ret);

/*
 * An answer that takes time. The handler requests a struct httpd_later, and its httpd_response is
 * ignored. The connection waits; all other connections continue.
 */

/* NULL without memory. At most once for each request. The holder answers once, even if the client
 * or the whole server has gone in the meantime. */
struct httpd_later *httpd_later(const struct httpd_request *r);
/* Call @gone once on the loop if the client closes the connection before the answer. Half-closed
 * counts as closed. The holder still answers, but not from @gone. */
void httpd_later_on_gone(struct httpd_later *later, void (*gone)(void *ctx), void *ctx);
/* On the loop's thread, also inside the handler. The body is taken; @later is gone. */
void httpd_later_answer(struct httpd_later *later, struct httpd_response *response);
/* Instead of an answer, from a guard: the handler is asked. @later is gone. */
void httpd_later_allow(struct httpd_later *later);

/* Make the answer a line of text with a status. */
void httpd_fail(struct httpd_response *ret, unsigned int status, const char *text);
/* Gzip the body. 0, or BUF_FULL or -ENOMEM with the body as it was. */
int httpd_compress(struct httpd_response *response);

#endif
