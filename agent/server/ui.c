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

/* Bytes of an entity's id with its NUL: a folder's name, which file systems limit to 255. Reached:
 * 404. */
#define UI_ID_MAX 256

static void fail(struct httpd_response *ret, int r)
{
	if (r == UI_GONE)
		httpd_fail(ret, 404, "no longer available");
	else if (r > 0)
		httpd_fail(ret, 500, "the answer is too large");
	else
		httpd_fail(ret, 500, strerror(-r));
}

static void answer_html(int r, struct httpd_response *ret)
{
	ret->content_type = "text/html; charset=utf-8";
	ret->compress = true;
	if (r)
		fail(ret, r);
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
static void answer_raw(const struct ui_source *ui, struct strview name, struct httpd_response *ret)
{
	uint64_t id;
	int r;

	if (!strview_suffix(&name, ".pb.gz") || !strview_only_u64(name, 10, &id)) {
		httpd_fail(ret, 404, "no such profile");
		return;
	}
	ret->content_type = "application/octet-stream";
	snprintf(ret->filename, sizeof(ret->filename), "%s-%" PRIu64 ".pb.gz", ui->node, id);
	r = ui->raw(ui->ctx, id, &ret->body);
	if (r)
		fail(ret, r);
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

static int json_put(const char *data, size_t n, void *arg)
{
	return buf_append(arg, data, n) ? -1 : 0;
}

static void answer_flame(const struct ui_source *ui, const char *entity,
			 const struct httpd_request *request, struct httpd_response *ret)
{
	struct ui_flame_query query = {
		.entity = entity,
		.kind = httpd_query(request, "kind"),
		.type = httpd_query(request, "type"),
	};
	json_t *json = NULL;
	int r;

	if (!query.kind || !query_time(request, "from", 0, &query.from_ns) ||
	    !query_time(request, "until", UINT64_MAX, &query.until_ns)) {
		httpd_fail(ret, 400, "kind is missing; from and until are milliseconds since 1970");
		return;
	}
	r = ui->flame(ui->ctx, &query, &json);
	if (!r && json_dump_callback(json, json_put, &ret->body, JSON_COMPACT))
		r = -ENOMEM;
	json_decref(json);
	ret->content_type = "application/json";
	ret->compress = true;
	if (r)
		fail(ret, r);
}

/* /entity/ID or /entity/ID/flame.json */
static void answer_entity(const struct ui_source *ui, struct strview rest,
			  const struct httpd_request *request, struct httpd_response *ret)
{
	char entity[UI_ID_MAX];
	struct strview id;

	if (!strview_until(&rest, '/', &id) || strview_len(&id) >= sizeof(entity)) {
		httpd_fail(ret, 404, "no such entity");
		return;
	}
	snprintf(entity, sizeof(entity), "%.*s", (int)strview_len(&id), id.p);
	if (strview_empty(&rest))
		answer_html(page_entity(ui, entity, &ret->body), ret);
	else if (strview_is(&rest, "flame.json"))
		answer_flame(ui, entity, request, ret);
	else
		httpd_fail(ret, 404, "no such page");
}

bool ui_handle(const struct ui_source *ui, const struct httpd_request *request,
	       struct httpd_response *ret)
{
	struct strview path = strview_of(httpd_path(request));

	if (strview_is(&path, "/"))
		answer_html(page_overview(ui, &ret->body), ret);
	else if (strview_prefix(&path, "/entity/"))
		answer_entity(ui, path, request, ret);
	else if (strview_prefix(&path, "/profile/"))
		answer_raw(ui, path, ret);
	else if (strview_prefix(&path, "/assets/"))
		answer_asset(path, ret);
	else
		return false;
	return true;
}
