// SPDX-License-Identifier: Apache-2.0
#include "metadata/podclient.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/secret.h"
#include "metadata/pods.h"

/* Timeout for a connection to the node's kubelet or a server in the cluster. */
#define PODCLIENT_CONNECT_NS (5 * NSEC_PER_SEC)
/* Bytes of the reason of a failure. Reached: cut. */
#define PODCLIENT_ERROR_MAX  256

struct podclient {
	struct podclient_opts opts;
	podclient_done_fn done;
	void *ctx;
	struct http_call *call;
	struct podstream stream;
	uint64_t n_bytes; /* of the reply so far */
};

const char *podclient_outcome_name(int outcome)
{
	static const char *const names[PODCLIENT_OUTCOME_MAX] = {
		[PODCLIENT_OK] = "ok",	       [PODCLIENT_UNREACHABLE] = "unreachable",
		[PODCLIENT_DENIED] = "denied", [PODCLIENT_EXPIRED] = "expired",
		[PODCLIENT_ODD] = "invalid",
	};

	return outcome >= 0 && outcome < PODCLIENT_OUTCOME_MAX ? names[outcome] : "error";
}

int podclient_new(const struct podclient_opts *opts, podclient_done_fn done, void *ctx,
		  struct podclient **ret)
{
	struct podclient *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->opts = *opts;
	client->done = done;
	client->ctx = ctx;
	*ret = client;
	return 0;
}

void podclient_cancel(struct podclient *client)
{
	if (!client->call)
		return;
	http_cancel(client->call);
	client->call = NULL;
	podstream_deinit(&client->stream);
}

void podclient_free(struct podclient *client)
{
	if (!client)
		return;
	podclient_cancel(client);
	free(client);
}

bool podclient_busy(const struct podclient *client)
{
	return client->call;
}

/* ---------------------------------------------------------------- the reply */

static enum podclient_outcome outcome_of_status(long status)
{
	switch (status) {
	case 0:
		return PODCLIENT_UNREACHABLE;
	case 401:
	case 403:
		return PODCLIENT_DENIED;
	case 410:
		return PODCLIENT_EXPIRED;
	default:
		return status == 429 || status >= 500 ? PODCLIENT_UNREACHABLE : PODCLIENT_ODD;
	}
}

static void replied(void *ctx, const struct http_reply *http)
{
	struct podclient *client = ctx;
	char version[PODSTREAM_VERSION_MAX];
	char error[PODCLIENT_ERROR_MAX];
	struct podclient_reply reply = {.retry_after_ns = http->retry_after_ns, .error = error};
	int r = http->stopped, n;

	if (http->status == 200)
		r = podstream_end(&client->stream);
	if (http->status == 200 || http->stopped) {
		reply.outcome = r == PODSTREAM_OK	 ? PODCLIENT_OK
				: r == PODSTREAM_EXPIRED ? PODCLIENT_EXPIRED
							 : PODCLIENT_ODD;
		snprintf(error, sizeof(error), "%s", podstream_outcome_name(r));
	} else if (http->status) {
		reply.outcome = outcome_of_status(http->status);
		n = (int)strcspn(http->body, "\r\n"); /* the body's first line */
		snprintf(error, sizeof(error), "HTTP status %ld%s%.*s", http->status, n ? ": " : "",
			 n < 160 ? n : 160, http->body);
	} else {
		reply.outcome = PODCLIENT_UNREACHABLE;
		snprintf(error, sizeof(error), "%s", http->error);
	}
	/* copied, because the callback may start another request */
	snprintf(version, sizeof(version), "%s", client->stream.version);
	reply.version = version;
	reply.n_bytes = client->n_bytes;
	reply.n_pods = client->stream.n_pods;
	reply.n_odd = client->stream.n_odd;
	reply.n_containers_left_out = client->stream.n_containers_left_out;
	podstream_deinit(&client->stream);
	client->call = NULL;
	client->done(client->ctx, &reply);
}

static int received(void *ctx, const char *bytes, size_t n)
{
	struct podclient *client = ctx;

	client->n_bytes += n;
	return podstream_feed(&client->stream, bytes, n);
}

/* ---------------------------------------------------------------- the request */

static void fail(struct podclient *client, enum podclient_outcome outcome, const char *error)
{
	const struct podclient_reply reply = {.outcome = outcome, .error = error, .version = ""};

	client->done(client->ctx, &reply);
}

void podclient_get(struct podclient *client, const struct podclient_request *request)
{
	char url[PODCLIENT_URL_MAX];
	struct http_request http = {
		.url = url,
		.ca_file = client->opts.ca_file,
		.verify = client->opts.verify,
		.on_body = received,
		.connect_ns = PODCLIENT_CONNECT_NS,
		.total_ns = request->total_ns,
	};
	char *token = NULL;
	int r;

	if (snprintf(url, sizeof(url), "%s%s", client->opts.url, request->path) >=
	    (int)sizeof(url)) {
		fail(client, PODCLIENT_ODD, "the server's address is too long");
		return;
	}
	r = secret_read(&(struct secret){.file = (char *)client->opts.token_file}, &token);
	if (r) {
		fail(client, PODCLIENT_DENIED, "cannot read the token");
		return;
	}
	http.bearer = token;
	client->n_bytes = 0;
	podstream_init(&client->stream, request->kind, client->opts.pods, request->version);
	r = http_start(client->opts.http, &http, replied, client, &client->call);
	secret_forget(token);
	if (r) {
		client->call = NULL;
		podstream_deinit(&client->stream);
		fail(client, PODCLIENT_UNREACHABLE, strerror(-r));
	}
}
