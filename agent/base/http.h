/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_HTTP_H
#define PODPROF_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * HTTP requests from the loop, without blocking, to servers the user named. Connections are kept
 * and reused. Certificates are checked, redirects are not followed, and the usual proxy variables
 * (https_proxy, no_proxy, ...) apply.
 */

struct loop;
struct http;
struct http_call;

/* Bytes kept of a reply's body, since only an error message is expected there. Reached: the rest is
 * not read. */
#define HTTP_REPLY_MAX 65536

/* How far a server's certificate is checked. */
enum http_verify {
	HTTP_VERIFY_ALL = 0,
	HTTP_VERIFY_CHAIN,   /* the issuer, but not the server's name */
	HTTP_VERIFY_NOTHING, /* on the user's request only */
};

/* Receives the body of a reply piece by piece. A result other than 0 ends the call. Must not call
 * http_cancel() for this call. */
typedef int (*http_body_fn)(void *ctx, const char *bytes, size_t n);

/* Writes the next bytes of a request's body to @ret, 1 to @n. Returns their number; any other
 * result ends the call. Must not call http_cancel() for this call. */
typedef ssize_t (*http_send_fn)(void *ctx, char *ret, size_t n);

/**
 * struct http_request - a request; everything is borrowed
 * @url:        http or https
 * @headers:    "Name: value" each, up to @n_headers; the caller checks each with http_value_ok()
 * @user:       for basic authentication together with @password; or NULL
 * @bearer:     token for bearer authentication, or NULL
 * @ca_file:    PEM certificates to trust instead of the system's, or NULL
 * @cert_file:  PEM certificate of this client, with those between it and its issuer; or NULL
 * @key_file:   PEM key of @cert_file; NULL: in @cert_file
 * @body:       sent with POST, must stay until the end of the call; NULL for a GET
 * @on_send:    gives the body of @body_len bytes, with the call's context, in place of @body; or
 * NULL. The request has a connection of its own
 * @is_put:     PUT instead of POST, without a content type; only with @on_send
 * @on_body:    receives the body of a reply with status 200, of any length, with the call's
 *              context; the reply then keeps no body. Or NULL.
 * @connect_ns: limit for connecting, name lookup and TLS included
 * @total_ns:   limit for the whole call
 */
struct http_request {
	const char *url;
	const char *const *headers;
	size_t n_headers;
	const char *user;
	const char *password;
	const char *bearer;
	const char *ca_file;
	const char *cert_file;
	const char *key_file;
	enum http_verify verify;
	const void *body;
	size_t body_len;
	http_send_fn on_send;
	bool is_put;
	http_body_fn on_body;
	uint64_t connect_ns;
	uint64_t total_ns;
};

/**
 * struct http_reply - the result of a call; borrowed, valid during the callback
 * @status:         of HTTP, or 0 without a whole reply: @error then gives the reason
 * @cut_status:     of a reply without its end: the server has decided, only its text is missing;
 *                  0 for none
 * @error:          one line, never NULL; foreign if the server was involved
 * @timed_out:      the request exceeded its own time limit
 * @stopped:        the result of on_body() or on_send() that ended the call; else 0
 * @retry_after_ns: the delay the server asked for, counted from now; 0 for none
 * @date_s:         the server's clock from its Date header, seconds since 1970; 0 without one
 * @body:           at most HTTP_REPLY_MAX bytes, NUL behind the last; foreign
 */
struct http_reply {
	long status;
	long cut_status;
	const char *error;
	bool timed_out;
	int stopped;
	uint64_t retry_after_ns;
	int64_t date_s;
	const char *body;
	size_t body_len;
};

/* Called once from the loop. May make new calls and cancel others; may not call http_free(). */
typedef void (*http_done_fn)(void *ctx, const struct http_reply *reply);

int http_new(struct loop *loop, struct http **ret);
/* Cancels all running calls. NULL is allowed. */
void http_free(struct http *http);

/* @ret is valid until @done is called or http_cancel(). 0 or -errno; then @done is not called. */
int http_start(struct http *http, const struct http_request *request, http_done_fn done, void *ctx,
	       struct http_call **ret);
/* @done is not called any more. NULL is fine. */
void http_cancel(struct http_call *call);

/* Whether @value can stand in a header: printable ASCII and blanks, so no line break. */
bool http_value_ok(const char *value);
/* Whether @line is "Name: value" and can be a header. */
bool http_header_ok(const char *line);

#endif
