// SPDX-License-Identifier: Apache-2.0
/*
 * One list, then consecutive watches, each from the end of the previous one. Simultaneous requests
 * of many nodes are the main load on an API server. So
 *
 *   - list and watch select by the node's name, for which the server has an index;
 *   - the list asks for resourceVersion 0: the server may answer from its cache, without a request
 *     to its database. The watch delivers newer events;
 *   - bookmarks keep the version recent, so that after a break the watch continues without a new
 *     list;
 *   - a watch ends after a random time, and the backoff after failures has jitter.
 *
 * Pods stay known while the server is away.
 *
 * Source: Kubernetes API concepts, "Efficient detection of changes", "Watch bookmarks", "Semantics
 * for get and list".
 */
#include "metadata/apiserver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"

#define APISERVER_LIST_NS    (30 * NSEC_PER_SEC)
#define APISERVER_BACKOFF_NS (30 * NSEC_PER_SEC)
/* Seconds of a watch: the minimum, and the range of the random part above. */
#define APISERVER_WATCH_S    300
#define APISERVER_WATCH_MORE 300
/* Seconds beyond the requested end of the watch, for a late server. */
#define APISERVER_GRACE_S    30
/* Bytes of a node's name: Kubernetes allows 253. Reached: the API server is not asked. */
#define APISERVER_NODE_MAX   253
/* Bytes of a request's path: the longest name and version fit. Reached: -. */
#define APISERVER_PATH_MAX   640
/* Initial doublings of the backoff after a broken watch: up to 4 s. All nodes lose their watches at
 * the same moment. A delay of some seconds does no harm, and the runtimes name new containers
 * meanwhile. */
#define APISERVER_SPREAD     3

struct apiserver {
	struct podclient *client;
	struct loop_source *timer;
	struct backoff backoff;
	char version[PODSTREAM_VERSION_MAX]; /* "": list first */
	bool watching;
	apiserver_replied_fn replied;
	void *ctx;
	char node[];
};

/* Node names are DNS names, so a URL needs no escapes. */
static bool is_node_name(const char *node)
{
	size_t n = strlen(node);

	return n > 0 && n <= APISERVER_NODE_MAX &&
	       strspn(node, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

static void list(struct apiserver *server)
{
	char path[APISERVER_PATH_MAX];
	const struct podclient_request request = {
		.path = path,
		.kind = PODSTREAM_LIST,
		.total_ns = APISERVER_LIST_NS,
	};

	snprintf(path, sizeof(path),
		 "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&resourceVersion=0", server->node);
	server->watching = false;
	podclient_get(server->client, &request);
}

static void watch(struct apiserver *server)
{
	char path[APISERVER_PATH_MAX], version[PODSTREAM_VERSION_MAX];
	struct podclient_request request = {
		.path = path,
		.kind = PODSTREAM_WATCH,
		.version = version,
	};
	unsigned int random = 0, seconds;

	(void)!getrandom(&random, sizeof(random), 0);
	seconds = APISERVER_WATCH_S + random % APISERVER_WATCH_MORE;
	snprintf(version, sizeof(version), "%s", server->version);
	snprintf(path, sizeof(path),
		 "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%%3D%s&resourceVersion=%s"
		 "&allowWatchBookmarks=true&timeoutSeconds=%u",
		 server->node, version, seconds);
	request.total_ns = (seconds + APISERVER_GRACE_S) * NSEC_PER_SEC;
	server->watching = true;
	podclient_get(server->client, &request);
}

static void due(void *ctx)
{
	struct apiserver *server = ctx;

	if (server->version[0])
		watch(server);
	else
		list(server);
}

static void arm(struct apiserver *server, uint64_t delay_ns)
{
	(void)loop_arm(server->timer, delay_ns, 0); /* fails only for an invalid delay */
}

static void ended(void *ctx, const struct podclient_reply *reply)
{
	struct apiserver *server = ctx;

	/* a version is foreign text that becomes part of a URL */
	if (reply->outcome == PODCLIENT_EXPIRED ||
	    strspn(reply->version,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
		    strlen(reply->version))
		server->version[0] = '\0';
	else if (reply->version[0] && (server->watching || reply->outcome == PODCLIENT_OK))
		snprintf(server->version, sizeof(server->version), "%s", reply->version);
	if (reply->outcome == PODCLIENT_UNREACHABLE && server->watching &&
	    server->backoff.failures < APISERVER_SPREAD)
		server->backoff.failures = APISERVER_SPREAD;
	/* a watch that ends at once, repeatedly, must also back off */
	if (reply->outcome == PODCLIENT_OK && (!server->watching || reply->n_pods))
		backoff_reset(&server->backoff);
	if (reply->outcome == PODCLIENT_OK && !server->watching && server->version[0])
		arm(server, 1);
	else
		arm(server, backoff_wait_ns(&server->backoff, reply->retry_after_ns) + 1);
	server->replied(server->ctx, reply);
}

void apiserver_relist(struct apiserver *server)
{
	server->version[0] = '\0';
	if (!podclient_busy(server->client))
		return; /* the timer is already set */
	podclient_cancel(server->client);
	arm(server, 1);
}

DEFINE_CLEANUP(struct apiserver *, apiserver_freep, apiserver_free);

int apiserver_new(struct loop *loop, const struct podclient_opts *opts, const char *node,
		  apiserver_replied_fn replied, void *ctx, struct apiserver **ret)
{
	_cleanup_(apiserver_freep) struct apiserver *server = NULL;
	int r;

	if (!is_node_name(node))
		return -EINVAL;
	server = calloc(1, sizeof(*server) + strlen(node) + 1);
	if (!server)
		return -ENOMEM;
	memcpy(server->node, node, strlen(node) + 1);
	server->replied = replied;
	server->ctx = ctx;
	server->backoff.max_ns = APISERVER_BACKOFF_NS;
	r = podclient_new(opts, ended, server, &server->client);
	if (!r)
		r = loop_add_timer(loop, due, server, &server->timer);
	if (r)
		return r;
	arm(server, 1);
	*ret = take_ptr(server);
	return 0;
}

void apiserver_free(struct apiserver *server)
{
	if (!server)
		return;
	loop_remove(server->timer);
	podclient_free(server->client);
	free(server);
}
