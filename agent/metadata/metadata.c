// SPDX-License-Identifier: Apache-2.0
/*
 * Two servers know the pods of a node. The kubelet needs the lesser right, pods of this node alone,
 * but gives it only since Kubernetes 1.33, and in many clusters its certificate is signed by nobody
 * that is known. So it is asked first, and if its first answer is no list the API server takes its
 * place for good. One that has answered once is kept whatever happens later.
 */
#include "metadata/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/metric.h"
#include "metadata/apiserver.h"
#include "metadata/kubelet.h"
#include "metadata/pods.h"

#define ACCOUNT_TOKEN	 "/var/run/secrets/kubernetes.io/serviceaccount/token"
#define ACCOUNT_CA	 "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
#define KUBELET_PORT	 "10250"
/* Bytes of a server's address with its NUL. */
#define METADATA_URL_MAX 300

enum source { SOURCE_KUBELET, SOURCE_APISERVER, SOURCE_MAX };

static const char *const source_names[SOURCE_MAX] = {
	[SOURCE_KUBELET] = "kubelet",
	[SOURCE_APISERVER] = "apiserver",
};

struct metadata {
	struct metadata_opts opts;
	struct http *http;
	struct pods *pods;
	struct kubelet *kubelet;
	struct apiserver *apiserver;
	bool may_turn; /* to the API server, if the kubelet's first answer is no list */
	bool answered; /* a list has come */
	bool told;     /* opts.source() was called */
	enum podclient_outcome last;
	uint64_t n_requests[SOURCE_MAX][PODCLIENT_OUTCOME_MAX];
	uint64_t n_odd;
	char kubelet_url[METADATA_URL_MAX];
	char apiserver_url[METADATA_URL_MAX];
};

const char *metadata_outcome_name(int outcome)
{
	static const char *const names[METADATA_OUTCOME_MAX] = {
		[METADATA_OK] = "ok",
		[METADATA_POD] = "pod",
		[METADATA_UNKNOWN_ID] = "unknown_id",
		[METADATA_UNREACHABLE] = "unreachable",
		[METADATA_DENIED] = "denied",
		[METADATA_NOT_ASKED] = "not_asked",
	};

	return outcome >= 0 && outcome < METADATA_OUTCOME_MAX ? names[outcome] : "error";
}

/* ---------------------------------------------------------------- who is asked */

/* "[address]:port" for what has colons in it. False if there is none. */
static bool make_url(const char *given, const char *address, const char *port,
		     char ret[METADATA_URL_MAX])
{
	const char *form = address && strchr(address, ':') ? "https://[%s]:%s" : "https://%s:%s";

	if (given)
		return snprintf(ret, METADATA_URL_MAX, "%s", given) < METADATA_URL_MAX;
	return address && *address && port && *port &&
	       snprintf(ret, METADATA_URL_MAX, form, address, port) < METADATA_URL_MAX;
}

static struct podclient_opts client_opts(const struct metadata *m, const char *url,
					 enum http_verify verify)
{
	return (struct podclient_opts){
		.http = m->http,
		.url = url,
		.token_file = m->opts.token_file,
		.ca_file = m->opts.ca_file,
		.verify = verify,
		.pods = m->pods,
	};
}

static void apiserver_replied(void *ctx, const struct podclient_reply *reply);

static int start_apiserver(struct metadata *m)
{
	const struct podclient_opts opts = client_opts(m, m->apiserver_url, HTTP_VERIFY_ALL);

	return apiserver_new(m->opts.loop, &opts, m->opts.node, apiserver_replied, m,
			     &m->apiserver);
}

/* The user hears of a source when it is there, and when it is no more. */
static void tell(struct metadata *m, enum source source, const struct podclient_reply *reply)
{
	bool ok = reply->outcome == PODCLIENT_OK;

	m->n_requests[source][reply->outcome]++;
	m->n_odd += reply->n_odd;
	m->answered = m->answered || ok;
	if (!m->told || ok != (m->last == PODCLIENT_OK))
		m->opts.source(m->opts.ctx, source_names[source], ok, reply->error);
	m->told = true;
	m->last = reply->outcome;
}

static void apiserver_replied(void *ctx, const struct podclient_reply *reply)
{
	struct podclient_reply plain = *reply;

	if (plain.outcome == PODCLIENT_EXPIRED) /* part of its work */
		plain.outcome = PODCLIENT_OK;
	tell(ctx, SOURCE_APISERVER, &plain);
}

static void kubelet_listed(void *ctx, const struct podclient_reply *reply)
{
	struct metadata *m = ctx;

	tell(m, SOURCE_KUBELET, reply);
	if (!m->may_turn)
		return;
	m->may_turn = false;
	if (reply->outcome == PODCLIENT_OK || start_apiserver(m))
		return;
	kubelet_stop(m->kubelet);
	m->told = false; /* of this one */
}

static int start_kubelet(struct metadata *m)
{
	const struct podclient_opts opts = client_opts(m, m->kubelet_url, m->opts.kubelet_verify);

	return kubelet_new(m->opts.loop, &opts, kubelet_listed, m, &m->kubelet);
}

/* Whom there is to ask, by the mode and by what the environment says. */
static int start(struct metadata *m)
{
	enum metadata_mode mode = m->opts.mode;
	bool has_kubelet =
		make_url(m->opts.kubelet_url, getenv("HOST_IP"), KUBELET_PORT, m->kubelet_url);
	bool has_apiserver = make_url(m->opts.apiserver_url, getenv("KUBERNETES_SERVICE_HOST"),
				      getenv("KUBERNETES_SERVICE_PORT"), m->apiserver_url);

	if ((mode == METADATA_KUBELET && !has_kubelet) ||
	    (mode == METADATA_APISERVER && !has_apiserver))
		return -EDESTADDRREQ;
	if (mode == METADATA_NONE || (!has_kubelet && !has_apiserver))
		return 0;
	if (mode == METADATA_APISERVER || !has_kubelet)
		return start_apiserver(m);
	m->may_turn = mode == METADATA_AUTO && has_apiserver;
	return start_kubelet(m);
}

DEFINE_CLEANUP(struct metadata *, metadata_freep, metadata_free);

int metadata_new(const struct metadata_opts *opts, struct metadata **ret)
{
	_cleanup_(metadata_freep) struct metadata *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
	if (!m->opts.token_file)
		m->opts.token_file = ACCOUNT_TOKEN;
	if (!m->opts.ca_file)
		m->opts.ca_file = ACCOUNT_CA;
	r = http_new(opts->loop, &m->http);
	if (!r)
		r = pods_new(&m->pods);
	if (!r)
		r = start(m);
	if (r)
		return r;
	*ret = take_ptr(m);
	return 0;
}

void metadata_free(struct metadata *m)
{
	if (!m)
		return;
	kubelet_free(m->kubelet);
	apiserver_free(m->apiserver);
	http_free(m->http);
	pods_free(m->pods);
	free(m);
}

bool metadata_active(const struct metadata *m)
{
	return m->kubelet || m->apiserver;
}

/* ---------------------------------------------------------------- names */

static enum metadata_outcome why_unknown(const struct metadata *m)
{
	if (!metadata_active(m))
		return METADATA_NOT_ASKED;
	if (m->answered)
		return METADATA_UNKNOWN_ID;
	return m->told && m->last == PODCLIENT_DENIED ? METADATA_DENIED : METADATA_UNREACHABLE;
}

enum metadata_outcome metadata_find(const struct metadata *m, const char *container_id,
				    const char *pod_uid, struct metadata_names *ret)
{
	struct metadata_names names = {0};

	if (*container_id)
		names.pod = pods_by_container(m->pods, container_id, &names.container);
	if (!names.pod && *pod_uid)
		names.pod = pods_by_uid(m->pods, pod_uid);
	if (!names.pod)
		return why_unknown(m);
	*ret = names;
	return names.container ? METADATA_OK : METADATA_POD;
}

uint64_t metadata_version(const struct metadata *m)
{
	return pods_version(m->pods);
}

void metadata_look(struct metadata *m)
{
	if (m->kubelet)
		kubelet_look(m->kubelet);
}

void metadata_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc requests = {
		"podprof_metadata_requests", METRIC_COUNTER,
		"Requests for pods, by who was asked and how they ended.", NULL};
	static const struct metric_family_desc pods = {"podprof_metadata_pods", METRIC_GAUGE,
						       "Pods of this node that are known.", NULL};
	static const struct metric_family_desc odd = {
		"podprof_metadata_pods_left_out", METRIC_COUNTER,
		"Pods that could not be read or were too large.", NULL};
	const struct metadata *m = ctx;

	metric_family(sink, &requests);
	for (int s = 0; s < SOURCE_MAX; s++)
		for (int i = 0; i < PODCLIENT_OUTCOME_MAX; i++) {
			const struct metric_label labels[] = {
				{"source", source_names[s]},
				{"outcome", podclient_outcome_name(i)}};

			metric_u64(sink, m->n_requests[s][i], labels, array_size(labels));
		}
	metric_family(sink, &pods);
	metric_u64(sink, pods_count(m->pods), NULL, 0);
	metric_family(sink, &odd);
	metric_u64(sink, m->n_odd, NULL, 0);
}
