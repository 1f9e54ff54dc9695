// SPDX-License-Identifier: Apache-2.0
/*
 * The probe is an empty batch, sent by the same code and with the same credentials as profiles. The
 * destination's kind encodes the request and evaluates the reply, since some healthy backends
 * refuse an empty batch.
 */
#include "doctor/network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/nsec.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"
#include "export/destination.h"
#include "export/push.h"

#define NETWORK_CONNECT_NS (5 * NSEC_PER_SEC)
#define NETWORK_TOTAL_NS   (8 * NSEC_PER_SEC)
/* Seconds since 1970, the start of 2025: an earlier time is of a clock that was never set. */
#define CLOCK_LEAST_S	   1735689600
/* Permitted difference of clocks, or half of the limit of a destination's kind if that is less. */
#define CLOCK_APART_S	   300

struct call {
	struct destination *destination;
	struct destination_request request;
	struct http_call *http;
	struct reached *reached;
};

struct network_trial {
	struct network network;
	struct call calls[CONFIG_DESTINATIONS_MAX];
};

/* ---------------------------------------------------------------- looking */

static void say(struct reached *reached, const char *why)
{
	snprintf(reached->why, sizeof(reached->why), "%s", why);
	reached->done = true;
}

static void on_reply(void *ctx, const struct http_reply *reply)
{
	struct call *call = ctx;
	struct reached *reached = call->reached;
	const struct destination_kind *kind = reached->kind;
	char message[PUSH_MESSAGE_MAX + 1];

	call->http = NULL;
	push_message(reply, message);
	say(reached, reply->status ? message : reply->error);
	reached->status = reply->status;
	reached->verdict = kind->verdict(reply);
	reached->refused = kind->probe_ok && kind->probe_ok(reply);
	if (reply->date_s)
		reached->ahead_s = reply->date_s - (int64_t)(nsec_wall() / NSEC_PER_SEC);
}

/* The agent creates a missing folder. */
static void look_at_folder(struct call *call)
{
	const bool ok = access(call->destination->url, W_OK | X_OK) == 0 || errno == ENOENT;

	call->reached->refused = ok;
	say(call->reached, ok ? "" : strerror(errno));
}

static bool has_files(struct call *call)
{
	int err = 0;
	const char *path = destination_unreadable_file(call->destination, &err);
	char text[REACHED_TEXT_MAX];

	if (!path)
		return true;
	call->reached->no_file = true;
	snprintf(text, sizeof(text), "cannot read %.200s: %s", path, strerror(err));
	say(call->reached, text);
	return false;
}

static int begin_call(struct http *http, const char *spec, struct call *call)
{
	_cleanup_(freep) char *error = NULL;
	struct push push = {
		.request = &call->request,
		.connect_ns = NETWORK_CONNECT_NS,
		.total_ns = NETWORK_TOTAL_NS,
	};
	const struct destination_kind *kind;
	int r = destination_new(spec, &call->destination, &error);

	call->reached->wrong = r > 0;
	if (r > 0)
		say(call->reached, error);
	if (r)
		return r < 0 ? r : 0;
	call->reached->kind = kind = call->destination->kind;
	snprintf(call->reached->where, sizeof(call->reached->where), "%s %s", kind->name,
		 call->destination->host);
	if (kind->folder) {
		look_at_folder(call);
		return 0;
	}
	if (!has_files(call))
		return 0;
	push.destination = call->destination;
	r = kind->encode(NULL, 0, &call->request);
	if (!r)
		r = push_start(http, &push, on_reply, call, &call->http);
	if (r)
		say(call->reached, push_start_error(r));
	return r == -ENOMEM ? r : 0;
}

int network_begin(struct http *http, const struct config *config, struct network_trial **ret)
{
	struct network_trial *trial = calloc(1, sizeof(*trial));
	struct network unused;
	int r = 0;

	if (!trial)
		return -ENOMEM;
	trial->network.n = config->destinations.n;
	for (size_t i = 0; i < trial->network.n && !r; i++) {
		trial->calls[i].reached = &trial->network.items[i];
		r = begin_call(http, config->destinations.items[i], &trial->calls[i]);
	}
	if (r)
		network_end(trial, &unused);
	else
		*ret = trial;
	return r;
}

bool network_pending(const struct network_trial *trial)
{
	for (size_t i = 0; i < trial->network.n; i++)
		if (!trial->network.items[i].done)
			return true;
	return false;
}

void network_end(struct network_trial *trial, struct network *ret)
{
	*ret = trial ? trial->network : (struct network){0};
	ret->now_s = (int64_t)(nsec_wall() / NSEC_PER_SEC);
	if (!trial)
		return;
	for (size_t i = 0; i < trial->network.n; i++) {
		http_cancel(trial->calls[i].http);
		destination_request_deinit(&trial->calls[i].request);
		destination_free(trial->calls[i].destination);
	}
	free(trial);
}

/* ---------------------------------------------------------------- checks */

/* No reply, or a reply that may change later. */
static bool may_pass(const struct reached *reached)
{
	return !reached->status || reached->verdict == DESTINATION_RETRY ||
	       reached->verdict == DESTINATION_RETRY_SMALLER;
}

static const char *remedy(const struct reached *reached, char ret[FINDING_TEXT_MAX])
{
	if (reached->wrong)
		return "see 'Destinations' in 'podprof agent --help'";
	if (reached->no_file)
		return "mount the secret with this file, or name another file that podprof may "
		       "read";
	if (reached->kind->folder)
		return "name a folder that podprof may write to";
	if (reached->status == 404 && reached->verdict == DESTINATION_DENIED)
		return "give the API key in bearer-token-file, and the server's base address";
	if (reached->status && reached->verdict == DESTINATION_DENIED)
		return "give valid credentials: bearer-token-file, basic-auth-user and "
		       "-password-file, tenant";
	if (reached->status == 404)
		return "give the server's base address; add a path only for a proxy";
	if (reached->status >= 300 && reached->status < 400)
		return "give the redirect's target address: podprof does not follow redirects";
	if (reached->status && may_pass(reached))
		return "see the server's own log";
	if (reached->status) {
		snprintf(ret, FINDING_TEXT_MAX, "check that this is a %s server",
			 reached->kind->title);
		return ret;
	}
	if (strstr(reached->why, "wrong version number")) /* OpenSSL's words */
		return "write http:// if the server has no TLS, or give the port of its TLS";
	if (strstr(reached->why, "certificate"))
		return "set ca-file=PATH to the certificates to trust";
	return "check the address from here: its name, its port, network policies and proxies";
}

static void check_destination(const struct reached *reached, struct findings *ret)
{
	const bool ok =
		reached->refused || (reached->status && reached->verdict == DESTINATION_SENT);
	struct finding *finding;
	char status[32] = "", text[FINDING_TEXT_MAX];

	if (ok) {
		findings_add(ret, "destination", FINDING_OK, "%s %s", reached->where,
			     reached->kind->folder ? "is usable" : "answers");
		return;
	}
	if (reached->status)
		snprintf(status, sizeof(status), "HTTP status %ld: ", reached->status);
	finding = findings_add(ret, "destination", FINDING_MISSING, "%s%s%s%s", reached->where,
			       *reached->where ? ": " : "", status,
			       reached->done ? reached->why : "no answer in time");
	finding_say(finding,
		    reached->wrong || reached->kind->folder ? "the agent does not start"
		    : may_pass(reached) ? "no profile arrives; podprof keeps retrying"
					: "no profile arrives",
		    remedy(reached, text));
}

/* Permitted difference of clocks in seconds. */
static int64_t apart_s(const struct network *network)
{
	uint64_t apart_ns = CLOCK_APART_S * NSEC_PER_SEC;

	for (size_t i = 0; i < network->n; i++) {
		const struct destination_kind *kind = network->items[i].kind;

		if (kind && kind->limits.ahead_ns / 2 < apart_ns)
			apart_ns = kind->limits.ahead_ns / 2;
		if (kind && kind->limits.age_ns / 2 < apart_ns)
			apart_ns = kind->limits.age_ns / 2;
	}
	return (int64_t)(apart_ns / NSEC_PER_SEC);
}

static void check_clock(const struct network *network, struct findings *ret)
{
	struct finding *finding;
	int64_t ahead_s = 0;

	/* the largest difference: if the destinations disagree, at least one clock is wrong, and
	 * profiles are lost */
	for (size_t i = 0; i < network->n; i++)
		if (llabs(network->items[i].ahead_s) > llabs(ahead_s))
			ahead_s = network->items[i].ahead_s;
	if (network->now_s >= CLOCK_LEAST_S && llabs(ahead_s) <= apart_s(network))
		return;
	if (network->now_s < CLOCK_LEAST_S)
		finding = findings_add(ret, "clock", FINDING_MISSING, "never set");
	else
		finding = findings_add(
			ret, "clock", FINDING_MISSING, "%" PRId64 " s %s the destination's",
			(int64_t)llabs(ahead_s), ahead_s > 0 ? "behind" : "ahead of");
	finding_say(finding, "profiles appear at the wrong time, or are refused as too old",
		    "set the node's clock (chrony, systemd-timesyncd)");
}

void network_check(const struct probe_results *results, struct findings *ret)
{
	for (size_t i = 0; i < results->network.n; i++)
		check_destination(&results->network.items[i], ret);
	check_clock(&results->network, ret);
}
