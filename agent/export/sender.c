// SPDX-License-Identifier: Apache-2.0
/*
 * The states of a sender:
 *
 *	idle		nothing waits
 *	gathering	waits a moment for more profiles, to send all in one request
 *	sending		one request is under way
 *	backing off	the last request failed for a reason that may pass
 *
 * The destination's kind encodes each request and evaluates each reply (destination.h); the sender
 * is independent of backends. By the kind's verdict the batch is sent, is retried, is split, or is
 * dropped because the backend would refuse the same bytes again. Redirects count as refused: the
 * user should give the final address.
 *
 * After a request too large for the server (413), or for its time limit, the sender halves the
 * bytes of a batch. The lower limit after a 413 is permanent. After a time-out the limit doubles
 * with each success, since the server may only have been slow.
 *
 * After a reply about a part of a batch (DESTINATION_*_ALONE) each profile goes alone for a while,
 * so each reply concerns one profile. If the refusal may pass, the batch is sent again, and parts
 * may be stored twice. Otherwise the batch is dropped, and parts may be lost. A single profile
 * retried this way moves to the end of the queue, because the backend may never accept its size.
 */
#include "export/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/backoff.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/push.h"

#define SENDER_CONNECT_NS      (5 * NSEC_PER_SEC)
#define SENDER_TOTAL_NS	       (10 * NSEC_PER_SEC)
/* The profiles of one window arrive one after the other; the first waits this long for the others.
 */
#define SENDER_GATHER_NS       (200 * NSEC_PER_MSEC)
/* Bytes of pprof in one request: servers accept 64 MiB and more, proxies far less, and the body is
 * a second copy in memory. A larger profile goes alone. */
#define SENDER_BATCH_BYTES     (4ull << 20)
/* Duration of sending single profiles after the last reply about a part of a batch. */
#define SENDER_ALONE_NS	       (600 * NSEC_PER_SEC)
/* Halving ends here: less would be requests without end. A 413 below this drops the profile. */
#define SENDER_BATCH_BYTES_MIN (64ull << 10)
/* Rate limit of log lines about one destination; the metrics have the rest. */
#define SENDER_LOG_INTERVAL_NS (60 * NSEC_PER_SEC)

enum sender_state { SENDER_IDLE, SENDER_GATHERING, SENDER_SENDING, SENDER_BACKING_OFF };
enum sender_health { SENDER_WORKS, SENDER_FAILS, SENDER_REFUSES };

/**
 * @batch, @request: the current request, and @call its handle
 * @batch_bytes:     bytes of pprof for the next batch
 * @batch_bytes_max: the ceiling learned from replies with 413
 * @alone_until_ns:  monotonic; until then a batch is one profile
 * @told:            the log has reported a failure
 */
struct sender {
	struct sender_opts opts;
	struct loop_source *timer;
	struct backoff backoff;
	enum sender_state state;
	struct http_call *call;
	struct outbox_list batch;
	struct destination_request request;
	uint64_t batch_bytes;
	uint64_t batch_bytes_max;
	uint64_t alone_until_ns;
	enum sender_health health;
	bool told;
	struct log_limit log_limit;
};

/* ---- log lines: one for each change of state, not for each request */

/* Whether the state has changed and a line is permitted now. Without permission the change is
 * reported at a later call. */
static bool sender_changes(struct sender *s, enum sender_health health, uint64_t *ret_suppressed)
{
	if (s->health == health && s->told)
		return false;
	s->health = health;
	if (!log_limit_ok(&s->log_limit, ret_suppressed))
		return false;
	s->told = true;
	return true;
}

/* @why may be foreign text; the log escapes the text. */
static void sender_fails(struct sender *s, long status, const char *why, uint64_t delay_ns)
{
	uint64_t suppressed;

	if (sender_changes(s, SENDER_FAILS, &suppressed))
		log_warn("destination fails, keeping profiles and retrying",
			 log_str("destination", s->opts.name), log_int("status", status),
			 log_str("err", why), log_uint("retry_in_ms", delay_ns / NSEC_PER_MSEC),
			 log_uint("suppressed", suppressed));
}

static void sender_refuses(struct sender *s, long status, const char *why)
{
	uint64_t suppressed;

	if (sender_changes(s, SENDER_REFUSES, &suppressed))
		log_warn("destination refuses profiles, dropping them",
			 log_str("destination", s->opts.name), log_int("status", status),
			 log_str("err", why), log_uint("suppressed", suppressed));
}

static void sender_works(struct sender *s)
{
	s->health = SENDER_WORKS;
	if (s->told)
		log_info("destination works again", log_str("destination", s->opts.name));
	s->told = false;
}

/* ---- states */

static void sender_arm(struct sender *s, enum sender_state state, uint64_t delay_ns)
{
	s->state = state;
	/* timerfd_settime() fails only for arguments that never occur here. */
	(void)loop_arm(s->timer, delay_ns, 0);
}

static void sender_go_on(struct sender *s)
{
	if (s->opts.box->waiting.first) {
		sender_arm(s, SENDER_GATHERING, 0);
		return;
	}
	s->state = SENDER_IDLE;
	if (s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

static void sender_end_batch(struct sender *s, enum export_outcome outcome)
{
	outbox_end(s->opts.box, &s->batch, outcome);
	destination_request_deinit(&s->request);
}

/* The batch goes to the front of the queue, or behind the others if @last. */
static void sender_retry(struct sender *s, bool last, long status, const char *why,
			 uint64_t retry_after_ns)
{
	uint64_t delay_ns = backoff_wait_ns(&s->backoff, retry_after_ns);

	if (last)
		outbox_put_last(s->opts.box, &s->batch);
	else
		outbox_put_back(s->opts.box, &s->batch);
	destination_request_deinit(&s->request);
	sender_fails(s, status, why, delay_ns);
	sender_arm(s, SENDER_BACKING_OFF, delay_ns);
}

/* ---- replies */

static enum export_outcome verdict_outcome(enum destination_verdict verdict)
{
	if (verdict == DESTINATION_DENIED)
		return EXPORT_DROPPED_DENIED;
	if (verdict == DESTINATION_SPLIT)
		return EXPORT_DROPPED_TOO_LARGE;
	return EXPORT_DROPPED_REFUSED;
}

static uint64_t batch_payload(const struct sender *s)
{
	uint64_t bytes = 0;

	for (struct outbox_item *item = s->batch.first; item; item = item->next) {
		size_t len;

		(void)outbox_payload(s->opts.box, item->queued->profile, &len);
		bytes += len;
	}
	return bytes;
}

/* Halves the size of future requests. False if the batch has a single profile. */
static bool sender_halve(struct sender *s)
{
	uint64_t half = batch_payload(s) / 2;

	if (s->batch.n < 2)
		return false;
	s->batch_bytes = half > SENDER_BATCH_BYTES_MIN ? half : SENDER_BATCH_BYTES_MIN;
	return true;
}

static void sender_sent(struct sender *s)
{
	sender_end_batch(s, EXPORT_SENT);
	backoff_reset(&s->backoff);
	s->batch_bytes *= 2;
	if (s->batch_bytes > s->batch_bytes_max)
		s->batch_bytes = s->batch_bytes_max;
	sender_works(s);
	sender_go_on(s);
}

static void sender_refused(struct sender *s, enum destination_verdict verdict,
			   const struct http_reply *reply)
{
	char message[PUSH_MESSAGE_MAX + 1];

	push_message(reply, message);
	sender_end_batch(s, verdict_outcome(verdict));
	backoff_reset(&s->backoff);
	sender_refuses(s, reply->status, message);
	sender_go_on(s);
}

static void sender_may_pass(struct sender *s, enum destination_verdict verdict,
			    const struct http_reply *reply)
{
	char message[PUSH_MESSAGE_MAX + 1];
	bool last = verdict == DESTINATION_RETRY_ALONE && s->batch.n == 1;

	if (reply->timed_out)
		(void)sender_halve(s);
	push_message(reply, message);
	sender_retry(s, last, reply->status, reply->status ? message : reply->error,
		     reply->retry_after_ns);
}

static void sender_replied(void *ctx, const struct http_reply *reply)
{
	struct sender *s = ctx;
	enum destination_verdict verdict = s->opts.destination->kind->verdict(reply);

	s->call = NULL;
	if (verdict == DESTINATION_REFUSED_ALONE || verdict == DESTINATION_RETRY_ALONE)
		s->alone_until_ns = nsec_monotonic() + SENDER_ALONE_NS;
	if (verdict == DESTINATION_SENT) {
		sender_sent(s);
	} else if (verdict == DESTINATION_SPLIT && s->batch_bytes > SENDER_BATCH_BYTES_MIN &&
		   sender_halve(s)) {
		s->batch_bytes_max = s->batch_bytes;
		outbox_put_back(s->opts.box, &s->batch);
		destination_request_deinit(&s->request);
		sender_go_on(s);
	} else if (verdict == DESTINATION_RETRY || verdict == DESTINATION_RETRY_ALONE) {
		sender_may_pass(s, verdict, reply);
	} else {
		sender_refused(s, verdict, reply);
	}
}

/* ---- requests */

/* Encode the batch and start the request. 0, a secret_outcome or -errno. */
static int sender_start_call(struct sender *s)
{
	const struct destination *destination = s->opts.destination;
	_cleanup_(freep) struct destination_profile *profiles =
		calloc(s->batch.n, sizeof(*profiles));
	const struct push push = {
		.destination = destination,
		.request = &s->request,
		.connect_ns = s->opts.connect_ns,
		.total_ns = s->opts.total_ns,
	};
	int r;

	if (!profiles)
		return -ENOMEM;
	outbox_profiles(s->opts.box, &s->batch, profiles);
	r = destination->kind->encode(profiles, s->batch.n, &s->request);
	return r ? r : push_start(s->opts.http, &push, sender_replied, s, &s->call);
}

static void sender_send(struct sender *s)
{
	bool alone = nsec_monotonic() < s->alone_until_ns;
	size_t max_n = alone ? 1 : s->opts.destination->kind->limits.profiles;
	int r;

	outbox_take(s->opts.box, max_n, s->batch_bytes, nsec_wall(), &s->batch);
	if (!s->batch.n) {
		sender_go_on(s);
		return;
	}
	r = sender_start_call(s);
	if (r == 0)
		s->state = SENDER_SENDING;
	else
		sender_retry(s, false, 0, push_start_error(r), 0);
}

static void sender_due(void *ctx)
{
	sender_send(ctx);
}

/* ---- from outside */

DEFINE_CLEANUP(struct sender *, sender_freep, sender_free);

int sender_new(const struct sender_opts *opts, struct sender **ret)
{
	_cleanup_(sender_freep) struct sender *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	if (!s->opts.connect_ns)
		s->opts.connect_ns = SENDER_CONNECT_NS;
	if (!s->opts.total_ns)
		s->opts.total_ns = SENDER_TOTAL_NS;
	s->batch_bytes = s->batch_bytes_max = SENDER_BATCH_BYTES;
	s->log_limit.interval_ns = SENDER_LOG_INTERVAL_NS;
	r = loop_add_timer(opts->loop, sender_due, s, &s->timer);
	if (r < 0)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	http_cancel(s->call);
	if (s->batch.n)
		sender_end_batch(s, EXPORT_DROPPED_STOPPED);
	loop_remove(s->timer);
	free(s);
}

void sender_wake(struct sender *s)
{
	if (s->state == SENDER_IDLE && s->opts.box->waiting.first)
		sender_arm(s, SENDER_GATHERING, SENDER_GATHER_NS);
}

void sender_hurry(struct sender *s)
{
	if (s->state == SENDER_GATHERING || s->state == SENDER_BACKING_OFF) {
		backoff_reset(&s->backoff);
		sender_arm(s, SENDER_GATHERING, 0);
	}
}

bool sender_is_idle(const struct sender *s)
{
	return s->state == SENDER_IDLE;
}
