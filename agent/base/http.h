/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_HTTP_H
#define PODPROF_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * HTTP requests to servers the user named, from the loop and without blocking it. Connections are
 * kept and used again. Certificates are checked, redirects are not followed, the usual proxy
 * variables (https_proxy, no_proxy, ...) count.
 */

struct loop;
struct http;
struct http_call;

/* What is kept of a reply's body; the rest is not read. Nothing but an error message is expected.
 * Reached: the rest is not read. */
#define HTTP_REPLY_MAX 65536

/* How far a server's certificate is checked. */
enum http_verify {
	HTTP_VERIFY_ALL = 0,
	HTTP_VERIFY_CHAIN,   /* who signed it, but not for which name */
	HTTP_VERIFY_NOTHING, /* the user has asked for that */
};

/* The body of a reply as it comes. Not 0 ends the call. May not call http_cancel() for this one. */
typedef int (*http_body_fn)(void *ctx, const char *bytes, size_t n);

/**
 * struct http_request - what to send; everything is borrowed
 * @url:        http or https
 * @headers:    "Name: value" each, up to @n_headers; the caller checks them with http_value_ok()
 * @user:       for basic authentication together with @password; or NULL
 * @bearer:     token for bearer authentication, or NULL
 * @ca_file:    PEM certificates to trust instead of the system's, or NULL
 * @body:       is sent with POST and must stay until the call is over; NULL for a GET
 * @on_body:    gets the body of a reply with status 200, of any length, instead of its being kept;
 *              or NULL. With the call's context.
 * @connect_ns: time to a connection, name lookup and TLS included
 * @total_ns:   time for everything
 */
struct http_request {
	const char *url;
	const char *const *headers;
	size_t n_headers;
	const char *user;
	const char *password;
	const char *bearer;
	const char *ca_file;
	enum http_verify verify;
	const void *body;
	size_t body_len;
	http_body_fn on_body;
	uint64_t connect_ns;
	uint64_t total_ns;
};

/**
 * struct http_reply - how a call ended; borrowed, for the time of the callback
 * @status:         of HTTP, or 0 when there was no reply: @error then says why
 * @error:          one line, never NULL; foreign where the server was involved
 * @timed_out:      the request's own time was over
 * @stopped:        what the request's on_body() returned; 0 if it did not end the call
 * @retry_after_ns: what the server asked for, as a delay from now; 0 for nothing
 * @date_s:         the server's clock as its Date header says, seconds since 1970; 0 without one
 * @body:           at most HTTP_REPLY_MAX bytes, NUL behind them; foreign
 */
struct http_reply {
	long status;
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
/* Cancels what is under way. NULL is fine. */
void http_free(struct http *http);

/* @ret is valid until @done is called or http_cancel(). 0 or -errno; then @done is not called. */
int http_start(struct http *http, const struct http_request *request, http_done_fn done, void *ctx,
	       struct http_call **ret);
/* @done is not called any more. NULL is fine. */
void http_cancel(struct http_call *call);

/* Whether @value can stand in a header: printable ASCII and blanks, so no line break. */
bool http_value_ok(const char *value);

#endif
