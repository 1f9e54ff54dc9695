/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SERVED_H
#define PODPROF_TEST_SUPPORT_SERVED_H

/* A loop that runs on a thread of its own while the test is somebody else's client, and a client of
 * the plain kind: bytes there, bytes back. Whatever belongs to the loop may be made before
 * served_start() and looked at after served_stop(). */

#include <pthread.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/loop.h"

struct served {
	struct loop *loop;
	pthread_t thread;
	int stop_fd;
	struct loop_source *stop;
};

void served_init(struct served *s);
void served_start(struct served *s);
void served_stop(struct served *s);
void served_deinit(struct served *s);

/* Connect to "127.0.0.1:PORT". The descriptor is the caller's. */
int served_connect(const char *address);
/* Send @request and append what comes back until the other side closes; a side that closes early is
 * no failure. */
void served_exchange(const char *address, const char *request, size_t n, struct buf *ret);

#endif
