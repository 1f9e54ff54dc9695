// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/nsec.h"
#include "server/exposition.h"
#include "server/gzip.h"
#include "server/httpd.h"
#include "server/job.h"

/* A metrics page is served again until it is older than so many times the CPU time of making it.
 * Scrapes therefore take at most a tenth of the loop's time, and an ordinary page of 1 ms is at
 * most 9 ms old. */
#define SERVER_PAGE_REUSE 9

/* The last metrics page in one format. @packed: the same by gzip, made when first asked for. */
struct metrics_page {
	struct buf text, packed;
	uint64_t made_ns;
	uint64_t cost_ns;
};

struct server {
	struct httpd *httpd;
	struct http_jobs *jobs;
	struct metrics_page pages[ACCEPT_FORMAT_MAX];
	const struct metric_list *metrics;
	const struct health *health;
	const struct ui_source *ui;
	const struct pull_source *pull;
	struct exposition_stats stats;
};

static int page_refresh(struct server *s, enum accept_format format, bool gzip)
{
	struct metrics_page *page = &s->pages[format];
	uint64_t begun_ns = cpu_share_thread_ns();
	int r = 0;

	if (!page->text.len ||
	    nsec_monotonic() - page->made_ns >= SERVER_PAGE_REUSE * page->cost_ns) {
		page->cost_ns = 0;
		buf_reset(&page->text);
		buf_reset(&page->packed);
		r = exposition_render(s->metrics, format, &s->stats, &page->text);
		page->made_ns = nsec_monotonic();
	}
	if (!r && gzip && !page->packed.len)
		r = gzip_append(page->text.data, page->text.len, &page->packed);
	page->cost_ns += cpu_share_thread_ns() - begun_ns;
	if (r)
		buf_reset(&page->text);
	return r;
}

static void answer_metrics(struct server *s, const struct httpd_request *request,
			   struct httpd_response *ret)
{
	enum accept_format format = accept_format(httpd_header(request, "Accept"));
	const struct metrics_page *page = &s->pages[format];
	const struct buf *body;

	ret->is_essential = true;
	ret->is_gzip = httpd_accepts_gzip(request);
	body = ret->is_gzip ? &page->packed : &page->text;
	if (page_refresh(s, format, ret->is_gzip) ||
	    buf_append(&ret->body, body->data, body->len)) {
		httpd_fail(ret, 500, "out of memory");
		return;
	}
	ret->content_type = accept_content_type(format);
	ret->compress = true;
}

static void answer_health(const struct server *s, enum health_kind kind, unsigned int bad,
			  struct httpd_response *ret)
{
	ret->is_essential = true;
	ret->content_type = "text/plain; charset=utf-8";
	ret->status = health_ok(s->health, kind) ? 200 : bad;
	if (health_render(s->health, kind, &ret->body))
		httpd_fail(ret, 500, "out of memory");
}

static void on_request(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	struct server *s = ctx;
	const char *path = httpd_path(request);

	if (strcmp(path, "/metrics") == 0)
		answer_metrics(s, request, ret);
	else if (strcmp(path, "/-/healthy") == 0)
		answer_health(s, HEALTH_LIVE, 500, ret);
	else if (strcmp(path, "/-/ready") == 0)
		answer_health(s, HEALTH_READY, 503, ret);
	else if (pull_handle(s->pull, request, ret))
		return;
	else if (!s->ui || !ui_handle(s->ui, s->jobs, request, ret))
		httpd_fail(ret, 404, "no such page; start at / or /metrics");
}

DEFINE_CLEANUP(struct server *, server_freep, server_free);

int server_new(const struct server_opts *opts, struct server **ret)
{
	_cleanup_(server_freep) struct server *s = calloc(1, sizeof(*s));
	struct httpd_opts httpd = {
		.loop = opts->loop,
		.address = opts->address,
		.handler = on_request,
		.ctx = s,
		.share = opts->share,
	};
	int r;

	if (!s)
		return -ENOMEM;
	s->metrics = opts->metrics;
	s->health = opts->health;
	s->ui = opts->ui;
	s->pull = opts->pull;
	for (size_t i = 0; i < array_size(s->pages); i++) {
		buf_init(&s->pages[i].text, EXPOSITION_PAGE_MAX);
		buf_init(&s->pages[i].packed, EXPOSITION_PAGE_MAX);
	}
	r = httpd_new(&httpd, &s->httpd);
	if (!r)
		r = http_jobs_new(opts->loop, opts->share, &s->jobs);
	if (r)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	http_jobs_free(s->jobs);
	httpd_free(s->httpd);
	for (size_t i = 0; i < array_size(s->pages); i++) {
		buf_deinit(&s->pages[i].text);
		buf_deinit(&s->pages[i].packed);
	}
	free(s);
}

const char *server_address(const struct server *s)
{
	return httpd_address(s->httpd);
}

void server_collect(void *ctx, struct metric_sink *sink)
{
	struct server *s = ctx;

	httpd_collect(s->httpd, sink);
	http_jobs_collect(s->jobs, sink);
	exposition_collect(&s->stats, sink);
}
