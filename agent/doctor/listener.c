// SPDX-License-Identifier: Apache-2.0
#include "doctor/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/nsec.h"
#include "base/strview.h"
#include "config/config.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "server/listen.h"
#include "server/web_access.h"

/* Time limit of a request to this machine. */
#define LISTENER_TOTAL_NS (3 * NSEC_PER_SEC)

struct listener_trial {
	struct listener listener;
	struct http_call *call;
};

/* ---- the agent's answer */

/* "NAME: ok, WHY" or "NAME: failing, WHY" */
static void take_condition(struct strview line, struct listener *ret)
{
	struct listener_condition *c = &ret->conditions[ret->n];
	struct strview name, state;

	if (ret->n == LISTENER_CONDITIONS_MAX || !strview_until(&line, ':', &name) ||
	    strview_empty(&line))
		return;
	strview_skip_blanks(&line);
	if (!strview_until(&line, ',', &state)) {
		state = line;
		line = strview_of("");
	}
	strview_skip_blanks(&line);
	c->ok = strview_is(&state, "ok");
	finding_text(c->name, sizeof(c->name), name);
	finding_text(c->why, sizeof(c->why), line);
	ret->n++;
}

bool listener_read(const char *body, struct listener *ret)
{
	struct strview all = strview_of(body), line;

	if (!strview_line(&all, &line) ||
	    (!strview_is(&line, "ready") && !strview_is(&line, "not ready")))
		return false;
	ret->agent = true;
	ret->ready = strview_is(&line, "ready");
	while (strview_line(&all, &line))
		take_condition(line, ret);
	return true;
}

/* ---------------------------------------------------------------- looking */

static void on_reply(void *ctx, const struct http_reply *reply)
{
	struct listener_trial *trial = ctx;

	trial->call = NULL;
	if (reply->status == 200 || reply->status == 503)
		(void)listener_read(reply->body, &trial->listener);
}

/* A listener on all addresses also listens on IPv4's loopback ("[::]" as well, and a pod may have
 * no loopback of IPv6). */
static void make_url(const struct listen_address *address, bool is_tls, char *ret, size_t n)
{
	const char *scheme = is_tls ? "https" : "http";
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->addr;
	char host[INET6_ADDRSTRLEN] = "";

	if (address->addr.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr)) {
		snprintf(ret, n, "%s://127.0.0.1:%u/-/ready", scheme, ntohs(in6->sin6_port));
	} else if (address->addr.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(ret, n, "%s://[%s]:%u/-/ready", scheme, host, ntohs(in6->sin6_port));
	} else {
		const struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
		const bool any = in->sin_addr.s_addr == htonl(INADDR_ANY);

		inet_ntop(AF_INET, any ? &loopback : &in->sin_addr, host, sizeof(host));
		snprintf(ret, n, "%s://%s:%u/-/ready", scheme, host, ntohs(in->sin_port));
	}
}

int listener_begin(struct http *http, const struct config *config, struct listener_trial **ret)
{
	struct listener_trial *trial = calloc(1, sizeof(*trial));
	_cleanup_(close_fdp) int fd = -1;
	_cleanup_(close_fdp) int ui_fd = -1;
	struct listen_plan plan;
	char url[128];
	/* the agent on loopback is asked for its state, and gets no secret */
	const struct http_request request = {.url = url,
					     .verify = HTTP_VERIFY_NOTHING,
					     .connect_ns = LISTENER_TOTAL_NS,
					     .total_ns = LISTENER_TOTAL_NS};
	bool is_tls = false;
	int r = 0;

	if (!trial)
		return -ENOMEM;
	if (config->web_config)
		trial->listener.web =
			web_access_try(config->web_config, &is_tls, &trial->listener.needs_cert,
				       trial->listener.web_error);
	trial->listener.plan = listen_plan(config->listen, config->ui_listen, &plan);
	if (!trial->listener.plan)
		trial->listener.result = listen_open(&plan.metrics, &fd);
	if (!trial->listener.plan && !plan.is_one)
		trial->listener.ui_result = listen_open(&plan.ui, &ui_fd);
	if (trial->listener.result == -EADDRINUSE && !trial->listener.needs_cert) {
		make_url(&plan.metrics, is_tls, url, sizeof(url));
		r = http_start(http, &request, on_reply, trial, &trial->call);
	}
	if (r)
		free(trial);
	else
		*ret = trial;
	return r;
}

bool listener_pending(const struct listener_trial *trial)
{
	return trial->call;
}

void listener_end(struct listener_trial *trial, struct listener *ret)
{
	*ret = trial ? trial->listener : (struct listener){0};
	if (trial)
		http_cancel(trial->call);
	free(trial);
}

/* ---------------------------------------------------------------- checks */

/* Conditions about sources of names and visible processes: the doctor probes both itself. */
static bool is_known(const struct listener_condition *c)
{
	return strcmp(c->name, "metadata") == 0 || strcmp(c->name, "processes") == 0;
}

/* Conditions known better by the running agent than by a second trial. */
static void check_agent(const struct probe_results *results, struct findings *ret)
{
	const struct listener *l = &results->listener;
	char works[FINDING_TEXT_MAX] = "";
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->conditions[i].ok && !is_known(&l->conditions[i]))
			n += (size_t)snprintf(works + n, sizeof(works) - n, "; %s works",
					      l->conditions[i].name);
	findings_add(ret, "agent", FINDING_OK, "running here, at %s, and %sready%s",
		     results->config->listen, l->ready ? "" : "not ", works);
	if (!l->ready && !l->n) /* with users, it gives strangers no reasons */
		finding_say(findings_add(ret, "agent", FINDING_MISSING,
					 "not ready, and gives no reasons without a password"),
			    "the running agent continues without", "see its log");
	for (size_t i = 0; i < l->n; i++) {
		const struct listener_condition *c = &l->conditions[i];
		const char *todo = strstr(c->why, "; ");

		if (c->ok || is_known(c))
			continue;
		finding_say(findings_add(ret, "agent", FINDING_MISSING, "%s: %.*s", c->name,
					 todo ? (int)(todo - c->why) : (int)strlen(c->why), c->why),
			    "the running agent continues without", todo ? todo + 2 : "see its log");
	}
}

static void check_web(const struct listener *l, const struct config *c, struct findings *ret)
{
	if (!c->web_config)
		return;
	if (l->web)
		finding_say(findings_add(ret, "web-config", FINDING_MISSING, "%s",
					 l->web > 0 ? l->web_error : strerror(-l->web)),
			    "the agent does not start, and a running one keeps the last good file",
			    "docs/configuration.md describes the file of --web-config");
	else
		findings_add(ret, "web-config", FINDING_OK, "%s can be used", c->web_config);
}

void listener_check(const struct probe_results *results, struct findings *ret)
{
	const struct listener *l = &results->listener;
	const struct config *c = results->config;

	check_web(l, c, ret);
	if (l->agent)
		check_agent(results, ret);
	else if (l->plan)
		finding_say(findings_add(ret, "listen", FINDING_MISSING,
					 "--%s %s is not an address",
					 l->plan == LISTEN_BAD ? "listen" : "ui-listen",
					 l->plan == LISTEN_BAD ? c->listen : c->ui_listen),
			    "the agent does not start", "it has to be " CONFIG_LISTEN_FORM);
	else if (!l->result && l->ui_result)
		finding_say(findings_add(ret, "listen", FINDING_MISSING, "--ui-listen %s: %s",
					 c->ui_listen ? c->ui_listen : "(127.0.0.1, the next port)",
					 strerror(-l->ui_result)),
			    "the agent does not start", listen_hint(l->ui_result));
	else if (l->result == -EADDRINUSE && l->needs_cert)
		findings_add(ret, "listen", FINDING_OK,
			     "%s is in use; if by the agent, it answers clients with a certificate",
			     c->listen);
	else if (l->result)
		finding_say(findings_add(ret, "listen", FINDING_MISSING, "%s: %s", c->listen,
					 strerror(-l->result)),
			    "the agent does not start", listen_hint(l->result));
	else
		findings_add(ret, "listen", FINDING_OK, "%s is free", c->listen);
}
