// SPDX-License-Identifier: Apache-2.0
/*
 * ProfileStoreService.WriteRaw through Parca's JSON gateway:
 *
 *	{"normalized":true,
 *	 "series":[{"labels":{"labels":[{"name":"__name__","value":"memory"},...]},
 *		    "samples":[{"rawProfile":"BASE64"},...]}]}
 *
 * podprof's addresses are those of the file: "normalized".
 *
 * Parca takes a profile with a duration for a difference ("delta") and shows a rate. Values in use
 * are a moment's, so a heap profile goes as two: allocations with the duration, values in use
 * without.
 *
 * Parca's symbolizer looks for the segment of an address in the file that it has. A separate debug
 * file of objcopy has other offsets, and the search fails. With a mapping of the whole address
 * space there is no search (pkg/symbolizer/normalize.go).
 *
 * A profile that Parca cannot read and a failure of Parca itself have the same status, 500. A batch
 * with this answer is searched for the profile, and a profile refused alone is dropped.
 */
#include "export/parca.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/http.h"
#include "base/labels.h"
#include "export/base64.h"
#include "export/rewrite.h"
#include "pprof/projection.h"
#include "pprof/reader.h"

/* Profiles in a request. Reached: the next request. */
#define PARCA_PROFILES_MAX 128
/* Bytes of compressed pprof in a request: Parca reads a request for 5 seconds at most. Reached:
 * the next request. */
#define PARCA_PPROF_MAX	   (1u << 20)
/* Bytes of a request: base64 takes 4 for 3, labels take 512 KiB of one profile. Reached: the
 * request is split. */
#define PARCA_BODY_MAX	   (64u << 20)

static int put_sample(struct buf *body, const char *before, const void *pprof, size_t n)
{
	int r = buf_printf(body, "%s{\"rawProfile\":\"", before);

	if (!r)
		r = base64_put(body, pprof, n);
	return r ? r : buf_puts(body, "\"}");
}

static int add_label(json_t *labels, const char *name, const char *value)
{
	return json_array_append_new(labels, json_pack("{s:s,s:s}", "name", name, "value", value))
		       ? -ENOMEM
		       : 0;
}

static int put_labels(struct buf *body, const struct profile *profile)
{
	_cleanup_(json_decrefp) json_t *labels = json_array();
	_cleanup_(freep) char *text = NULL;
	int r = add_label(labels, "__name__", destination_parca.types[profile->kind]);

	for (size_t i = 0; !r && i < profile->labels.n; i++)
		if (strncmp(profile->labels.items[i].name, "__", 2) != 0)
			r = add_label(labels, profile->labels.items[i].name,
				      profile->labels.items[i].value);
	if (r)
		return r;
	text = json_dumps(labels, JSON_COMPACT);
	return text ? buf_printf(body, "{\"labels\":{\"labels\":%s},\"samples\":[", text) : -ENOMEM;
}

/* A part of a heap profile. */
static int put_heap_part(struct buf *body, const char *before, const struct pprof_tables *t,
			 const struct projection *part)
{
	_cleanup_(buf_deinit) struct buf pprof = BUF_INIT(REWRITE_BYTES_MAX);
	int r = rewrite_project(t, part, &pprof);

	return r ? r : put_sample(body, before, pprof.data, pprof.len);
}

static int put_heap(struct buf *body, const struct destination_profile *p)
{
	_cleanup_(reader_freep) struct reader *reader = NULL;
	const struct projection allocated = {
		.types = {"alloc_objects", "alloc_space"},
		.n_types = 2,
		.time_ns = (int64_t)p->profile->start_ns,
		.duration_ns = (int64_t)p->profile->duration_ns,
	};
	const struct projection in_use = {
		.types = {"inuse_objects", "inuse_space"},
		.n_types = 2,
		.time_ns = (int64_t)p->profile->start_ns,
	};
	int r = rewrite_read(p, &reader);

	if (!r)
		r = put_heap_part(body, "", reader_tables(reader), &allocated);
	return r ? r : put_heap_part(body, ",", reader_tables(reader), &in_use);
}

static int put_series(struct buf *body, const struct destination_profile *p)
{
	int r = put_labels(body, p->profile);

	if (r)
		return r;
	r = p->profile->kind == PROFILE_GO_HEAP ? put_heap(body, p)
						: put_sample(body, "", p->pprof, p->pprof_len);
	return r ? r : buf_puts(body, "]}");
}

static int encode(const struct destination_profile *profiles, size_t n,
		  struct destination_request *ret)
{
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(PARCA_BODY_MAX);
	int r = buf_puts(&body, "{\"normalized\":true,\"series\":[");

	for (size_t i = 0; !r && i < n; i++) {
		if (i)
			r = buf_putc(&body, ',');
		if (!r)
			r = put_series(&body, &profiles[i]);
	}
	if (!r)
		r = buf_puts(&body, "]}");
	if (r)
		return r > 0 ? -EBADMSG : r;
	ret->body_len = body.len;
	ret->body = buf_take(&body);
	return 0;
}

static enum destination_verdict verdict(const struct http_reply *reply)
{
	if (reply->status == 400 || reply->status == 500)
		return DESTINATION_REFUSED_PART;
	if (reply->status == 429)
		return DESTINATION_RETRY_SMALLER;
	return destination_verdict_of_status(reply->status);
}

/* Calls of Parca's DebuginfoService: upload.c appends their names. */
const struct destination_kind destination_parca_files = {
	.name = "parca",
	.title = "Parca",
	.path = "/api/",
	.headers = {"Content-Type: application/json"},
	.symbolizes = true,
	.files = &destination_parca_files,
};

const struct destination_kind destination_parca = {
	.name = "parca",
	.title = "Parca",
	.path = "/api/profiles/writeraw",
	.headers = {"Content-Type: application/json"},
	.types = {DESTINATION_GO_NAMES},
	.symbolizes = true,
	.whole = true,
	.files = &destination_parca_files,
	.deltas = true,
	.limits = {DESTINATION_NO_LIMITS, .profiles = PARCA_PROFILES_MAX,
		   .request = PARCA_PPROF_MAX},
	.encode = encode,
	.verdict = verdict,
};
