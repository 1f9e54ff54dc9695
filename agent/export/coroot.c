// SPDX-License-Identifier: Apache-2.0
/*
 * POST /v1/profiles: a pprof profile, with the entity in the address. Coroot differs from other
 * readers of pprof (coroot/coroot, collector/profiles.go and clickhouse/queries.go):
 *
 *	types		the name alone is the type, unit included: "ebpf:cpu:nanoseconds"
 *	clock		the profile's time is the end of the window
 *	zeros		each stack is stored once for each type of the profile, even with a zero:
 *			each type goes in a request of its own, without zeros
 *	averages	values in use are the sum divided by the number of different starts: no
 *			two containers may share a start, so each adds nanoseconds of its own
 *
 * The entity is known by the names that Coroot's own node agent makes from cgroups:
 *	container.id	/k8s/NAMESPACE/POD/CONTAINER, /docker/NAME, /SLICE/UNIT
 *	service.name	the id; in Kubernetes /k8s/NAMESPACE/WORKLOAD, the pod's name without its
 *			random or numbered end
 * (coroot-node-agent, common/otel.go.) The names of processes outside of all these are service
 * names without an id.
 */
#include "export/coroot.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/http.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "export/rewrite.h"
#include "pprof/projection.h"
#include "pprof/reader.h"

/* Bytes of the parameters in the address: six values of LABELS_VALUE_MAX, three bytes for each when
 * escaped. Reached: -. */
#define COROOT_QUERY_MAX (64u << 10)

/* Ends of the names of pods: Kubernetes draws from these letters. */
#define POD_LETTERS   "bcdfghjklmnpqrstvwxz2456789"
#define POD_LETTERS_N 5
/* Digits of the hash of a ReplicaSet. Reached: the name is kept. */
#define POD_HASH_MAX  10

/* ---- names */

/* Remove "-END" if END has @min to @max characters, all of @chars. */
static bool cut_end(char *name, const char *chars, size_t min, size_t max)
{
	char *end = strrchr(name, '-');
	size_t n;

	if (!end || end == name)
		return false;
	n = strlen(end + 1);
	if (n < min || n > max || strspn(end + 1, chars) != n)
		return false;
	*end = '\0';
	return true;
}

/* The pod's name without the part made for this pod; false for a pod without a workload. */
static bool cut_pod(char *name)
{
	if (cut_end(name, POD_LETTERS, POD_LETTERS_N, POD_LETTERS_N)) {
		(void)cut_end(name, "0123456789abcdef", 1, POD_HASH_MAX);
		return true;
	}
	return cut_end(name, "0123456789", 1, SIZE_MAX);
}

/* Coroot's names of an entity. @id: "" for none. */
struct names {
	char *id;
	char *service;
};

static void names_deinit(struct names *n)
{
	free(n->id);
	free(n->service);
}

static int text(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int text(char **ret, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(ret, format, args);
	va_end(args);
	if (n >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

static int names_of_pod(const char *namespace, const char *pod, const char *container,
			struct names *ret)
{
	_cleanup_(freep) char *workload = strdup(pod);
	int r;

	if (!workload)
		return -ENOMEM;
	r = text(&ret->id, "/k8s/%s/%s%s%s", namespace, pod, container ? "/" : "",
		 container ? container : "");
	if (r)
		return r;
	if (cut_pod(workload))
		return text(&ret->service, "/k8s/%s/%s", namespace, workload);
	return text(&ret->service, "%s", ret->id);
}

static int names_of(const struct labels *labels, struct names *ret)
{
	const char *namespace = labels_get(labels, "namespace"), *pod = labels_get(labels, "pod");
	const char *container = labels_get(labels, "container");
	const char *unit = labels_get(labels, "unit"), *slice = labels_get(labels, "slice");
	const char *service = labels_get(labels, "service_name");
	int r;

	if (namespace && pod)
		return names_of_pod(namespace, pod, container, ret);
	if (container)
		r = text(&ret->id, "/docker/%s", container);
	else if (unit && slice)
		r = text(&ret->id, "/%s/%s", slice, unit);
	else
		r = text(&ret->id, "%s", "");
	if (r)
		return r;
	return text(&ret->service, "%s", *ret->id ? ret->id : service ? service : "unknown");
}

/* ---- the address */

static int put_parameter(struct buf *query, const char *name, const char *value)
{
	char *escaped;
	int r;

	if (!value || !*value)
		return 0;
	escaped = curl_easy_escape(NULL, value, 0);
	if (!escaped)
		return -ENOMEM;
	r = buf_printf(query, "%c%s=%s", query->len ? '&' : '?', name, escaped);
	curl_free(escaped);
	return r ? -ENOMEM : 0;
}

/* The reader of Go's types that the agent of the cluster scrapes looks for namespace and pod. */
static int query_of(const struct labels *labels, const struct names *names, char **ret)
{
	_cleanup_(buf_deinit) struct buf query = BUF_INIT(COROOT_QUERY_MAX);
	int r = put_parameter(&query, "service.name", names->service);

	if (!r)
		r = put_parameter(&query, "container.id", names->id);
	if (!r)
		r = put_parameter(&query, "host.name", labels_get(labels, "node"));
	if (!r)
		r = put_parameter(&query, "namespace", labels_get(labels, "namespace"));
	if (!r)
		r = put_parameter(&query, "pod", labels_get(labels, "pod"));
	if (r)
		return r;
	*ret = buf_take(&query);
	return 0;
}

/* ---- the profile */

/* podprof's type and Coroot's, one for each part. */
struct type {
	const char *ours;
	const char *name;
};

static const struct type types[PROFILE_KIND_MAX][PPROF_VALUES_MAX] = {
	[PROFILE_CPU] = {{"cpu", "ebpf:cpu:nanoseconds"}},
	[PROFILE_GO_HEAP] = {{"alloc_objects", "go_runtime:heap_alloc_objects:count"},
			     {"alloc_space", "go_runtime:heap_alloc_space:bytes"},
			     {"inuse_objects", "go_runtime:heap_inuse_objects:count"},
			     {"inuse_space", "go_runtime:heap_inuse_space:bytes"}},
	[PROFILE_GO_MUTEX] = {{"contentions", "go:mutex_contentions:count"},
			      {"delay", "go:mutex_delay:nanoseconds"}},
	[PROFILE_GO_BLOCK] = {{"contentions", "go:block_contentions:count"},
			      {"delay", "go:block_delay:nanoseconds"}},
};

/* Less than a millisecond, equal in each window. */
static int64_t own_ns(const struct names *names)
{
	const char *name = *names->id ? names->id : names->service;

	return (int64_t)(hash_bytes(name, strlen(name)) % NSEC_PER_MSEC);
}

static int body_of(const struct destination_profile *p, const struct names *names, struct buf *ret)
{
	const struct type *type = &types[p->profile->kind][p->part];
	const int64_t duration_ns = (int64_t)p->profile->duration_ns;
	const struct projection projection = {
		.types = {type->ours},
		.names = {type->name},
		.n_types = 1,
		.time_ns = (int64_t)p->profile->start_ns + duration_ns + own_ns(names),
		.duration_ns = duration_ns,
	};

	_cleanup_(reader_freep) struct reader *reader = NULL;
	int r = rewrite_read(p, &reader);

	return r ? r : rewrite_project(reader_tables(reader), &projection, ret);
}

static int encode(const struct destination_profile *profiles, size_t n,
		  struct destination_request *ret)
{
	_cleanup_(names_deinit) struct names names = {0};
	_cleanup_(buf_deinit) struct buf body = BUF_INIT(REWRITE_BYTES_MAX);
	char *query = NULL;
	int r = buf_append(&body, "", 0);

	if (!r && n)
		r = names_of(&profiles->profile->labels, &names);
	if (!r && n)
		r = body_of(profiles, &names, &body);
	if (!r && n)
		r = query_of(&profiles->profile->labels, &names, &query);
	if (r)
		return r;
	ret->body_len = body.len;
	ret->body = buf_take(&body);
	ret->query = query;
	return 0;
}

/* An unknown key is not found. */
static enum destination_verdict verdict(const struct http_reply *reply)
{
	return reply->status == 404 ? DESTINATION_DENIED
				    : destination_verdict_of_status(reply->status);
}

/* The probe names no service. */
static bool probe_ok(const struct http_reply *reply)
{
	return reply->status == 400 && strstr(reply->body, "service.name");
}

const struct destination_kind destination_coroot = {
	.name = "coroot",
	.title = "Coroot",
	.path = "/v1/profiles",
	.headers = {"Content-Type: application/octet-stream"},
	.token_header = "X-API-Key",
	.splits = true,
	.types = {[PROFILE_CPU] = "ebpf",
		  [PROFILE_GO_HEAP] = "go_runtime:heap",
		  [PROFILE_GO_MUTEX] = "go:mutex",
		  [PROFILE_GO_BLOCK] = "go:block"},
	.parts = {[PROFILE_GO_HEAP] = 4, [PROFILE_GO_MUTEX] = 2, [PROFILE_GO_BLOCK] = 2},
	.deltas = true,
	.limits = {DESTINATION_NO_LIMITS, .profiles = 1},
	.encode = encode,
	.verdict = verdict,
	.probe_ok = probe_ok,
};
