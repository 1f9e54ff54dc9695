// SPDX-License-Identifier: Apache-2.0
/*
 * Two servers have the pods of a node. The kubelet needs the lesser right, for the pods of this
 * node alone, but only since Kubernetes 1.33, and in many clusters its certificate has no known
 * signer. The kubelet also has no watch: podprof sees changes within seconds only if the list is
 * small enough for a request every few seconds. So podprof asks the kubelet first and falls back to
 * the API server
 *
 *   - if the kubelet's first answer is no list. podprof retries the kubelet now and then: it may
 *     have been starting, or may get the right later. A kubelet that has answered once is kept
 *     after all later failures: known pods stay known;
 *   - if the kubelet's lists are too large. The kubelet rests once the API server has sent the
 *     pods, and is used again if the API server refuses, or does not answer for minutes.
 *
 * podprof believes only one server at a time: each lags by a moment, and would undo newer changes
 * of the other. After a change of servers, the new server begins with a list.
 */
#include "metadata/servers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "metadata/apiserver.h"
#include "metadata/kubelet.h"
#include "metadata/pods.h"

#define ACCOUNT_TOKEN	 "/var/run/secrets/kubernetes.io/serviceaccount/token"
#define ACCOUNT_CA	 "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
#define KUBELET_PORT	 "10250"
/* Bytes of a server's address with the NUL. Reached: not asked. */
#define SERVERS_URL_MAX	 300
/* Bytes of a server's last answer with the NUL. Reached: cut. */
#define SERVERS_WORD_MAX 160

/* Failure time of the API server before podprof returns to the kubelet. Little is missed meanwhile:
 * without the API server nobody starts or changes pods. */
#define WATCH_LOST_NS (300 * NSEC_PER_SEC)
/* Factor for the pause before the next attempt, plus a random part of the same size. Each attempt
 * costs the API server a list, and all nodes have lost it at the same moment. */
#define WATCH_AGAIN   2

/* Why the API server is used in place of the kubelet. */
enum instead {
	INSTEAD_NOT,
	INSTEAD_FAILING, /* the kubelet's first answer was no list */
	INSTEAD_LARGE,	 /* the kubelet's lists are too large */
};

static const char *const names[SERVER_MAX] = {
	[SERVER_KUBELET] = "kubelet",
	[SERVER_APISERVER] = "apiserver",
};

struct servers {
	struct metadata_opts opts;
	struct http *http;
	struct pods *pods;
	struct kubelet *kubelet;
	struct apiserver *apiserver;
	bool may_turn; /* a change to the API server is allowed */
	enum instead instead;
	bool watching;		/* the API server is the server in use */
	uint64_t lost_ns;	/* monotonic: start of its failure; 0: it works */
	uint64_t watch_from_ns; /* monotonic: earliest next attempt */
	bool turned;		/* the server has changed: report the next answer */
	uint64_t version;	/* of the pods, after the last request */
	bool answered;		/* a list has arrived */
	char words[SERVER_MAX][SERVERS_WORD_MAX];
	int outcomes[SERVER_MAX]; /* of the last requests; -1 before */
	uint64_t n_requests[SERVER_MAX][PODCLIENT_OUTCOME_MAX];
	uint64_t n_odd;
	uint64_t n_containers_left_out;
	char kubelet_url[SERVERS_URL_MAX];
	char apiserver_url[SERVERS_URL_MAX];
};

const char *server_name(enum server server)
{
	return names[server];
}

/* Makes the URL: @given, or @address and @port, with brackets for IPv6. False if there is no
 * address, or the URL is too long. */
static bool make_url(const char *given, const char *address, const char *port,
		     char ret[SERVERS_URL_MAX])
{
	const char *form = address && strchr(address, ':') ? "https://[%s]:%s" : "https://%s:%s";

	if (given)
		return snprintf(ret, SERVERS_URL_MAX, "%s", given) < SERVERS_URL_MAX;
	return address && *address && port && *port &&
	       snprintf(ret, SERVERS_URL_MAX, form, address, port) < SERVERS_URL_MAX;
}

static struct podclient_opts client_opts(const struct servers *s, const char *url,
					 enum http_verify verify)
{
	return (struct podclient_opts){
		.http = s->http,
		.url = url,
		.token_file = s->opts.token_file,
		.ca_file = s->opts.ca_file,
		.verify = verify,
		.pods = s->pods,
	};
}

static void apiserver_replied(void *ctx, const struct podclient_reply *reply);

static int start_apiserver(struct servers *s)
{
	const struct podclient_opts opts = client_opts(s, s->apiserver_url, HTTP_VERIFY_ALL);
	int r = apiserver_new(s->opts.loop, &opts, s->opts.node, apiserver_replied, s,
			      &s->apiserver);

	s->outcomes[SERVER_APISERVER] = -1;
	if (!r)
		snprintf(s->words[SERVER_APISERVER], SERVERS_WORD_MAX, "not answered yet");
	return r;
}

/* Counts a reply, and reports a changed state of the source to the user. */
static void tell(struct servers *s, enum server server, const struct podclient_reply *reply)
{
	bool ok = reply->outcome == PODCLIENT_OK, changed;

	s->n_requests[server][reply->outcome]++;
	s->n_odd += reply->n_odd;
	s->n_containers_left_out += reply->n_containers_left_out;
	s->answered = s->answered || ok;
	changed = s->turned || s->outcomes[server] != (int)reply->outcome;
	s->turned = false;
	snprintf(s->words[server], SERVERS_WORD_MAX, "%s", reply->error);
	s->outcomes[server] = (int)reply->outcome;
	if (changed)
		s->opts.source(s->opts.ctx, names[server], ok, reply->error);
	if (s->version != pods_version(s->pods) && s->opts.listed)
		s->opts.listed(s->opts.listed_ctx);
	s->version = pods_version(s->pods);
}

/* ---------------------------------------------------------------- whose turn it is */

static bool is_lost(struct servers *s, int outcome)
{
	uint64_t now = nsec_monotonic();

	if (!s->lost_ns)
		s->lost_ns = now;
	return outcome == PODCLIENT_DENIED || now - s->lost_ns >= s->opts.watch_lost_ns;
}

static void apiserver_replied(void *ctx, const struct podclient_reply *reply)
{
	struct podclient_reply plain = *reply;
	struct servers *s = ctx;

	if (plain.outcome == PODCLIENT_EXPIRED) { /* normal for a watch */
		plain.outcome = PODCLIENT_OK;
		plain.error = "ok";
	}
	if (plain.outcome == PODCLIENT_OK)
		s->lost_ns = 0;
	else if (s->instead == INSTEAD_LARGE && is_lost(s, (int)plain.outcome) && s->watching) {
		/* Returns to the kubelet; its list ends the watch. */
		s->watching = false;
		apiserver_relist(s->apiserver);
		kubelet_rest(s->kubelet, false);
	}
	if (s->instead == INSTEAD_LARGE && reply->outcome == PODCLIENT_OK && !s->watching) {
		s->watching = true;
		s->turned = true;
		kubelet_rest(s->kubelet, true);
		snprintf(s->words[SERVER_KUBELET], SERVERS_WORD_MAX,
			 "ok; its lists are large, so the API server is watched");
	}
	tell(s, SERVER_APISERVER, &plain);
}

/* Ends the watch and returns to the kubelet. */
static void turn_back(struct servers *s)
{
	s->turned = s->apiserver;
	kubelet_spare(s->kubelet, false);
	s->instead = INSTEAD_NOT;
	s->watching = false;
	s->lost_ns = 0;
	apiserver_free(s->apiserver);
	s->apiserver = NULL;
	s->words[SERVER_APISERVER][0] = '\0';
}

static void give_up(struct servers *s)
{
	uint64_t pause = WATCH_AGAIN * s->opts.watch_lost_ns, random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	turn_back(s);
	s->watch_from_ns = nsec_monotonic() + pause + random % pause;
}

/* The kubelet's list has arrived, but is too large for frequent polling: start or keep the watch.
 */
static void prefer_watch(struct servers *s)
{
	int outcome = s->outcomes[SERVER_APISERVER];

	kubelet_spare(s->kubelet, false);
	s->watching = false;
	if (!s->apiserver && nsec_monotonic() >= s->watch_from_ns)
		(void)start_apiserver(s); /* on failure the next list tries again */
	else if (s->instead == INSTEAD_FAILING) {
		apiserver_relist(s->apiserver);
		s->outcomes[SERVER_APISERVER] = -1;
	} else if (s->apiserver && outcome > PODCLIENT_OK && is_lost(s, outcome))
		give_up(s);
	s->instead = s->apiserver ? INSTEAD_LARGE : INSTEAD_NOT;
}

static void kubelet_listed(void *ctx, const struct podclient_reply *reply)
{
	struct servers *s = ctx;
	bool first = s->outcomes[SERVER_KUBELET] < 0;

	if (reply->outcome == PODCLIENT_OK) {
		if (s->may_turn && !kubelet_keeps_up(reply->n_bytes))
			prefer_watch(s);
		else
			turn_back(s);
	} else if (first && s->may_turn && !start_apiserver(s)) {
		s->instead = INSTEAD_FAILING;
		s->watching = true;
		kubelet_spare(s->kubelet, true);
	}
	tell(s, SERVER_KUBELET, reply);
}

/* ---------------------------------------------------------------- all of it */

static int start_kubelet(struct servers *s)
{
	const struct podclient_opts opts = client_opts(s, s->kubelet_url, s->opts.kubelet_verify);
	int r = kubelet_new(s->opts.loop, &opts, kubelet_listed, s, &s->kubelet);

	if (!r)
		snprintf(s->words[SERVER_KUBELET], SERVERS_WORD_MAX, "not answered yet");
	return r;
}

/* Starts the servers of the mode and the environment. */
static int start(struct servers *s)
{
	enum metadata_mode mode = s->opts.mode;
	bool has_kubelet =
		make_url(s->opts.kubelet_url, getenv("HOST_IP"), KUBELET_PORT, s->kubelet_url);
	bool has_apiserver = make_url(s->opts.apiserver_url, getenv("KUBERNETES_SERVICE_HOST"),
				      getenv("KUBERNETES_SERVICE_PORT"), s->apiserver_url);

	if ((mode == METADATA_KUBELET && !has_kubelet) ||
	    (mode == METADATA_APISERVER && !has_apiserver))
		return -EDESTADDRREQ;
	if (mode == METADATA_NONE || mode == METADATA_RUNTIME || (!has_kubelet && !has_apiserver))
		return 0;
	s->watching = mode == METADATA_APISERVER || !has_kubelet;
	if (s->watching)
		return start_apiserver(s);
	s->may_turn = mode == METADATA_AUTO && has_apiserver;
	return start_kubelet(s);
}

DEFINE_CLEANUP(struct servers *, servers_freep, servers_free);

int servers_new(const struct metadata_opts *opts, struct servers **ret)
{
	_cleanup_(servers_freep) struct servers *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->outcomes[SERVER_KUBELET] = s->outcomes[SERVER_APISERVER] = -1;
	if (!s->opts.watch_lost_ns)
		s->opts.watch_lost_ns = WATCH_LOST_NS;
	if (!s->opts.token_file)
		s->opts.token_file = ACCOUNT_TOKEN;
	if (!s->opts.ca_file)
		s->opts.ca_file = ACCOUNT_CA;
	r = http_new(opts->loop, &s->http);
	if (!r)
		r = pods_new(&s->pods);
	if (!r)
		r = start(s);
	if (r)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void servers_free(struct servers *s)
{
	if (!s)
		return;
	kubelet_free(s->kubelet);
	apiserver_free(s->apiserver);
	http_free(s->http);
	pods_free(s->pods);
	free(s);
}

const struct pods *servers_pods(const struct servers *s)
{
	return s->pods;
}

static enum server server_in_use(const struct servers *s)
{
	return s->watching ? SERVER_APISERVER : SERVER_KUBELET;
}

enum servers_state servers_state(const struct servers *s)
{
	enum server in_use = server_in_use(s);

	if (!s->kubelet && !s->apiserver)
		return SERVERS_NONE;
	if (s->answered)
		return SERVERS_ANSWERED;
	return s->outcomes[in_use] == PODCLIENT_DENIED ? SERVERS_DENIED : SERVERS_UNREACHABLE;
}

bool servers_fresh(const struct servers *s)
{
	return s->answered && s->outcomes[server_in_use(s)] == PODCLIENT_OK;
}

void servers_look(struct servers *s)
{
	if (s->kubelet)
		kubelet_look(s->kubelet);
}

const char *servers_word(const struct servers *s, enum server server)
{
	return *s->words[server] ? s->words[server] : NULL;
}

int servers_outcome(const struct servers *s, enum server server)
{
	return s->outcomes[server];
}

const char *servers_url(const struct servers *s, enum server server)
{
	return server == SERVER_KUBELET ? s->kubelet_url : s->apiserver_url;
}

void servers_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc requests = {
		"podprof_metadata_requests", METRIC_COUNTER,
		"Requests for pods, by server and outcome.", NULL};
	static const struct metric_family_desc pods = {"podprof_metadata_pods", METRIC_GAUGE,
						       "Known pods of this node.", NULL};
	static const struct metric_family_desc odd = {
		"podprof_metadata_pods_dropped", METRIC_COUNTER,
		"Dropped pods: unreadable, too large or too many.", NULL};
	static const struct metric_family_desc containers = {
		"podprof_metadata_containers_dropped", METRIC_COUNTER,
		"Containers beyond the limit of a pod, at each read of the pod.", NULL};
	const struct servers *s = ctx;

	metric_family(sink, &requests);
	for (int n = 0; n < SERVER_MAX; n++)
		for (int i = 0; i < PODCLIENT_OUTCOME_MAX; i++) {
			const struct metric_label labels[] = {
				{"source", names[n]}, {"outcome", podclient_outcome_name(i)}};

			metric_u64(sink, s->n_requests[n][i], labels, array_size(labels));
		}
	metric_family(sink, &pods);
	metric_u64(sink, pods_count(s->pods), NULL, 0);
	metric_family(sink, &odd);
	metric_u64(sink, s->n_odd, NULL, 0);
	metric_family(sink, &containers);
	metric_u64(sink, s->n_containers_left_out, NULL, 0);
}
