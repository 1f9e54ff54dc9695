/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_RAWSERVER_H
#define PODPROF_TEST_SUPPORT_RAWSERVER_H

/* A server on loopback for replies that no HTTP server sends: a thread reads a request and sends
 * bytes unchanged. */

#include <stddef.h>

enum rawserver_end {
	RAWSERVER_CLOSE, /* hang up */
	RAWSERVER_RESET, /* hang up by a reset */
	RAWSERVER_HOLD,	 /* say no more, but stay */
};

/**
 * struct rawserver_answer - the answer to one connection
 * @bytes:  sent unchanged, @n bytes; 0: up to the NUL
 * @slowly: one byte each millisecond
 */
struct rawserver_answer {
	const char *bytes;
	size_t n;
	int slowly;
	enum rawserver_end end;
};

/* The last answer goes on for ever. @script is borrowed. */
struct rawserver;
struct rawserver *rawserver_new(const struct rawserver_answer *script, size_t n);
void rawserver_free(struct rawserver *server);
/* "http://127.0.0.1:PORT" */
const char *rawserver_url(const struct rawserver *server);
/* The request line of a connection; NULL if there was none (yet). Stays while the server lives. */
const char *rawserver_request(struct rawserver *server, size_t i);

#endif
