// SPDX-License-Identifier: Apache-2.0
/*
 * A sender moves profiles from the outbox to the destination, in up to SENDER_FLIGHTS_MAX requests
 * at a time. Profiles of one series are never in two requests (outbox_take()), so each series keeps
 * its order. All requests together carry no more bytes than one request may.
 *
 * The timer has two uses:
 *
 *	gathering	waits a moment for more profiles, to send all in one request, or for the
 *			pace (pace.h)
 *	backing off	a request failed for a reason that may pass; no other starts meanwhile
 *
 * The destination's kind encodes each request and evaluates each reply (destination.h); the sender
 * is independent of backends. Encoding can take 0.1 s, so a worker does it. Redirects count as
 * refused: the user should give the final address.
 *
 * The batch size follows AIMD, additive increase and multiplicative decrease. Backpressure (429) or
 * a time-out halves the number of profiles in a request, and each success adds a constant. After
 * a failure a single request probes the destination. The failures of requests that started before
 * that failure are part of the same event (one epoch): they halve nothing again.
 *
 * A refusal that concerns a part of a batch (400) starts a binary search in this flight: halves
 * of the batch go in requests of their own until the refused profile is alone and is dropped. After
 * it the number of profiles doubles with each success. One refused profile of n costs about
 * 2 log2(n) requests, and n refused profiles n + log2(n). The other flights go on meanwhile. The
 * series of the refused profile is in quarantine until the destination accepts a profile of it:
 * the profiles of the next windows go alone, without a search.
 *
 * A batch that is refused although a part of it may be stored is not sent again, because a second
 * request would store the part twice. Its profiles end as "unknown". All its series go to
 * quarantine: in the next window they go in 32 requests at most, and the series of a refused
 * request go alone in the window after it. Then the refused profile costs itself alone. If the
 * reply names the profiles that are not stored, only these are dropped or sent again.
 *
 * After a 413 the ceiling of a request's bytes is lowered for good. At the lowest ceiling a batch
 * is searched as after a refusal, so only a profile that is too large alone is dropped.
 *
 * A single profile answered with 429 moves to the end of the queue: the backend may never accept
 * a profile of this size. Only here a later profile of the same series can arrive first.
 */
#include "export/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "base/worker.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/pace.h"
#include "export/push.h"
#include "export/rewrite.h"

#define SENDER_CONNECT_NS	  (5 * NSEC_PER_SEC)
#define SENDER_TOTAL_NS		  (10 * NSEC_PER_SEC)
/* The profiles of one window arrive one after the other; the first waits this long for the others.
 */
#define SENDER_GATHER_NS	  (200 * NSEC_PER_MSEC)
/* The pace depends on the load: longest wait before it is asked again. */
#define SENDER_PACE_NS		  NSEC_PER_SEC
/* Bytes of pprof in all requests under way, and in one: servers accept 64 MiB and more, proxies far
 * less, and the bodies are a second copy in memory. A larger profile goes alone. */
#define SENDER_BATCH_BYTES	  (4ull << 20)
/* Halving ends here: less would be requests without end. A 413 below this starts a search. */
#define SENDER_BATCH_BYTES_MIN	  (64ull << 10)
/* Profiles added to a batch by each success after backpressure: 256 are reached in 16 requests. */
#define SENDER_GROWTH		  16
/* Longest backoff; a node's profiles of half a minute fit into the queue. */
#define SENDER_BACKOFF_NS	  (30 * NSEC_PER_SEC)
/* Nanoseconds of a server's Retry-After. Reached: cut. */
#define SENDER_RETRY_AFTER_MAX_NS (300 * NSEC_PER_SEC)
/* Rate limit of log lines about one destination; the metrics have the rest. */
#define SENDER_LOG_INTERVAL_NS	  (60 * NSEC_PER_SEC)

enum sender_timer { SENDER_OFF, SENDER_GATHERING, SENDER_BACKING_OFF };
enum sender_health { SENDER_WORKS, SENDER_FAILS, SENDER_REFUSES };

/**
 * struct flight - profiles taken from the outbox, and the request under way
 * @busy:      has profiles
 * @batch, @request: the current request, and @call its handle
 * @work:      the encoding of the request, with @profiles and @encoded, its result
 * @rest:      taken profiles behind the batch
 * @suspects:  number of first profiles of @rest, one of which the destination refuses; or 0
 * @max_n:     profiles in the next batch
 * @max_bytes: bytes of pprof permitted when the profiles were taken
 * @payload:   bytes of pprof taken
 * @epoch:     sender.epoch at the start of the request
 */
struct flight {
	struct sender *sender;
	bool busy;
	struct http_call *call;
	struct work work;
	struct destination_profile *profiles;
	int encoded;
	struct outbox_list batch;
	struct outbox_list rest;
	struct destination_request request;
	size_t suspects;
	size_t max_n;
	uint64_t max_bytes;
	uint64_t payload;
	uint64_t epoch;
};

/**
 * @until_ns:  monotonic; end of the backoff
 * @epoch:     number of failures that have changed @max_n and the backoff
 * @max_n:     profiles in a batch
 * @max_bytes: bytes of pprof in a batch; lowered by replies with 413
 * @told:      the log has reported a failure
 * @hurries:   the end of the run: no pace
 */
struct sender {
	struct sender_opts opts;
	struct loop_source *timer;
	enum sender_timer timer_for;
	struct backoff backoff;
	uint64_t until_ns;
	uint64_t epoch;
	size_t max_n;
	uint64_t max_bytes;
	struct flight flights[SENDER_FLIGHTS_MAX];
	struct pace pace;
	enum sender_health health;
	bool told;
	bool hurries;
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

/* ---- the timer */

static void sender_arm(struct sender *s, enum sender_timer timer_for, uint64_t delay_ns)
{
	s->timer_for = timer_for;
	/* timerfd_settime() fails only for arguments that never occur here. */
	(void)loop_arm(s->timer, delay_ns, 0);
}

/* A longer running backoff stays. */
static void sender_back_off(struct sender *s, uint64_t delay_ns)
{
	uint64_t until_ns = nsec_monotonic() + delay_ns;

	if (s->timer_for == SENDER_BACKING_OFF && until_ns <= s->until_ns)
		return;
	s->until_ns = until_ns;
	sender_arm(s, SENDER_BACKING_OFF, delay_ns);
}

static size_t sender_n_flights(const struct sender *s, uint64_t *ret_payload)
{
	size_t n = 0;

	*ret_payload = 0;
	for (size_t i = 0; i < SENDER_FLIGHTS_MAX; i++)
		if (s->flights[i].busy) {
			n++;
			*ret_payload += s->flights[i].payload;
		}
	return n;
}

/* After a flight has ended. By the timer, because the caller may be in a callback of another
 * flight. */
static void sender_go_on(struct sender *s)
{
	if (s->opts.box->waiting.first && s->timer_for != SENDER_BACKING_OFF)
		sender_arm(s, SENDER_GATHERING, 0);
	else if (sender_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* ---- the end of a request */

static uint64_t list_payload(const struct sender *s, const struct outbox_list *list)
{
	uint64_t bytes = 0;

	for (const struct outbox_item *item = list->first; item; item = item->next) {
		size_t len;

		(void)outbox_payload(s->opts.box, item->queued->profile, &len);
		bytes += len;
	}
	return bytes;
}

static bool flight_is_fresh(const struct flight *f)
{
	return f->epoch == f->sender->epoch;
}

/* The profiles that have not ended go to the front of the queue. */
static void flight_end(struct flight *f)
{
	struct sender *s = f->sender;

	outbox_list_prepend(&f->rest, &f->batch);
	outbox_put_back(s->opts.box, &f->rest);
	destination_request_deinit(&f->request);
	f->busy = false;
	sender_go_on(s);
}

/* The reason may pass. @smaller: the size of the batch may be the reason. */
static void flight_fails(struct flight *f, bool smaller, long status, const char *why,
			 uint64_t retry_after_ns)
{
	struct sender *s = f->sender;
	uint64_t delay_ns = retry_after_ns < SENDER_RETRY_AFTER_MAX_NS ? retry_after_ns
								       : SENDER_RETRY_AFTER_MAX_NS;

	outbox_count_retried(s->opts.box, &f->batch);
	if (flight_is_fresh(f)) {
		s->epoch++;
		delay_ns += backoff_wait_ns(&s->backoff, 0);
		if (smaller)
			s->max_n = f->batch.n > 1 ? f->batch.n / 2 : 1;
	}
	if (delay_ns)
		sender_back_off(s, delay_ns);
	sender_fails(s, status, why, delay_ns);
	flight_end(f);
}

static void flight_send(struct flight *f);

/* The batch has ended: send the rest. */
static void flight_next(struct flight *f)
{
	destination_request_deinit(&f->request);
	if (f->rest.first && f->sender->timer_for != SENDER_BACKING_OFF)
		flight_send(f);
	else
		flight_end(f);
}

/* Profiles refused inside an accepted request. The reply does not name these, and a second request
 * would send the others twice. */
static bool flight_rejected(struct flight *f, const struct http_reply *reply)
{
	const struct destination_kind *kind = f->sender->opts.destination->kind;
	char message[PUSH_MESSAGE_MAX + 1];
	struct strview why;
	uint64_t n = kind->rejected ? kind->rejected(reply, &why) : 0;

	if (!n)
		return false;
	f->sender->opts.box->rejected += n;
	snprintf(message, sizeof(message), "%.*s", (int)strview_len(&why), why.p);
	sender_refuses(f->sender, reply->status, message);
	return true;
}

static void flight_sent(struct flight *f, const struct http_reply *reply)
{
	struct sender *s = f->sender;
	size_t n = f->batch.n;

	outbox_release(s->opts.box, &f->batch);
	outbox_end(s->opts.box, &f->batch, EXPORT_SENT);
	if (flight_is_fresh(f)) {
		size_t limit = s->opts.destination->kind->limits.profiles;

		backoff_reset(&s->backoff);
		s->max_n = limit - s->max_n > SENDER_GROWTH ? s->max_n + SENDER_GROWTH : limit;
	}
	f->suspects -= f->suspects < n ? f->suspects : n;
	if (f->suspects)
		f->max_n = f->suspects > 1 ? f->suspects / 2 : 1;
	else if (f->max_n < SIZE_MAX / 2)
		f->max_n *= 2;
	if (!flight_rejected(f, reply))
		sender_works(s);
	flight_next(f);
}

static enum export_outcome refusal_outcome(const struct flight *f, enum destination_verdict verdict)
{
	if (verdict == DESTINATION_REFUSED_MAYBE && f->batch.n > 1)
		return EXPORT_UNKNOWN;
	if (verdict == DESTINATION_DENIED)
		return EXPORT_DROPPED_DENIED;
	if (verdict == DESTINATION_SPLIT)
		return EXPORT_DROPPED_TOO_LARGE;
	return EXPORT_DROPPED_REFUSED;
}

static void flight_refused(struct flight *f, enum destination_verdict verdict,
			   const struct http_reply *reply)
{
	struct sender *s = f->sender;
	char message[PUSH_MESSAGE_MAX + 1];

	push_message(reply, message);
	if (verdict == DESTINATION_REFUSED_PART || verdict == DESTINATION_REFUSED_MAYBE)
		outbox_quarantine(s->opts.box, &f->batch);
	outbox_end(s->opts.box, &f->batch, refusal_outcome(f, verdict));
	f->suspects = 0;
	if (flight_is_fresh(f))
		backoff_reset(&s->backoff);
	sender_refuses(s, reply->status, message);
	flight_next(f);
}

/* A profile of the batch is refused: search in the first half. */
static void flight_search(struct flight *f)
{
	f->suspects = f->batch.n;
	f->max_n = f->batch.n / 2;
	outbox_count_retried(f->sender->opts.box, &f->batch);
	outbox_list_prepend(&f->rest, &f->batch);
	flight_next(f);
}

/* A profile of the batch cannot be encoded: dropped without a request. */
static void flight_unencodable(struct flight *f)
{
	static const char why[] = "the profile cannot be encoded";

	if (f->batch.n > 1) {
		flight_search(f);
		return;
	}
	flight_refused(f, DESTINATION_REFUSED_PART,
		       &(struct http_reply){.body = why, .body_len = sizeof(why) - 1});
}

/* Whether smaller requests than this one are permitted: then all later ones are. */
static bool flight_split(struct flight *f)
{
	uint64_t half = list_payload(f->sender, &f->batch) / 2;
	struct sender *s = f->sender;

	if (f->batch.n < 2 || f->max_bytes <= SENDER_BATCH_BYTES_MIN)
		return false;
	if (half < SENDER_BATCH_BYTES_MIN)
		half = SENDER_BATCH_BYTES_MIN;
	if (half < s->max_bytes)
		s->max_bytes = half;
	outbox_count_retried(s->opts.box, &f->batch);
	flight_end(f);
	return true;
}

static void flight_may_pass(struct flight *f, enum destination_verdict verdict,
			    const struct http_reply *reply)
{
	bool smaller = verdict == DESTINATION_RETRY_SMALLER;
	char message[PUSH_MESSAGE_MAX + 1];

	push_message(reply, message);
	if (smaller && f->batch.n == 1) {
		outbox_count_retried(f->sender->opts.box, &f->batch);
		outbox_put_last(f->sender->opts.box, &f->batch);
	}
	flight_fails(f, smaller || reply->timed_out, reply->status,
		     reply->status ? message : reply->error, reply->retry_after_ns);
}

/* Whether all profiles may be sent again: then the verdict is enough. */
static bool fates_all_wait(const enum destination_fate *fates, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fates[i] != DESTINATION_FATE_NOT_STORED)
			return false;
	return true;
}

/* Ends the stored and the lost profiles of the batch; the others stay. */
static void flight_sort(struct flight *f, const enum destination_fate *fates)
{
	struct outbox_list by_fate[] = {[DESTINATION_FATE_STORED] = {0},
					[DESTINATION_FATE_NOT_STORED] = {0},
					[DESTINATION_FATE_LOST] = {0}};
	struct outbox *box = f->sender->opts.box;

	for (; f->batch.first; fates++)
		outbox_list_shift(&f->batch, &by_fate[*fates]);
	outbox_end(box, &by_fate[DESTINATION_FATE_STORED], EXPORT_SENT);
	outbox_end(box, &by_fate[DESTINATION_FATE_LOST], EXPORT_DROPPED_REFUSED);
	f->batch = by_fate[DESTINATION_FATE_NOT_STORED];
}

/* A part of the request is stored, and the reply names the rest. Only profiles that are certainly
 * not stored are sent again. False if the reply names none. */
static bool flight_stored_in_part(struct flight *f, const struct http_reply *reply)
{
	struct sender *s = f->sender;
	const struct destination_kind *kind = s->opts.destination->kind;
	_cleanup_(freep) enum destination_fate *fates = calloc(f->batch.n, sizeof(*fates));
	char message[PUSH_MESSAGE_MAX + 1];
	uint64_t rejected;

	if (!fates || !kind->fates(reply, &f->request, f->batch.n, fates, &rejected) ||
	    fates_all_wait(fates, f->batch.n))
		return false;
	flight_sort(f, fates);
	s->opts.box->rejected += rejected;
	f->suspects = 0;
	push_message(reply, message);
	if (f->batch.n) {
		flight_fails(f, true, reply->status, message, reply->retry_after_ns);
		return true;
	}
	if (flight_is_fresh(f))
		backoff_reset(&s->backoff);
	sender_refuses(s, reply->status, message);
	flight_next(f);
	return true;
}

/* A reply without its end counts: the server has decided. Without its status a batch that is
 * stored, at least in part, would be sent again and stored twice, and a refused one would be sent
 * for ever.
 */
static long status_of(const struct http_reply *reply)
{
	return reply->cut_status >= 200 ? reply->cut_status : reply->status;
}

static void flight_replied(void *ctx, const struct http_reply *http_reply)
{
	struct flight *f = ctx;
	const struct destination_kind *kind = f->sender->opts.destination->kind;
	struct http_reply whole = *http_reply;
	const struct http_reply *reply = &whole;
	enum destination_verdict verdict;

	whole.status = status_of(http_reply);
	verdict = kind->verdict(reply);
	f->call = NULL;
	if (verdict == DESTINATION_SENT)
		flight_sent(f, reply);
	else if ((kind->fates && flight_stored_in_part(f, reply)) ||
		 (verdict == DESTINATION_SPLIT && flight_split(f)))
		return;
	else if (verdict == DESTINATION_RETRY || verdict == DESTINATION_RETRY_SMALLER)
		flight_may_pass(f, verdict, reply);
	else if ((verdict == DESTINATION_REFUSED_PART || verdict == DESTINATION_SPLIT) &&
		 f->batch.n > 1)
		flight_search(f);
	else
		flight_refused(f, verdict, reply);
}

/* ---- requests */

/* The parts of a profile that the destination does not want. */
static struct rewrite unwanted(const struct destination *d, const struct profile *profile)
{
	return (struct rewrite){
		.placeholders = d->server_symbols, /* the server names these frames */
		.whole_mappings = d->kind->whole,
		.thread_names = profile->thread_names && !d->thread_names,
	};
}

static bool is_unwanted(const struct destination *d, const struct destination_profile *profiles,
			size_t n)
{
	bool any = d->server_symbols;

	for (size_t i = 0; i < n; i++)
		any |= unwanted(d, profiles[i].profile).thread_names;
	return any;
}

/* @bufs: @n, of the new profiles. */
static int leave_unwanted(const struct destination *d, struct destination_profile *profiles,
			  size_t n, struct buf *bufs)
{
	for (size_t i = 0; i < n; i++) {
		const struct rewrite what = unwanted(d, profiles[i].profile);
		int r = 0;

		buf_init(&bufs[i], REWRITE_BYTES_MAX);
		if (what.placeholders || what.thread_names)
			r = rewrite_without(&profiles[i], &what, &bufs[i]);
		if (r)
			return r;
		if (!bufs[i].len)
			continue;
		profiles[i].pprof = bufs[i].data;
		profiles[i].pprof_len = bufs[i].len;
	}
	return 0;
}

static void flight_encode(struct work *work)
{
	struct flight *f = container_of(work, struct flight, work);
	const struct destination *d = f->sender->opts.destination;
	_cleanup_(freep) struct buf *bufs = NULL;

	f->encoded = 0;
	if (is_unwanted(d, f->profiles, f->batch.n)) {
		bufs = calloc(f->batch.n + 1, sizeof(*bufs));
		f->encoded = bufs ? leave_unwanted(d, f->profiles, f->batch.n, bufs) : -ENOMEM;
	}
	if (!f->encoded)
		f->encoded = d->kind->encode(f->profiles, f->batch.n, &f->request);
	for (size_t i = 0; bufs && i < f->batch.n; i++)
		buf_deinit(&bufs[i]);
}

static void flight_encoded(struct work *work)
{
	struct flight *f = container_of(work, struct flight, work);
	const struct sender_opts *opts = &f->sender->opts;
	const struct push push = {
		.destination = opts->destination,
		.request = &f->request,
		.connect_ns = opts->connect_ns,
		.total_ns = opts->total_ns,
	};
	int r = f->encoded;

	free(take_ptr(f->profiles));
	if (work->cancelled)
		return; /* the sender ends as well */
	if (!r)
		r = push_start(opts->http, &push, flight_replied, f, &f->call);
	if (r == -EBADMSG)
		flight_unencodable(f);
	else if (r)
		flight_fails(f, false, 0, push_start_error(r), 0);
}

static int flight_submit(struct flight *f)
{
	const struct sender_opts *opts = &f->sender->opts;
	int r;

	f->profiles = calloc(f->batch.n, sizeof(*f->profiles));
	if (!f->profiles)
		return -ENOMEM;
	outbox_profiles(opts->box, &f->batch, f->profiles);
	f->work = (struct work){.run = flight_encode, .done = flight_encoded};
	r = worker_submit(opts->encoder, &f->work);
	if (r)
		free(take_ptr(f->profiles));
	return r ? -EAGAIN : 0;
}

static void flight_send(struct flight *f)
{
	size_t n = f->max_n < f->sender->max_n ? f->max_n : f->sender->max_n;
	int r;

	outbox_list_split(&f->rest, n, &f->batch);
	f->epoch = f->sender->epoch;
	r = flight_submit(f);
	if (r)
		flight_fails(f, false, 0, push_start_error(r), 0);
}

/* False if there is nothing to take now. */
static bool flight_start(struct flight *f, uint64_t room)
{
	struct sender *s = f->sender;

	f->max_bytes = s->max_bytes;
	outbox_take(s->opts.box, s->max_n, room < s->max_bytes ? room : s->max_bytes, nsec_wall(),
		    &f->rest);
	if (!f->rest.n)
		return false;
	pace_taken(&s->pace, f->rest.n, nsec_monotonic());
	f->busy = true;
	f->payload = list_payload(s, &f->rest);
	f->suspects = 0;
	f->max_n = SIZE_MAX;
	flight_send(f);
	return true;
}

static struct flight *sender_free_flight(struct sender *s)
{
	for (size_t i = 0; i < SENDER_FLIGHTS_MAX; i++)
		if (!s->flights[i].busy)
			return &s->flights[i];
	return NULL;
}

/* Whether the pace puts the next request off; the timer is armed then. */
static bool sender_pauses(struct sender *s)
{
	const struct outbox *box = s->opts.box;
	const struct pace_load load = {
		.n = box->waiting.n + box->n_on_disk,
		.used_bytes = box->budget->used_bytes,
		.max_bytes = box->budget->max_bytes,
	};
	uint64_t wait_ns;

	if (s->hurries || !box->waiting.first)
		return false;
	wait_ns = pace_wait_ns(&s->pace, &load, nsec_monotonic());
	if (!wait_ns)
		return false;
	sender_arm(s, SENDER_GATHERING, wait_ns < SENDER_PACE_NS ? wait_ns : SENDER_PACE_NS);
	return true;
}

static void sender_due(void *ctx)
{
	struct sender *s = ctx;
	bool more = true;

	s->timer_for = SENDER_OFF;
	while (more && s->timer_for == SENDER_OFF) {
		uint64_t payload;
		size_t n = sender_n_flights(s, &payload);

		more = n < (s->backoff.failures ? 1 : SENDER_FLIGHTS_MAX) && !sender_pauses(s) &&
		       flight_start(sender_free_flight(s), SENDER_BATCH_BYTES > payload
								   ? SENDER_BATCH_BYTES - payload
								   : 0);
	}
	/* All that waited was too old. */
	if (sender_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
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
	s->pace.window_ns = opts->window_ns;
	s->max_n = opts->destination->kind->limits.profiles;
	s->max_bytes = SENDER_BATCH_BYTES;
	if (opts->destination->kind->limits.request)
		s->max_bytes = opts->destination->kind->limits.request;
	s->backoff.max_ns = SENDER_BACKOFF_NS;
	s->log_limit.interval_ns = SENDER_LOG_INTERVAL_NS;
	for (size_t i = 0; i < SENDER_FLIGHTS_MAX; i++)
		s->flights[i].sender = s;
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
	for (size_t i = 0; i < SENDER_FLIGHTS_MAX; i++) {
		struct flight *f = &s->flights[i];

		http_cancel(f->call);
		outbox_list_prepend(&f->rest, &f->batch);
		outbox_end(s->opts.box, &f->rest, EXPORT_DROPPED_STOPPED);
		destination_request_deinit(&f->request);
	}
	loop_remove(s->timer);
	free(s);
}

void sender_expect(struct sender *s, size_t n)
{
	pace_arrived(&s->pace, n, nsec_monotonic());
}

void sender_wake(struct sender *s)
{
	if (s->timer_for == SENDER_OFF && s->opts.box->waiting.first)
		sender_arm(s, SENDER_GATHERING, SENDER_GATHER_NS);
}

void sender_hurry(struct sender *s)
{
	s->hurries = true;
	if (s->timer_for != SENDER_OFF) {
		backoff_reset(&s->backoff);
		sender_arm(s, SENDER_GATHERING, 0);
	}
}

bool sender_is_idle(const struct sender *s)
{
	uint64_t payload;

	return s->timer_for == SENDER_OFF && sender_n_flights(s, &payload) == 0;
}
