/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SINK_H
#define PODPROF_TEST_SUPPORT_SINK_H

#include <stddef.h>
#include <stdint.h>

/*
 * A scripted HTTP server on loopback, in a thread of its own. It stores each complete request.
 */

enum sink_how {
	SINK_REPLY,
	SINK_HANG,   /* read the request, never answer */
	SINK_CLOSE,  /* read the request and hang up */
	SINK_GATHER, /* answer when @times requests wait for this answer */
};

/**
 * struct sink_answer - the answer to one request
 * @times:       number of requests with this answer, 0 counts as 1; the script's last answer
 *               repeats for ever
 * @body_repeat: repetitions of the body, 0 counts as 1
 * @only:        only requests with these bytes in their body get @status, others 200 (not of
 *               hexadecimal digits alone: ids have them)
 * @delay_ns:    time before the answer
 */
struct sink_answer {
	enum sink_how how;
	unsigned int status;
	size_t times;
	const char *body;
	size_t body_repeat;
	const char *retry_after;
	const char *location;
	const char *only;
	uint64_t delay_ns;
};

/* Absent headers are NULL. @query: "name=value&" for each, decoded. */
struct sink_request {
	char *method;
	char *path;
	char *query;
	char *content_type;
	char *connect_version;
	char *authorization;
	char *tenant;
	char *own; /* X-Own, a header of the user's */
	char *expect;
	char *user_agent;
	char *body;
	size_t body_len;
	uint64_t time_ns;    /* monotonic, at the end of the request */
	unsigned int status; /* of the answer; 0 for none */
};

/* @pem_folder: folder of "key.pem" and "cert.pem" for an https server; NULL for http. */
struct sink;
struct sink *sink_new(const struct sink_answer *script, size_t n, const char *pem_folder);
void sink_free(struct sink *sink);
/* "http://127.0.0.1:PORT" */
const char *sink_url(const struct sink *sink);
size_t sink_n_requests(struct sink *sink);
/* Valid and constant until sink_free(). */
const struct sink_request *sink_request(struct sink *sink, size_t i);
size_t sink_n_connections(struct sink *sink);

#endif
