/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODCLIENT_H
#define PODPROF_METADATA_PODCLIENT_H

/* One request at a time to a server that knows pods, its reply into the table of pods. */

#include <stdbool.h>
#include <stdint.h>

#include "base/http.h"
#include "metadata/podstream.h"

struct pods;

/* How a request ended. */
enum podclient_outcome {
	PODCLIENT_OK = 0,
	PODCLIENT_UNREACHABLE, /* no connection, a certificate that is not trusted, too slow, broken
				  off */
	PODCLIENT_DENIED,      /* no token that is accepted, or it may not read pods */
	PODCLIENT_EXPIRED,     /* a watch from a version that is too old */
	PODCLIENT_ODD,	       /* it answers, but not with pods */
	PODCLIENT_OUTCOME_MAX,
};

/* Bytes of a URL. Reached: the request fails as `odd`. */
#define PODCLIENT_URL_MAX 1024

/**
 * struct podclient_opts - everything is borrowed and must outlive the client
 * @url:        of the server, without a path
 * @token_file: read anew for each request, since it is replaced; NULL for none
 * @ca_file:    certificates to trust instead of the system's; NULL for those
 * @pods:       where they go
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
 * struct podclient_reply - borrowed, for the time of the callback
 * @error:   one line for people: foreign where the server was involved
 * @version: to watch from
 * @n_bytes: of the reply's body
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

/* At the end of each request. */
typedef void (*podclient_done_fn)(void *ctx, const struct podclient_reply *reply);

/**
 * struct podclient_request
 * @path:     from "/" on, with its query
 * @version:  where a watch begins; NULL for a list
 * @total_ns: time for everything
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
/* What is under way ends without a word. NULL is fine. */
void podclient_free(struct podclient *client);
void podclient_cancel(struct podclient *client);

/* Always answered, later or at once; may be called from the callback, but not while a request is
 * under way. */
void podclient_get(struct podclient *client, const struct podclient_request *request);
bool podclient_busy(const struct podclient *client);

const char *podclient_outcome_name(int outcome);

#endif
