// SPDX-License-Identifier: Apache-2.0
/*
 * A process's mappings are read on a thread. The read takes 100 us, and two seconds if the thread
 * is blocked by another process. A sample that needs the mappings waits here with a copy of its
 * stack. An owner whose processes block their readers fills its share of the bytes only.
 */
#include "cpu/waiting_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/metric.h"
#include "base/share.h"
#include "profile/sample.h"

enum waiting_outcome { WAITING_PASSED, WAITING_EXPIRED, WAITING_FULL, WAITING_OUTCOME_MAX };

static const char *const outcome_names[WAITING_OUTCOME_MAX] = {
	[WAITING_PASSED] = "passed",
	[WAITING_EXPIRED] = "expired",
	[WAITING_FULL] = "full",
};

struct waiting_sample {
	TAILQ_ENTRY(waiting_sample) in_list;
	struct share_holder *holder; /* of bytes, by owner */
	size_t size;
	uint64_t put_ns; /* monotonic */
	struct sample_time taken;
	bool off_cpu;
	bool changed; /* the mappings of its process */
	struct sample sample;
	uint64_t words[]; /* of the sample: kernel, then user */
};

TAILQ_HEAD(waiting_list, waiting_sample);

struct waiting_samples {
	waiting_sample_fn fn;
	void *ctx;
	struct waiting_list list; /* the oldest first */
	struct share_holder *holders;
	size_t n;
	size_t bytes;
	uint64_t outcomes[WAITING_OUTCOME_MAX];
};

static void drop(struct waiting_samples *ws, struct waiting_sample *w)
{
	TAILQ_REMOVE(&ws->list, w, in_list);
	ws->n--;
	ws->bytes -= w->size;
	w->holder->held -= w->size;
	share_holder_put(&ws->holders, w->holder);
	free(w);
}

static struct waiting_sample *copy(const struct sample *sample)
{
	const size_t n = sample->n_kernel + sample->n_user;
	struct waiting_sample *w = malloc(sizeof(*w) + n * sizeof(w->words[0]));

	if (!w)
		return NULL;
	*w = (struct waiting_sample){.size = sizeof(*w) + n * sizeof(w->words[0]),
				     .sample = *sample};
	memcpy(w->words, sample->kernel, sample->n_kernel * sizeof(w->words[0]));
	memcpy(w->words + sample->n_kernel, sample->user, sample->n_user * sizeof(w->words[0]));
	w->sample.kernel = w->words;
	w->sample.user = w->words + sample->n_kernel;
	return w;
}

bool waiting_samples_add(struct waiting_samples *ws, const struct sample *sample, uint64_t owner,
			 bool off_cpu, const struct sample_time *taken)
{
	struct share_holder *h = share_holder_get(&ws->holders, owner);
	struct waiting_sample *w = NULL;

	if (h && share_allows(WAITING_SAMPLES_BYTES_MAX, ws->bytes, h->held))
		w = copy(sample);
	if (!w) {
		share_holder_put(&ws->holders, h);
		ws->outcomes[WAITING_FULL]++;
		return false;
	}
	w->holder = h;
	w->put_ns = nsec_monotonic();
	w->taken = *taken;
	w->off_cpu = off_cpu;
	TAILQ_INSERT_TAIL(&ws->list, w, in_list);
	ws->n++;
	ws->bytes += w->size;
	h->held += w->size;
	return true;
}

void waiting_samples_changed(struct waiting_samples *ws, uint64_t pid)
{
	struct waiting_sample *w;

	TAILQ_FOREACH(w, &ws->list, in_list)
	w->changed |= w->sample.pid.pid == pid;
}

bool waiting_samples_retry(struct waiting_samples *ws, bool force, uint64_t end_ns)
{
	const uint64_t now_ns = nsec_monotonic();
	struct waiting_sample *w, *next;
	size_t n = 0;

	for (w = TAILQ_FIRST(&ws->list); w; w = next) {
		const bool expired = force || now_ns - w->put_ns > WAITING_SAMPLES_NS;

		next = TAILQ_NEXT(w, in_list);
		if (!w->changed && !expired)
			continue;
		if (n++ && nsec_monotonic() >= end_ns)
			return true;
		w->changed = false;
		if (!ws->fn(ws->ctx, &w->sample, w->off_cpu, &w->taken, expired))
			continue;
		ws->outcomes[expired ? WAITING_EXPIRED : WAITING_PASSED]++;
		drop(ws, w);
	}
	return false;
}

size_t waiting_samples_n(const struct waiting_samples *ws)
{
	return ws->n;
}

/* ---------------------------------------------------------------- life */

int waiting_samples_new(waiting_sample_fn fn, void *ctx, struct waiting_samples **ret)
{
	struct waiting_samples *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return -ENOMEM;
	ws->fn = fn;
	ws->ctx = ctx;
	TAILQ_INIT(&ws->list);
	*ret = ws;
	return 0;
}

void waiting_samples_free(struct waiting_samples *ws)
{
	if (!ws)
		return;
	while (ws->n)
		drop(ws, TAILQ_FIRST(&ws->list));
	free(ws);
}

void waiting_samples_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc samples = {
		"podprof_waiting_samples", METRIC_COUNTER,
		"Stacks that waited for the mappings of their process, by outcome.", NULL};
	struct waiting_samples *ws = ctx;

	metric_by_name(sink, &samples, "outcome", ws->outcomes, outcome_names, WAITING_OUTCOME_MAX);
}
