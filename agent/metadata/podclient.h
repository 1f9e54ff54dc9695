/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODCLIENT_H
#define PODPROF_METADATA_PODCLIENT_H

/* A client for a server of pods: one request at a time; the replies go into the table of pods. */

#include <stdbool.h>
#include <stdint.h>

#include "base/http.h"
#include "metadata/podstream.h"

struct pods;

/* Outcome of a request. */
enum podclient_outcome {
	PODCLIENT_OK = 0,
	PODCLIENT_UNREACHABLE, /* no connection, an untrusted certificate, a timeout, or a broken
				  reply */
	PODCLIENT_DENIED,      /* no accepted token, or no right to read pods */
	PODCLIENT_EXPIRED,     /* the version of the watch is too old */
	PODCLIENT_ODD,	       /* the reply has no pods */
	PODCLIENT_OUTCOME_MAX,
};

/* Bytes of a URL. Reached: the request fails as `invalid`. */
#define PODCLIENT_URL_MAX 1024

/**
 * struct podclient_opts - all borrowed; must outlive the client
 * @url:        of the server, without a path
 * @token_file: read for each request, because tokens are replaced; NULL for none
 * @ca_file:    certificates to trust instead of the system's; NULL: the system's
 * @pods:       the table for the pods
 */
struct podclient_opts {
	struct http *http;
	const char *url;
	const char *token_file;
	const char *ca_file;
	enum http_verify verify;
	struct pods *pods;
};

/**
 * struct podclient_reply - borrowed during the callback
 * @error:   one line for users; may contain the server's text
 * @version: start of the next watch
 * @n_bytes: size of the reply's body
 */
struct podclient_reply {
	enum podclient_outcome outcome;
	const char *error;
	uint64_t retry_after_ns;
	const char *version;
	uint64_t n_bytes;
	uint64_t n_pods;
	uint64_t n_odd;
	uint64_t n_containers_left_out;
};

/* Called at the end of each request. */
typedef void (*podclient_done_fn)(void *ctx, const struct podclient_reply *reply);

/**
 * struct podclient_request
 * @path:     from "/" on, with the query
 * @version:  start of the watch; NULL for a list
 * @total_ns: timeout of the whole request
 */
struct podclient_request {
	const char *path;
	enum podstream_kind kind;
	const char *version;
	uint64_t total_ns;
};

struct podclient;
int podclient_new(const struct podclient_opts *opts, podclient_done_fn done, void *ctx,
		  struct podclient **ret);
/* A request under way ends without a callback. podclient_free() allows NULL. */
void podclient_free(struct podclient *client);
void podclient_cancel(struct podclient *client);

/* Starts a request. The callback always follows, later or at once. May be called from the callback,
 * but not during another request. */
void podclient_get(struct podclient *client, const struct podclient_request *request);
bool podclient_busy(const struct podclient *client);

const char *podclient_outcome_name(int outcome);

#endif
