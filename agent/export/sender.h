/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SENDER_H
#define PODPROF_EXPORT_SENDER_H

/* Empties one outbox into one destination, by a few requests at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct destination;
struct http;
struct loop;
struct outbox;
struct sender;
struct worker;

/* Requests under way to one destination. A backend that acknowledges after 0.5 s (Pyroscope 2
 * flushes a segment first) takes 8 requests a second. Reached: profiles wait in the queue. */
#define SENDER_FLIGHTS_MAX 4

/**
 * struct sender_opts - everything is borrowed and must outlive the sender
 * @encoder:    encodes requests, SENDER_FLIGHTS_MAX at a time; freed before the sender
 * @name:       for log lines
 * @connect_ns: time to a connection; 0: SENDER_CONNECT_NS
 * @total_ns:   time for a request; 0: SENDER_TOTAL_NS
 * @window_ns:  of the profiles, for the pace (pace.h); 0: everything is sent at once
 * @idle:       called when nothing waits and nothing is on the way any more; may be NULL
 */
struct sender_opts {
	struct loop *loop;
	struct http *http;
	const struct destination *destination;
	struct outbox *box;
	struct worker *encoder;
	const char *name;
	uint64_t connect_ns;
	uint64_t total_ns;
	uint64_t window_ns;
	void (*idle)(void *ctx);
	void *ctx;
};

int sender_new(const struct sender_opts *opts, struct sender **ret);
/* Requests under way end as "stopped"; waiting profiles stay in the outbox. NULL is allowed. */
void sender_free(struct sender *s);

/* @n new profiles come to the outbox, at once or over the disk: for the pace. */
void sender_expect(struct sender *s, size_t n);
/* The outbox has a new profile: send soon, together with the following profiles. */
void sender_wake(struct sender *s);
/* Send now, without a pace from now on, and end a running backoff. For the end of the run. */
void sender_hurry(struct sender *s);
bool sender_is_idle(const struct sender *s);

#endif
