// SPDX-License-Identifier: Apache-2.0
/*
 * A sender is in one of these states:
 *
 *	idle		nothing waits
 *	gathering	something waits; a moment later more does, and all goes in one request
 *	sending		one request is under way
 *	backing off	the last one failed in a way that may pass
 *
 * Every reply leads to one of three verdicts: sent, retry (408, 429, 5xx, no reply), or an outcome
 * that drops the batch, because the same bytes would be refused again. Redirects count as refused:
 * the user should name the place itself.
 *
 * A request that is too large for the server (413), or for the time it has, is made smaller by
 * halving the bytes of a batch. What a 413 taught is kept; what a time-out taught is unlearned by
 * doubling after each success, since the server may only have been slow.
 *
 * Of a batch that is refused for what is in it (400) or for a tenant's rate (429) Pyroscope 1.15
 * and later have stored what was not, and the reply does not say which; older ones have stored
 * nothing, and refuse for ever what is together more than a tenant may send at a time (2 MiB before
 * compression by default). So each of those is the last batch for a while: after it profiles go
 * alone, and each reply is about one. What was in that batch is sent again after a 429, so that
 * some of it is stored twice (1.21.1 answers queries as if it were there once), and dropped after
 * a 400, which may lose some of it. A profile alone whose rate is too high goes behind the others:
 * it may be larger than all that is ever allowed.
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
#include "export/outbox.h"
#include "export/push.h"
#include "export/pyroscope.h"

#define SENDER_CONNECT_NS      (5 * NSEC_PER_SEC)
#define SENDER_TOTAL_NS	       (10 * NSEC_PER_SEC)
/* The profiles of one window come one after the other; so long the first waits for the others. */
#define SENDER_GATHER_NS       (200 * NSEC_PER_MSEC)
/* Bytes of pprof in one request: Pyroscope takes 256 MiB, proxies before it far less, and the body
 * is a second copy in memory. A larger profile goes alone. */
#define SENDER_BATCH_BYTES     (4ull << 20)
/* So long after the last 400 or 429 profiles go alone. */
#define SENDER_ALONE_NS	       (600 * NSEC_PER_SEC)
/* Halving ends here: less would be requests without end. A 413 below this drops the profile. */
#define SENDER_BATCH_BYTES_MIN (64ull << 10)
/* Lines about one destination; the rest is in the metrics. */
#define SENDER_LOG_INTERVAL_NS (60 * NSEC_PER_SEC)

enum sender_state { SENDER_IDLE, SENDER_GATHERING, SENDER_SENDING, SENDER_BACKING_OFF };
enum sender_health { SENDER_WORKS, SENDER_FAILS, SENDER_REFUSES };

/**
 * @batch, @body:    the request that is under way, and @call its handle
 * @batch_bytes:     bytes of pprof for the next one
 * @batch_bytes_max: what no 413 was seen for
 * @alone_until_ns:  monotonic; until then a batch is one profile
 * @told:            the user has read that it does not work
 */
struct sender {
	struct sender_opts opts;
	struct loop_source *timer;
	struct backoff backoff;
	enum sender_state state;
	struct http_call *call;
	struct outbox_list batch;
	char *body;
	uint64_t batch_bytes;
	uint64_t batch_bytes_max;
	uint64_t alone_until_ns;
	enum sender_health health;
	bool told;
	struct log_limit log_limit;
};

/* ---- what the user is told: a line when the state changes, not one for each request */

/* Whether this is news and may be told now; if it may not, it is still news the next time. */
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

/* @why may be foreign; the log escapes it. */
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
	/* timerfd_settime() fails only for arguments that are never passed. */
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
	free(take_ptr(s->body));
}

static void sender_retry(struct sender *s, long status, const char *why, uint64_t retry_after_ns)
{
	uint64_t delay_ns = backoff_wait_ns(&s->backoff, retry_after_ns);

	if (status == 429 && s->batch.n == 1)
		outbox_put_last(s->opts.box, &s->batch);
	else
		outbox_put_back(s->opts.box, &s->batch);
	free(take_ptr(s->body));
	sender_fails(s, status, why, delay_ns);
	sender_arm(s, SENDER_BACKING_OFF, delay_ns);
}

/* ---- replies */

static enum export_outcome status_outcome(long status)
{
	if (status == 401 || status == 403)
		return EXPORT_DROPPED_DENIED;
	if (status == 413)
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

/* Whether smaller requests than this batch can be tried; they are made from now on. */
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

static void sender_refused(struct sender *s, const struct http_reply *reply)
{
	char message[PUSH_MESSAGE_MAX + 1];

	push_message(reply, message);
	sender_end_batch(s, status_outcome(reply->status));
	backoff_reset(&s->backoff);
	sender_refuses(s, reply->status, message);
	sender_go_on(s);
}

static void sender_replied(void *ctx, const struct http_reply *reply)
{
	struct sender *s = ctx;

	s->call = NULL;
	if (reply->status == 400 || reply->status == 429)
		s->alone_until_ns = nsec_monotonic() + SENDER_ALONE_NS;
	if (reply->status >= 200 && reply->status < 300) {
		sender_sent(s);
	} else if (reply->status == 413 && s->batch_bytes > SENDER_BATCH_BYTES_MIN &&
		   sender_halve(s)) {
		s->batch_bytes_max = s->batch_bytes;
		outbox_put_back(s->opts.box, &s->batch);
		free(take_ptr(s->body));
		sender_go_on(s);
	} else if (push_may_pass(reply->status)) {
		char message[PUSH_MESSAGE_MAX + 1];

		if (reply->timed_out)
			(void)sender_halve(s);
		push_message(reply, message);
		sender_retry(s, reply->status, reply->status ? message : reply->error,
			     reply->retry_after_ns);
	} else {
		sender_refused(s, reply);
	}
}

/* ---- requests */

/* 0, a secret_outcome or -errno. */
static int sender_start_call(struct sender *s, size_t body_len)
{
	const struct push push = {
		.destination = s->opts.destination,
		.body = s->body,
		.body_len = body_len,
		.connect_ns = s->opts.connect_ns,
		.total_ns = s->opts.total_ns,
	};

	return push_start(s->opts.http, &push, sender_replied, s, &s->call);
}

static void sender_send(struct sender *s)
{
	size_t max_n = nsec_monotonic() < s->alone_until_ns ? 1 : PYROSCOPE_SERIES_MAX;
	size_t body_len;
	int r;

	outbox_take(s->opts.box, max_n, s->batch_bytes, nsec_wall(), &s->batch);
	if (!s->batch.n) {
		sender_go_on(s);
		return;
	}
	r = pyroscope_encode(s->opts.box, &s->batch, &s->body, &body_len);
	if (r == 0)
		r = sender_start_call(s, body_len);
	if (r == 0)
		s->state = SENDER_SENDING;
	else
		sender_retry(s, 0, push_start_error(r), 0);
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
