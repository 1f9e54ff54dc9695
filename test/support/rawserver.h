/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_RAWSERVER_H
#define PODPROF_TEST_SUPPORT_RAWSERVER_H

/* A server on loopback that does to each connection what no HTTP server would: a thread of its own
 * that reads a request and sends bytes as they are. */

#include <stddef.h>

enum rawserver_end {
	RAWSERVER_CLOSE, /* hang up */
	RAWSERVER_RESET, /* hang up by a reset */
	RAWSERVER_HOLD,	 /* say no more, but stay */
};

/**
 * struct rawserver_answer - what one connection gets
 * @bytes:  sent as they are, @n of them; 0 is all up to the NUL
 * @slowly: a byte at a time, one each millisecond
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
