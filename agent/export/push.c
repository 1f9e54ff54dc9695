// SPDX-License-Identifier: Apache-2.0
#include "export/push.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "export/destination.h"

/* Headers of a request, without the HTTP client's own. Reached: -. */
#define PUSH_HEADERS_MAX (DESTINATION_HEADERS + 1 + DESTINATION_OWN_HEADERS_MAX)

/* The message for a reply without a message of its own. */
static const char *status_message(long status)
{
	if (status >= 300 && status < 400)
		return "podprof does not follow redirects; give the target address";
	return "no message";
}

void push_message(const struct http_reply *reply, char ret[PUSH_MESSAGE_MAX + 1])
{
	json_t *json = json_loadb(reply->body, reply->body_len, 0, NULL);
	const char *message = json_string_value(json_object_get(json, "message"));
	struct strview body = strview_of_bytes(reply->body, reply->body_len), line;

	if (message)
		line = strview_of(message);
	else if (!strview_line(&body, &line) || strview_empty(&line))
		line = strview_of(status_message(reply->status));
	snprintf(ret, PUSH_MESSAGE_MAX + 1, "%.*s", (int)strview_len(&line), line.p);
	json_decref(json);
}

/* Credentials read for one request, which borrows the strings. */
struct credentials {
	char *password;
	char *bearer;
	char *token_header;
	char *tenant;
	char *tenant_header;
	char *headers[DESTINATION_OWN_HEADERS_MAX];
};

static void credentials_deinit(struct credentials *c)
{
	secret_forget(c->password);
	secret_forget(c->bearer);
	secret_forget(c->token_header);
	secret_forget(c->tenant);
	secret_forget(c->tenant_header);
	for (size_t i = 0; i < DESTINATION_OWN_HEADERS_MAX; i++)
		secret_forget(c->headers[i]);
}

/* The header @name for the secret @value; nothing if one of them is NULL. 0 or -ENOMEM. */
static int secret_header(const char *name, const char *value, char **ret)
{
	if (!name || !value || asprintf(ret, "%s: %s", name, value) >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

/* As secret_read(). */
static int headers_read(const struct destination *d, struct credentials *ret)
{
	for (size_t i = 0; i < d->n_headers; i++) {
		int r = secret_read(&d->headers[i], &ret->headers[i]);

		if (r)
			return r;
		if (!http_header_ok(ret->headers[i]))
			return SECRET_MALFORMED;
	}
	return 0;
}

/* As secret_read(). */
static int credentials_read(const struct destination *d, struct credentials *ret)
{
	int r = secret_read(&d->password, &ret->password);

	if (!r)
		r = secret_read(&d->bearer, &ret->bearer);
	if (!r)
		r = secret_read(&d->tenant, &ret->tenant);
	if (!r)
		r = headers_read(d, ret);
	if (!r)
		r = secret_header(d->kind->token_header, ret->bearer, &ret->token_header);
	return r ? r : secret_header(d->kind->tenant_header, ret->tenant, &ret->tenant_header);
}

/* The kind's headers, the token's, the tenant's and the user's. Their number. */
static size_t add_headers(const struct destination_kind *kind, const struct credentials *c,
			  const char *ret[PUSH_HEADERS_MAX])
{
	size_t n = 0;

	for (; n < DESTINATION_HEADERS - 1 && kind->headers[n]; n++)
		ret[n] = kind->headers[n];
	if (c->token_header)
		ret[n++] = c->token_header;
	if (c->tenant_header)
		ret[n++] = c->tenant_header;
	for (size_t i = 0; i < DESTINATION_OWN_HEADERS_MAX && c->headers[i]; i++)
		ret[n++] = c->headers[i];
	return n;
}

int push_start(struct http *http, const struct push *push, http_done_fn done, void *ctx,
	       struct http_call **ret)
{
	_cleanup_(credentials_deinit) struct credentials c = {0};
	_cleanup_(freep) char *url = NULL;
	const struct destination *d = push->destination;
	const char *headers[PUSH_HEADERS_MAX];
	struct http_request request = {
		.url = d->url,
		.headers = headers,
		.user = d->user,
		.ca_file = d->ca_file,
		.cert_file = d->cert_file,
		.key_file = d->key_file,
		.body = push->request->body,
		.body_len = push->request->body_len,
		.on_send = push->on_send,
		.connect_ns = push->connect_ns,
		.total_ns = push->total_ns,
	};
	int r = credentials_read(d, &c);

	if (r)
		return r;
	if (push->request->query) {
		if (asprintf(&url, "%s%s", d->url, push->request->query) < 0) {
			url = NULL;
			return -ENOMEM;
		}
		request.url = url;
	}
	request.password = c.password;
	request.bearer = c.token_header ? NULL : c.bearer;
	request.n_headers = add_headers(d->kind, &c, headers);
	return http_start(http, &request, done, ctx, ret);
}

const char *push_start_error(int r)
{
	if (r == SECRET_UNREADABLE)
		return "cannot read the password, token, tenant or header file; check path and "
		       "permissions";
	if (r == SECRET_MALFORMED)
		return "the password, token, tenant or header is empty, too long, not printable "
		       "ASCII, or no header like 'Name: value'";
	return strerror(-r);
}
