/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SERVED_H
#define PODPROF_TEST_SUPPORT_SERVED_H

/* A loop on a thread of its own, while the test is the client, and a plain client that sends and
 * receives bytes. Create objects of the loop before served_start() and inspect them after
 * served_stop(). */

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
/* Send @request and append the answer until the peer closes; an early close is no failure. */
void served_exchange(const char *address, const char *request, size_t n, struct buf *ret);

/* GET of @target at @address. Returns the status; the body replaces what is in *@ret. */
int served_get(const char *address, const char *target, struct buf *ret);

#endif
