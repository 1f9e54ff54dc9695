// SPDX-License-Identifier: Apache-2.0
/*
 * A request drains the kernel's samples, so that the span begins with the request and not up to a
 * second later, and drains again at the end. Scrapers wait little longer than the seconds that they
 * ask for.
 */
#include "cpu/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "cpu/capture.h"
#include "cpu/report.h"
#include "discovery/discovery.h"
#include "discovery/selection.h"
#include "pprof/pprof.h"
#include "server/httpd.h"
#include "server/pull_answer.h"

/* The longest wait for a drain: the loop is late on a busy node. */
#define CPU_HTTP_PATIENCE_NS (5 * NSEC_PER_SEC)

/**
 * struct pull - a request
 * @capture: NULL: the client has gone before the end of the span
 * @result, @stats, @pprof: of the encoding
 */
struct pull {
	struct work work;
	struct pull *prev, *next; /* of requests whose span has not ended */
	struct cpu_http *http;
	struct httpd_later *later;
	struct capture *capture;
	struct capture_result captured;
	struct loop_source *timer;
	bool off_cpu;
	bool is_ending; /* the last drain is asked for */
	_Atomic bool is_abandoned;
	int result;
	struct cpu_report_stats stats;
	struct buf pprof;
};

struct cpu_http {
	struct cpu_http_opts opts;
	struct pull *pulls;
	size_t n; /* requests, also those with the worker */
	struct pull_source source;
	struct pull_counts counts;
};

/* ---------------------------------------------------------------- answers */

static void pull_free(struct pull *pull)
{
	loop_remove(pull->timer);
	capture_free(pull->capture);
	buf_deinit(&pull->pprof);
	free(pull);
}

/* The end of a request, out of the list, with a reason. */
static void pull_fail(struct pull *pull, enum pull_outcome outcome, unsigned int status,
		      const char *why)
{
	pull_refuse(&pull->http->counts, pull->later, outcome, status, why);
	pull->http->n--;
	pull_free(pull);
}

static void pull_answer(struct pull *pull)
{
	struct cpu_http *h = pull->http;

	pull_send(&h->counts, pull->later, pull->off_cpu ? "offcpu" : "profile", &pull->pprof,
		  pull->stats.n_left_out + pull->captured.n_lost);
	h->n--;
	pull_free(pull);
}

/* ---------------------------------------------------------------- encoding */

/* Mean weight of a sample, as in the profiles of windows. */
static uint64_t period_of(const struct pull *pull)
{
	const struct capture_result *c = &pull->captured;

	if (pull->off_cpu)
		return 1;
	return c->n ? (c->value + c->n / 2) / c->n : pull->http->opts.period;
}

/* On the worker's thread. */
static void pull_run(struct work *work)
{
	struct pull *pull = container_of(work, struct pull, work);
	const struct capture_result *c = &pull->captured;
	const struct cpu_http_opts *opts = &pull->http->opts;
	const uint64_t begun_ns = cpu_share_thread_ns();
	char lost[96];
	const char *const comments[] = {pprof_producer, lost};
	const struct cpu_report_opts report = {
		.kind = pull->off_cpu ? CPU_REPORT_OFF_CPU : CPU_REPORT_TIME,
		.period = period_of(pull),
		.start_ns = nsec_wall() - (nsec_boot() - c->since_ns),
		.duration_ns = c->duration_ns,
		.max_samples = CPU_HTTP_SAMPLES_MAX,
		.max_bytes = CPU_HTTP_PPROF_MAX,
		.comments = comments,
		.n_comments = c->n_lost ? 2 : 1,
		.doc_url = opts->doc_url,
		.n_lost = c->n_unfolded,
		.lost_value = c->unfolded_value,
	};

	if (atomic_load(&pull->is_abandoned))
		return;
	snprintf(lost, sizeof(lost),
		 "podprof: %" PRIu64 " samples are missing, a limit of requests", c->n_lost);
	capture_settle(pull->capture);
	pull->result = cpu_report(c->parts, c->n_parts, opts->symbolizer, &report, &pull->pprof,
				  &pull->stats);
	symbolizer_release(opts->symbolizer);
	if (opts->share)
		cpu_share_charge(opts->share, nsec_monotonic(), cpu_share_thread_ns() - begun_ns);
}

static void pull_done(struct work *work)
{
	struct pull *pull = container_of(work, struct pull, work);

	if (work->cancelled)
		pull_fail(pull, PULL_FAILED, 503, "the agent ends");
	else if (atomic_load(&pull->is_abandoned))
		pull_fail(pull, PULL_GONE, 503, "the client has gone");
	else if (pull->result)
		pull_fail(pull, PULL_FAILED, 500,
			  pull->result < 0 ? strerror(-pull->result) : "the profile is too large");
	else
		pull_answer(pull);
}

/* ---------------------------------------------------------------- what is asked for */

enum look { LOOK_FOUND, LOOK_EXCLUDED, LOOK_NONE };

/* Host processes are entities from their first sample on, so without a selector there is always
 * something to find. @may: entities whose names may still arrive count. */
static enum look look(struct cpu_http *h, const struct selection *s, bool may)
{
	enum look found = selection_is_all(s) ? LOOK_FOUND : LOOK_NONE;
	const struct entity *entity = NULL;

	while (found && (entity = discovery_next_entity(h->opts.discovery, entity))) {
		if (!(may ? selection_may_have : selection_has)(s, entity))
			continue;
		found = entity->left_out ? LOOK_EXCLUDED : LOOK_FOUND;
	}
	return found;
}

static void tell_nothing(struct cpu_http *h, struct httpd_later *later, enum look found)
{
	if (found == LOOK_EXCLUDED)
		pull_refuse(&h->counts, later, PULL_REFUSED, 404,
			    "not to be profiled: its pod, or a setting of the agent, says so");
	else
		pull_refuse(&h->counts, later, PULL_NOTHING, 404,
			    "no such container, pod or service here");
}

/* ---------------------------------------------------------------- the span */

/* The span has ended: the worker takes the request. */
static void pull_ended(struct pull *pull)
{
	struct cpu_http *h = pull->http;
	enum look found;

	DL_DELETE(h->pulls, pull);
	(void)loop_disarm(pull->timer);
	if (capture_finish(pull->capture, &pull->captured)) {
		pull_fail(pull, PULL_FAILED, 500, "out of memory");
		return;
	}
	found = pull->captured.n_parts ? LOOK_FOUND
				       : look(h, capture_selection(pull->capture), false);
	if (found) { /* the names have arrived, and do not match */
		tell_nothing(h, pull->later, found);
		h->n--;
		pull_free(pull);
		return;
	}
	pull->work = (struct work){.run = pull_run, .done = pull_done};
	if (worker_submit_first(h->opts.worker, &pull->work))
		pull_fail(pull, PULL_BUSY, 429, "too many reports are waiting; retry later");
}

static void on_timer(void *ctx)
{
	struct pull *pull = ctx;
	struct cpu_http *h = pull->http;

	if (!pull->capture) {
		DL_DELETE(h->pulls, pull);
		pull_fail(pull, PULL_GONE, 503, "the client has gone");
	} else if (capture_state(pull->capture) == CAPTURE_WAITING) {
		DL_DELETE(h->pulls, pull);
		pull_fail(pull, PULL_FAILED, 503, "no samples could be taken in time");
	} else if (pull->is_ending) {
		capture_end(pull->capture, nsec_boot());
		pull_ended(pull);
	} else {
		pull->is_ending = true;
		(void)loop_arm(pull->timer, CPU_HTTP_PATIENCE_NS, 0);
		h->opts.drain(h->opts.ctx); /* the last: may end the request */
	}
}

void cpu_http_drained(struct cpu_http *h, bool off_cpu, uint64_t until_ns)
{
	struct pull *pull, *next;

	DL_FOREACH_SAFE(h->pulls, pull, next) {
		enum capture_state before, now;

		if (!pull->capture)
			continue;
		before = capture_state(pull->capture);
		now = capture_drained(pull->capture, off_cpu, until_ns);
		if (now == CAPTURE_ENDED)
			pull_ended(pull);
		else if (now != before)
			(void)loop_arm(pull->timer, capture_rest_ns(pull->capture, nsec_boot()) + 1,
				       0);
	}
}

void cpu_http_sample(struct cpu_http *h, bool off_cpu, struct entity *entity,
		     const struct cpu_stack *stack, uint64_t count, uint64_t value)
{
	struct pull *pull;

	DL_FOREACH(h->pulls, pull)
	{
		if (pull->capture)
			capture_add(pull->capture, off_cpu, entity, stack, count, value);
	}
}

/* Before the end of the span only the stacks go now: an answer must not come from here. */
static void on_gone(void *ctx)
{
	struct pull *pull = ctx;

	atomic_store(&pull->is_abandoned, true);
	if (capture_state(pull->capture) == CAPTURE_ENDED)
		return;
	capture_free(pull->capture);
	pull->capture = NULL;
	(void)loop_arm(pull->timer, 1, 0);
}

/* ---------------------------------------------------------------- requests */

static int pull_new(struct cpu_http *h, const struct pull_ask *ask, struct selection *selection,
		    struct httpd_later *later, struct pull **ret)
{
	struct pull *pull = calloc(1, sizeof(*pull));
	int r;

	if (!pull)
		return -ENOMEM;
	pull->http = h;
	pull->later = later;
	pull->off_cpu = ask->what == PULL_OFF_CPU;
	buf_init(&pull->pprof, CPU_HTTP_PPROF_MAX);
	r = loop_add_timer(h->opts.loop, on_timer, pull, &pull->timer);
	if (!r)
		r = capture_new(selection, pull->off_cpu, nsec_boot(), ask->seconds * NSEC_PER_SEC,
				&pull->capture);
	if (r)
		pull_free(pull);
	else
		*ret = pull;
	return r;
}

static void pull_begin(struct cpu_http *h, const struct pull_ask *ask, struct selection *selection,
		       struct httpd_later *later)
{
	struct pull *pull;

	if (pull_new(h, ask, selection, later, &pull)) {
		pull_refuse(&h->counts, later, PULL_FAILED, 500, "out of memory");
		return;
	}
	h->n++;
	DL_APPEND(h->pulls, pull);
	httpd_later_on_gone(later, on_gone, pull);
	(void)loop_arm(pull->timer, CPU_HTTP_PATIENCE_NS, 0);
	h->opts.drain(h->opts.ctx);
}

static bool is_busy(const struct cpu_http *h)
{
	return h->n >= CPU_HTTP_MAX ||
	       (h->opts.share &&
		cpu_share_wait_ns(h->opts.share, nsec_monotonic()) > CPU_HTTP_DEBT_MAX_NS);
}

static void on_pull(void *ctx, const struct pull_ask *ask, struct httpd_later *later)
{
	const struct selection_words words = {ask->container, ask->pod, ask->service};
	_cleanup_(selection_deinit) struct selection selection = {.id = ""};
	struct cpu_http *h = ctx;
	enum look found;
	int r;

	if (ask->what == PULL_OFF_CPU && !h->opts.off_cpu) {
		pull_refuse(&h->counts, later, PULL_NOTHING, 404,
			    "off-CPU profiling is off: --off-cpu");
		return;
	}
	if (is_busy(h)) {
		pull_refuse(&h->counts, later, PULL_BUSY, 429,
			    "other requests are under way; retry later");
		return;
	}
	r = selection_init(&selection, h->opts.discovery, &words);
	if (r > 0) {
		pull_refuse(&h->counts, later, PULL_NOTHING, 400,
			    "more than one container's id begins like that");
		return;
	}
	if (r) {
		pull_refuse(&h->counts, later, PULL_FAILED, 500, "out of memory");
		return;
	}
	found = look(h, &selection, true);
	if (found)
		tell_nothing(h, later, found);
	else
		pull_begin(h, ask, &selection, later);
}

/* ---------------------------------------------------------------- the whole */

int cpu_http_new(const struct cpu_http_opts *opts, struct cpu_http **ret)
{
	struct cpu_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->opts = *opts;
	h->source = (struct pull_source){h, on_pull};
	*ret = h;
	return 0;
}

void cpu_http_stop(struct cpu_http *h)
{
	struct pull *pull, *next;

	if (!h)
		return;
	DL_FOREACH_SAFE(h->pulls, pull, next) {
		DL_DELETE(h->pulls, pull);
		pull_fail(pull, PULL_FAILED, 503, "the agent ends");
	}
}

void cpu_http_free(struct cpu_http *h)
{
	free(h);
}

const struct pull_source *cpu_http_source(const struct cpu_http *h)
{
	return h ? &h->source : NULL;
}

void cpu_http_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc pulls = {
		"podprof_cpu_pulls", METRIC_COUNTER,
		"Requests for CPU and off-CPU profiles, and the samples left out of the answers.",
		NULL};
	const struct cpu_http *h = ctx;

	pull_collect(&h->counts, &pulls, PULL_STUCK, sink);
}
