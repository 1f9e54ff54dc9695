// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/exposition.h"
#include "server/httpd.h"

struct server {
	struct httpd *httpd;
	const struct metric_list *metrics;
	const struct health *health;
	const struct ui_source *ui;
	const struct pull_source *pull;
	struct exposition_stats stats;
};

static void answer_metrics(struct server *s, const struct httpd_request *request,
			   struct httpd_response *ret)
{
	enum accept_format format = accept_format(httpd_header(request, "Accept"));

	ret->body.max = EXPOSITION_PAGE_MAX;
	if (exposition_render(s->metrics, format, &s->stats, &ret->body)) {
		httpd_fail(ret, 500, "out of memory");
		return;
	}
	ret->content_type = accept_content_type(format);
	ret->compress = true;
}

static void answer_health(const struct server *s, enum health_kind kind, unsigned int bad,
			  struct httpd_response *ret)
{
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
	else if (!s->ui || !ui_handle(s->ui, request, ret))
		httpd_fail(ret, 404, "no such page; start at / or /metrics");
}

int server_new(const struct server_opts *opts, struct server **ret)
{
	_cleanup_(freep) struct server *s = calloc(1, sizeof(*s));
	struct httpd_opts httpd = {
		.loop = opts->loop,
		.address = opts->address,
		.handler = on_request,
		.ctx = s,
	};
	int r;

	if (!s)
		return -ENOMEM;
	s->metrics = opts->metrics;
	s->health = opts->health;
	s->ui = opts->ui;
	s->pull = opts->pull;
	r = httpd_new(&httpd, &s->httpd);
	if (r)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	httpd_free(s->httpd);
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
	exposition_collect(&s->stats, sink);
}
