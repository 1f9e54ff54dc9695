// SPDX-License-Identifier: Apache-2.0
#include "server/ui.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "server/asset.h"
#include "server/httpd.h"
#include "server/page.h"
#include "server/snapshot.h"

/* Bytes of an entity's id with its NUL: a folder's name, which file systems limit to 255. Reached:
 * 404. */
#define UI_ID_MAX     256
/* Bytes of a failure's reason with its NUL. Reached: cut. */
#define UI_REASON_MAX 512

#define UI_GONE_TEXT                                                                             \
	"There is nothing at this address. The container, service or process has ended and has " \
	"no stored profiles any more, or the link is wrong."

static void fail(struct httpd_response *ret, int r)
{
	if (r == UI_GONE)
		httpd_fail(ret, 404, "no longer available");
	else if (r > 0)
		httpd_fail(ret, 500, "the answer is too large");
	else
		httpd_fail(ret, 500, strerror(-r));
}

/* A failure is a line of text. People follow links and bookmarks to pages, so theirs is a page. */
static void show_failure(const struct ui_source *ui, struct httpd_response *ret)
{
	_cleanup_(buf_deinit) struct buf page = BUF_INIT(HTTPD_BODY_MAX);
	char why[UI_REASON_MAX] = UI_GONE_TEXT;

	if (ret->status != 404)
		snprintf(why, sizeof(why), "%s", ret->body.data ? ret->body.data : "");
	why[strcspn(why, "\n")] = '\0';
	if (page_failure(ui->node, ret->status == 404 ? "Not found" : "No answer", why, &page))
		return; /* without memory the line stays */
	buf_deinit(&ret->body);
	ret->body = page;
	page = (struct buf)BUF_INIT(0);
	ret->content_type = "text/html; charset=utf-8";
}

/* A page; rendered by the worker from a copy of its data, which the loop makes in steps. */
struct page_job {
	struct http_job job;
	const struct ui_source *ui;
	struct ui_snapshot *snapshot;
	bool is_entity;
	char id[UI_ID_MAX];
};

static int page_job_prepare(struct http_job *job)
{
	return ui_snapshot_step(container_of(job, struct page_job, job)->snapshot);
}

static int page_job_run(struct http_job *job, struct buf *ret)
{
	const struct page_job *page = container_of(job, struct page_job, job);
	const struct ui_data *ui = ui_snapshot_get(page->snapshot);

	return page->is_entity ? page_entity(ui, page->id, ret) : page_overview(ui, ret);
}

static void page_job_free(struct http_job *job)
{
	struct page_job *page = container_of(job, struct page_job, job);

	ui_snapshot_free(page->snapshot);
	free(page);
}

static void page_job_failed(struct http_job *job, struct httpd_response *response)
{
	show_failure(container_of(job, struct page_job, job)->ui, response);
}

static void begin_page(const struct ui_source *ui, struct http_jobs *jobs, const char *id,
		       const struct httpd_request *request, struct httpd_response *ret)
{
	struct page_job *page;
	int r;

	if (!http_jobs_admit(jobs, ret))
		return;
	page = calloc(1, sizeof(*page));
	r = page ? ui_snapshot_new(ui, id, &page->snapshot) : -ENOMEM;
	if (r) {
		free(page);
		fail(ret, r);
		return;
	}
	page->job.prepare = page_job_prepare;
	page->job.run = page_job_run;
	page->job.free = page_job_free;
	page->job.failed = page_job_failed;
	page->ui = ui;
	page->is_entity = id;
	snprintf(page->id, sizeof(page->id), "%s", id ? id : "");
	ret->content_type = "text/html; charset=utf-8";
	ret->compress = true;
	http_jobs_submit(jobs, request, &page->job, ret);
}

/* @id: NULL for the page of all entities. */
static void answer_page(const struct ui_source *ui, struct http_jobs *jobs, const char *id,
			const struct httpd_request *request, struct httpd_response *ret)
{
	begin_page(ui, jobs, id, request, ret);
	if (ret->status >= 400)
		show_failure(ui, ret);
}

static void answer_asset(struct strview name, struct httpd_response *ret)
{
	for (size_t i = 0; i < n_assets; i++)
		if (strview_is(&name, assets[i].name)) {
			ret->content_type = assets[i].content_type;
			ret->etag = assets[i].etag;
			ret->fixed = assets[i].data;
			ret->fixed_len = assets[i].len;
			return;
		}
	httpd_fail(ret, 404, "no such file");
}

/* NUMBER.pb.gz */
static void answer_raw(const struct ui_source *ui, struct http_jobs *jobs, struct strview name,
		       const struct httpd_request *request, struct httpd_response *ret)
{
	struct http_job *job;
	uint64_t id;
	int r;

	if (!strview_suffix(&name, ".pb.gz") || !strview_only_u64(name, 10, &id)) {
		httpd_fail(ret, 404, "no such profile");
		return;
	}
	if (!http_jobs_admit(jobs, ret))
		return;
	r = ui->raw(ui->ctx, id, &job);
	if (r) {
		fail(ret, r);
		return;
	}
	ret->content_type = "application/octet-stream";
	snprintf(ret->filename, sizeof(ret->filename), "%s-%" PRIu64 ".pb.gz", ui->node, id);
	http_jobs_submit(jobs, request, job, ret);
}

/* Milliseconds in a parameter, as nanoseconds; @fallback if there is none. */
static bool query_time(const struct httpd_request *request, const char *name, uint64_t fallback,
		       uint64_t *ret_ns)
{
	const char *value = httpd_query(request, name);
	uint64_t ms;

	*ret_ns = fallback;
	if (!value)
		return true;
	return strview_only_u64(strview_of(value), 10, &ms) &&
	       !__builtin_mul_overflow(ms, NSEC_PER_MSEC, ret_ns);
}

static void answer_flame(const struct ui_source *ui, struct http_jobs *jobs, const char *entity,
			 const struct httpd_request *request, struct httpd_response *ret)
{
	struct ui_flame_query query = {
		.entity = entity,
		.kind = httpd_query(request, "kind"),
		.type = httpd_query(request, "type"),
	};
	struct http_job *job;
	int r;

	if (!query.kind || !query_time(request, "from", 0, &query.from_ns) ||
	    !query_time(request, "until", UINT64_MAX, &query.until_ns)) {
		httpd_fail(ret, 400, "kind is missing; from and until are milliseconds since 1970");
		return;
	}
	if (!http_jobs_admit(jobs, ret))
		return;
	r = ui->flame(ui->ctx, &query, &job);
	if (r) {
		fail(ret, r);
		return;
	}
	ret->content_type = "application/json";
	ret->compress = true;
	http_jobs_submit(jobs, request, job, ret);
}

/* /entity/ID or /entity/ID/flame.json */
static void answer_entity(const struct ui_source *ui, struct http_jobs *jobs, struct strview rest,
			  const struct httpd_request *request, struct httpd_response *ret)
{
	char entity[UI_ID_MAX];
	struct strview id;

	if (!strview_until(&rest, '/', &id) || strview_len(&id) >= sizeof(entity)) {
		httpd_fail(ret, 404, "no such entity");
		show_failure(ui, ret);
		return;
	}
	snprintf(entity, sizeof(entity), "%.*s", (int)strview_len(&id), id.p);
	if (strview_empty(&rest)) {
		answer_page(ui, jobs, entity, request, ret);
	} else if (strview_is(&rest, "flame.json")) {
		answer_flame(ui, jobs, entity, request, ret);
	} else {
		httpd_fail(ret, 404, "no such page");
		show_failure(ui, ret);
	}
}

bool ui_handle(const struct ui_source *ui, struct http_jobs *jobs,
	       const struct httpd_request *request, struct httpd_response *ret)
{
	struct strview path = strview_of(httpd_path(request));

	if (strview_is(&path, "/"))
		answer_page(ui, jobs, NULL, request, ret);
	else if (strview_prefix(&path, "/entity/"))
		answer_entity(ui, jobs, path, request, ret);
	else if (strview_prefix(&path, "/profile/"))
		answer_raw(ui, jobs, path, request, ret);
	else if (strview_prefix(&path, "/assets/"))
		answer_asset(path, ret);
	else
		return false;
	return true;
}
