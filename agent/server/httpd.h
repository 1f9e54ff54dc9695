/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_HTTPD_H
#define PODPROF_SERVER_HTTPD_H

/*
 * The HTTP server: connections, their limits, headers that every answer has. What the answers are
 * is the handler's business. It answers GET and HEAD only, changes nothing, and runs on the loop.
 *
 * On a loopback address a request must also name one in its Host header (or "localhost"): else any
 * web page that the node's user opens could let a name of its own point to 127.0.0.1 and read
 * profiles through the user's browser.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/listen.h"

struct httpd;
struct httpd_later;
struct httpd_request;
struct loop;
struct metric_sink;

/* Connections at a time, some 40 KiB each, and of one client's address. What is above is closed at
 * once and counted as "full" or "per_address". Reached:
 * `podprof_http_connections_total{outcome="full"}`. */
#define HTTPD_CONNECTIONS_MAX 128
/* Connections of one address. Reached: `podprof_http_connections_total{outcome="per_address"}`. */
#define HTTPD_PER_ADDRESS_MAX 32
/* Bytes of a request's line and headers; above, the client gets 414 or 431. Reached: 414 or 431. */
#define HTTPD_REQUEST_MAX     (32u << 10)
/* Bytes of an answer that is made for the request. Reached: 500. */
#define HTTPD_BODY_MAX	      (80u << 20)
/* Seconds without a byte, and nanoseconds in all, until a connection is closed: a client may be
 * slow, but not for ever. Closed ones of the second kind are counted as "expired". */
#define HTTPD_IDLE_S	      30
/* Nanoseconds a connection may last: a slow client, but not for ever. Reached:
 * `podprof_http_connections_total{outcome="expired"}`. */
#define HTTPD_AGE_MAX_NS      (300 * 1000000000ull)
/* Bytes of a file's name for Content-Disposition, with its NUL. Reached: cut. */
#define HTTPD_FILENAME_MAX    256

/**
 * struct httpd_response - what the handler fills; starts as 200 without a body
 * @content_type: borrowed, a constant
 * @body:         taken
 * @fixed:        instead of @body: bytes that never go away
 * @etag:         a constant, quoted; the answer may be kept and asked for again with it
 * @filename:     to be saved under; letters, digits, '.', '_' and '-' of it are kept; "": none
 * @compress:     gzip the body for clients that accept it
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
};

typedef void (*httpd_fn)(void *ctx, const struct httpd_request *request,
			 struct httpd_response *ret);

struct httpd_opts {
	struct loop *loop;
	const struct listen_address *address;
	httpd_fn handler;
	void *ctx;
	unsigned int idle_s; /* 0: HTTPD_IDLE_S */
	uint64_t age_max_ns; /* 0: HTTPD_AGE_MAX_NS */
};

/* -errno: of listening (EADDRINUSE: the port is taken), or without memory. */
int httpd_new(const struct httpd_opts *opts, struct httpd **ret);
void httpd_free(struct httpd *h);
/* Where it listens, with the port the kernel chose; borrowed. */
const char *httpd_address(const struct httpd *h);
/* A metric_collect_fn: podprof_http_requests, podprof_http_connections. */
void httpd_collect(void *ctx, struct metric_sink *sink);

/* Of a request, borrowed: foreign bytes without a NUL. The path is percent-decoded. */
const char *httpd_path(const struct httpd_request *r);
/* NULL if absent. A parameter of the query string, percent-decoded; a header. */
const char *httpd_query(const struct httpd_request *r, const char *name);
const char *httpd_header(const struct httpd_request *r, const char *name);

/*
 * An answer that takes a while: the handler asks for it, and what it leaves in its httpd_response
 * counts for nothing. The connection waits; nothing else does.
 */

/* NULL without memory. Of each request once. The holder answers it once, also when the client, or
 * the whole server, has gone in the meantime. */
struct httpd_later *httpd_later(const struct httpd_request *r);
/* On the loop's thread; of the handler itself too. The body is taken; @later is gone. */
void httpd_later_answer(struct httpd_later *later, struct httpd_response *response);

/* Make the answer a line of text with a status. */
void httpd_fail(struct httpd_response *ret, unsigned int status, const char *text);

#endif
