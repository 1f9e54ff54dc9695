// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "server/basic_auth.h"
#include "server/exposition.h"
#include "server/gzip.h"
#include "server/httpd.h"
#include "server/job.h"
#include "server/web_access.h"

/* A metrics page is served again until it is older than so many times the CPU time of making it.
 * Scrapes therefore take at most a tenth of the loop's time, and an ordinary page of 1 ms is at
 * most 9 ms old. */
#define SERVER_PAGE_REUSE 9

/* A request for the metrics, whose page is being made. */
struct scrape {
	struct scrape *prev, *next;
	struct httpd_later *later;
	enum accept_format format;
	bool gzip;
};

/**
 * struct metrics_page - the last metrics page in one format
 * @packed:  the same by gzip, made when first asked for
 * @making:  the page under way; NULL: @text is whole, or empty
 * @packing: @packed under way; NULL: @packed is whole, or empty
 */
struct metrics_page {
	struct buf text, packed;
	struct exposition *making;
	struct gzip *packing;
	uint64_t made_ns;
	uint64_t cost_ns;
};

struct server {
	struct httpd *httpd;
	struct httpd *metrics_httpd; /* NULL: one address for all */
	struct http_jobs *jobs;
	struct metrics_page pages[ACCEPT_FORMAT_MAX];
	struct scrape *scrapes; /* in the order of their arrival */
	struct loop_source *steps;
	struct cpu_share *share;
	const struct metric_list *metrics;
	const struct health *health;
	const struct ui_source *ui;
	const struct pull_sources *pull;
	struct web_access *access;
	struct basic_auth *auth; /* of @access; NULL: no users */
	bool is_ending;
	struct exposition_stats stats;
};

static bool page_fresh(const struct metrics_page *page)
{
	return page->text.len && !page->making &&
	       nsec_monotonic() - page->made_ns < SERVER_PAGE_REUSE * page->cost_ns;
}

static void page_reset(struct metrics_page *page)
{
	exposition_free(page->making);
	page->making = NULL;
	gzip_free(page->packing);
	page->packing = NULL;
	buf_reset(&page->text);
	buf_reset(&page->packed);
	page->cost_ns = 0;
}

static int page_begin(struct server *s, enum accept_format format)
{
	struct metrics_page *page = &s->pages[format];

	page_reset(page);
	page->made_ns = nsec_monotonic();
	return exposition_new(s->metrics, format, &s->stats, &page->text, &page->making);
}

static int page_go_on(struct metrics_page *page)
{
	int r = exposition_step(page->making);

	if (r == EXPOSITION_MORE)
		return 0;
	exposition_free(page->making);
	page->making = NULL;
	return r;
}

static int page_pack(struct metrics_page *page)
{
	int r = gzip_step(page->packing, &page->packed);

	if (r == GZIP_MORE)
		return 0;
	gzip_free(page->packing);
	page->packing = NULL;
	return r;
}

/* @ret_ready: the page is what the scrape asks for. 0 or -errno. */
static int scrape_step(struct server *s, const struct scrape *scrape, bool *ret_ready)
{
	struct metrics_page *page = &s->pages[scrape->format];
	uint64_t begun_ns = cpu_share_thread_ns(), took_ns;
	int r = 0;

	*ret_ready = false;
	if (page->making)
		r = page_go_on(page);
	else if (!page->text.len)
		r = page_begin(s, scrape->format);
	else if (scrape->gzip && page->packing)
		r = page_pack(page);
	else if (scrape->gzip && !page->packed.len)
		r = gzip_new(page->text.data, page->text.len, &page->packing);
	else
		*ret_ready = true;
	took_ns = cpu_share_thread_ns() - begun_ns;
	page->cost_ns += took_ns;
	if (s->share)
		cpu_share_charge(s->share, nsec_monotonic(), took_ns);
	return r;
}

static void metrics_response(const struct metrics_page *page, enum accept_format format, bool gzip,
			     struct httpd_response *ret)
{
	const struct buf *body = gzip ? &page->packed : &page->text;

	ret->is_essential = true;
	ret->is_gzip = gzip;
	ret->content_type = accept_content_type(format);
	ret->compress = true;
	if (buf_append(&ret->body, body->data, body->len))
		httpd_fail(ret, 500, "out of memory");
}

static void scrape_answer(struct server *s, struct scrape *scrape, const char *why)
{
	struct httpd_response response = {.status = 200, .body = BUF_INIT(HTTPD_BODY_MAX)};

	if (why)
		httpd_fail(&response, 500, why);
	else
		metrics_response(&s->pages[scrape->format], scrape->format, scrape->gzip,
				 &response);
	DL_DELETE(s->scrapes, scrape);
	httpd_later_answer(scrape->later, &response);
	free(scrape);
}

/* A part of the page of the oldest request, or its answer. */
static bool on_step(void *ctx)
{
	struct server *s = ctx;
	struct scrape *scrape = s->scrapes;
	bool ready;
	int r;

	if (!scrape)
		return false;
	r = scrape_step(s, scrape, &ready);
	if (r)
		page_reset(&s->pages[scrape->format]);
	if (r || ready)
		scrape_answer(s, scrape, r ? "out of memory" : NULL);
	return s->scrapes;
}

static bool is_awaited(const struct server *s, enum accept_format format)
{
	const struct scrape *scrape;

	DL_FOREACH(s->scrapes, scrape)
	if (scrape->format == format)
		return true;
	return false;
}

static void answer_metrics(struct server *s, const struct httpd_request *request,
			   struct httpd_response *ret)
{
	const enum accept_format format = accept_format(httpd_header(request, "Accept"));
	const bool gzip = httpd_accepts_gzip(request);
	struct metrics_page *page = &s->pages[format];
	struct scrape *scrape;

	if (page_fresh(page) && (!gzip || (page->packed.len && !page->packing))) {
		metrics_response(page, format, gzip, ret);
		return;
	}
	scrape = calloc(1, sizeof(*scrape));
	if (scrape)
		scrape->later = httpd_later(request);
	if (!scrape || !scrape->later) {
		free(scrape);
		httpd_fail(ret, 500, "out of memory");
		return;
	}
	if (!page_fresh(page) && !is_awaited(s, format))
		page_reset(page);
	scrape->format = format;
	scrape->gzip = gzip;
	DL_APPEND(s->scrapes, scrape);
	(void)loop_arm(s->steps, 0, 0); /* fails only for an invalid delay */
}

static void answer_health(const struct server *s, enum health_kind kind, unsigned int bad,
			  struct httpd_response *ret)
{
	ret->is_essential = true;
	ret->content_type = "text/plain; charset=utf-8";
	ret->status = health_ok(s->health, kind) ? 200 : bad;
	if (s->auth ? health_summarize(s->health, kind, &ret->body)
		    : health_render(s->health, kind, &ret->body))
		httpd_fail(ret, 500, "out of memory");
}

static bool answer_open(struct server *s, const struct httpd_request *request,
			struct httpd_response *ret)
{
	const char *path = httpd_path(request);

	/* also without a guard, and for a password that is found right at the end */
	if (s->is_ending)
		httpd_fail(ret, 503, "the agent ends");
	else if (strcmp(path, "/metrics") == 0)
		answer_metrics(s, request, ret);
	else if (strcmp(path, "/-/healthy") == 0)
		answer_health(s, HEALTH_LIVE, 500, ret);
	else if (strcmp(path, "/-/ready") == 0)
		answer_health(s, HEALTH_READY, 503, ret);
	else
		return false;
	return true;
}

static void on_metrics_request(void *ctx, const struct httpd_request *request,
			       struct httpd_response *ret)
{
	if (!answer_open(ctx, request, ret))
		httpd_fail(ret, 404,
			   "only /metrics, /-/healthy and /-/ready here; the page is at the "
			   "address of --ui-listen");
}

static void on_request(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	struct server *s = ctx;

	if (answer_open(s, request, ret) || pull_handle(s->pull, request, ret))
		return;
	if (!s->ui || !ui_handle(s->ui, s->jobs, request, ret))
		httpd_fail(ret, 404, "no such page; start at / or /metrics");
}

static int on_guard(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	const char *path = httpd_path(request);
	struct server *s = ctx;

	if (s->is_ending) {
		httpd_fail(ret, 503, "the agent ends");
		return HTTPD_GUARD_ANSWER;
	}
	if (strcmp(path, "/-/healthy") == 0 || strcmp(path, "/-/ready") == 0)
		return HTTPD_GUARD_ALLOW;
	return basic_auth_check(s->auth, request, ret);
}

DEFINE_CLEANUP(struct server *, server_freep, server_free);

/* The second address gets no other limits: it is as open. */
static int listen_all(struct server *s, const struct server_opts *opts, bool *ret_ui)
{
	const struct listen_plan *plan = opts->addresses;
	struct httpd_opts httpd = {
		.loop = opts->loop,
		.address = &plan->ui,
		.handler = on_request,
		.guard = s->auth ? on_guard : NULL,
		.ctx = s,
		.tls = web_access_tls(opts->access),
		.share = opts->share,
	};
	int r = httpd_new(&httpd, &s->httpd);

	*ret_ui = !plan->is_one;
	if (r || plan->is_one)
		return r;
	*ret_ui = false;
	httpd.address = &plan->metrics;
	httpd.handler = on_metrics_request;
	return httpd_new(&httpd, &s->metrics_httpd);
}

int server_new(const struct server_opts *opts, bool *ret_ui, struct server **ret)
{
	_cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));
	int r;

	*ret_ui = false;
	if (!s)
		return -ENOMEM;
	s->share = opts->share;
	s->metrics = opts->metrics;
	s->health = opts->health;
	s->ui = opts->ui;
	s->pull = opts->pull;
	s->auth = web_access_auth(opts->access);
	for (size_t i = 0; i < array_size(s->pages); i++) {
		buf_init(&s->pages[i].text, EXPOSITION_PAGE_MAX);
		buf_init(&s->pages[i].packed, EXPOSITION_PAGE_MAX);
	}
	r = loop_add_steps(opts->loop, on_step, s, &s->steps);
	if (!r)
		r = listen_all(s, opts, ret_ui);
	if (!r)
		r = http_jobs_new(opts->loop, opts->share, 0, &s->jobs);
	if (r)
		return r;
	s->access = opts->access;
	*ret = take_ptr(s);
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	s->is_ending = true; /* answers let the server read further requests */
	while (s->scrapes)
		scrape_answer(s, s->scrapes, "the agent ends");
	loop_remove(s->steps);
	http_jobs_free(s->jobs);
	web_access_free(s->access);
	httpd_free(s->httpd);
	httpd_free(s->metrics_httpd);
	for (size_t i = 0; i < array_size(s->pages); i++) {
		page_reset(&s->pages[i]);
		buf_deinit(&s->pages[i].text);
		buf_deinit(&s->pages[i].packed);
	}
	free(s);
}

const char *server_address(const struct server *s)
{
	return httpd_address(s->httpd);
}

const char *server_metrics_address(const struct server *s)
{
	return httpd_address(s->metrics_httpd ? s->metrics_httpd : s->httpd);
}

void server_collect(void *ctx, struct metric_sink *sink)
{
	struct server *s = ctx;
	const struct httpd *const all[] = {s->httpd, s->metrics_httpd};

	httpd_collect(all, s->metrics_httpd ? 2 : 1, sink);
	http_jobs_collect(s->jobs, sink);
	exposition_collect(&s->stats, sink);
	if (s->access)
		web_access_collect(s->access, sink);
}
