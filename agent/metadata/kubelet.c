// SPDX-License-Identifier: Apache-2.0
/*
 * The kubelet answers with all its pods, has no watch, and encodes the list anew each time. podprof
 * requests a list for an unknown container; the kubelet learns of a container's id up to a second
 * after the start. podprof also polls for changed labels and annotations. The cost for both sides
 * is proportional to the bytes, so the interval grows with the list: a few seconds on most nodes,
 * longer for more pods.
 */
#include "metadata/kubelet.h"

#include <errno.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"

/* Bytes of lists a second while nothing happens. An unchanged list costs three milliseconds per
 * megabyte: 0.03 % of a CPU. */
#define KUBELET_BYTES_PER_S	 (96u << 10)
/* Shortest and longest polling interval. */
#define KUBELET_REFRESH_NS	 (4 * NSEC_PER_SEC)
#define KUBELET_REFRESH_LAST_NS	 (60 * NSEC_PER_SEC)
/* Delay from an unknown container to the next list. */
#define KUBELET_PAUSE_NS	 (250 * NSEC_PER_MSEC)
/* Shortest interval between lists: while many containers start, there is always an unknown one, and
 * the kubelet looks at its runtime once a second. */
#define KUBELET_APART_NS	 NSEC_PER_SEC
#define KUBELET_TOTAL_NS	 (10 * NSEC_PER_SEC)
/* Longest backoff after failures; and after a refusal, because a refused kubelet must ask the API
 * server each time. */
#define KUBELET_BACKOFF_NS	 (10 * NSEC_PER_SEC)
#define KUBELET_DENIED_NS	 (30 * NSEC_PER_SEC)
/* The same while another server supplies the pods. */
#define KUBELET_SPARE_BACKOFF_NS (300 * NSEC_PER_SEC)
#define KUBELET_SPARE_DENIED_NS	 (1800 * NSEC_PER_SEC)

struct kubelet {
	struct podclient *client;
	struct loop_source *timer;
	struct backoff backoff;
	bool wanted;  /* a list was requested since the last request began */
	bool failing; /* the timer is set to the backoff */
	bool spare;
	bool resting;
	uint64_t listed_ns; /* monotonic: end of the last list; 0: none */
	kubelet_listed_fn listed;
	void *ctx;
};

uint64_t kubelet_refresh_ns(uint64_t n_bytes)
{
	const uint64_t most = KUBELET_REFRESH_LAST_NS / NSEC_PER_SEC * KUBELET_BYTES_PER_S;
	uint64_t ns;

	if (n_bytes >= most)
		return KUBELET_REFRESH_LAST_NS;
	ns = n_bytes * NSEC_PER_SEC / KUBELET_BYTES_PER_S;
	return ns < KUBELET_REFRESH_NS ? KUBELET_REFRESH_NS : ns;
}

bool kubelet_keeps_up(uint64_t n_bytes)
{
	return kubelet_refresh_ns(n_bytes) == KUBELET_REFRESH_NS;
}

static void due(void *ctx)
{
	static const struct podclient_request request = {
		.path = "/pods",
		.kind = PODSTREAM_LIST,
		.total_ns = KUBELET_TOTAL_NS,
	};
	struct kubelet *kubelet = ctx;

	kubelet->wanted = false;
	podclient_get(kubelet->client, &request);
}

static void arm(struct kubelet *kubelet, uint64_t delay_ns)
{
	(void)loop_arm(kubelet->timer, delay_ns, 0); /* fails only for an invalid delay */
}

static uint64_t longest_wait_ns(const struct kubelet *kubelet, enum podclient_outcome outcome)
{
	if (outcome == PODCLIENT_DENIED)
		return kubelet->spare ? KUBELET_SPARE_DENIED_NS : KUBELET_DENIED_NS;
	return kubelet->spare ? KUBELET_SPARE_BACKOFF_NS : KUBELET_BACKOFF_NS;
}

static void replied(void *ctx, const struct podclient_reply *reply)
{
	struct kubelet *kubelet = ctx;

	kubelet->failing = reply->outcome != PODCLIENT_OK;
	kubelet->listed_ns = nsec_monotonic();
	kubelet->listed(kubelet->ctx, reply);
	if (kubelet->failing) {
		kubelet->backoff.max_ns = longest_wait_ns(kubelet, reply->outcome);
		arm(kubelet, backoff_wait_ns(&kubelet->backoff, reply->retry_after_ns) + 1);
		return;
	}
	backoff_reset(&kubelet->backoff);
	arm(kubelet, kubelet->wanted ? KUBELET_APART_NS : kubelet_refresh_ns(reply->n_bytes));
}

void kubelet_look(struct kubelet *kubelet)
{
	uint64_t since_ns = nsec_monotonic() - kubelet->listed_ns;

	if (kubelet->wanted || kubelet->resting)
		return;
	kubelet->wanted = true;
	if (!kubelet->failing && !podclient_busy(kubelet->client))
		arm(kubelet, since_ns + KUBELET_PAUSE_NS < KUBELET_APART_NS
				     ? KUBELET_APART_NS - since_ns
				     : KUBELET_PAUSE_NS);
}

void kubelet_spare(struct kubelet *kubelet, bool spare)
{
	kubelet->spare = spare;
}

void kubelet_rest(struct kubelet *kubelet, bool rest)
{
	if (rest == kubelet->resting)
		return;
	kubelet->resting = rest;
	kubelet->failing = false;
	kubelet->wanted = !rest;
	backoff_reset(&kubelet->backoff);
	podclient_cancel(kubelet->client);
	if (rest)
		(void)loop_disarm(kubelet->timer);
	else
		arm(kubelet, 1);
}

DEFINE_CLEANUP(struct kubelet *, kubelet_freep, kubelet_free);

int kubelet_new(struct loop *loop, const struct podclient_opts *opts, kubelet_listed_fn listed,
		void *ctx, struct kubelet **ret)
{
	_cleanup_(kubelet_freep) struct kubelet *kubelet = calloc(1, sizeof(*kubelet));
	int r;

	if (!kubelet)
		return -ENOMEM;
	kubelet->listed = listed;
	kubelet->ctx = ctx;
	r = podclient_new(opts, replied, kubelet, &kubelet->client);
	if (!r)
		r = loop_add_timer(loop, due, kubelet, &kubelet->timer);
	if (r)
		return r;
	kubelet->wanted = true;
	arm(kubelet, 1);
	*ret = take_ptr(kubelet);
	return 0;
}

void kubelet_free(struct kubelet *kubelet)
{
	if (!kubelet)
		return;
	loop_remove(kubelet->timer);
	podclient_free(kubelet->client);
	free(kubelet);
}
