/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_HTTP_H
#define PODPROF_GOPROFILE_HTTP_H

/*
 * Go's own profiles on demand, over HTTP. The request waits until a worker has read the processes,
 * each with a new reader, like 'podprof heap'. A request with seconds waits between two reads, not
 * the worker. Requests work only for profiled processes, and never change a process.
 */

#include <stddef.h>

#include "base/nsec.h"
#include "goprofile/policy.h"
#include "server/pull.h"

struct cpu_share;
struct discovery;
struct go_profile_http;
struct loop;
struct metric_sink;
struct root;

/* Differences at a time: each keeps its first read for the seconds of the request, with half of the
 * memory of other requests. Reached: 429; `podprof_go_pulls_total{outcome="busy"}`. */
#define GO_PROFILE_HTTP_DELTAS_MAX    2
/* Requests waiting for the worker. Reached: 429; `podprof_go_pulls_total{outcome="busy"}`. */
#define GO_PROFILE_HTTP_QUEUE_MAX     4
/* Nanoseconds of debt of the share of CPU time. Reached: 429;
 * `podprof_go_pulls_total{outcome="busy"}`. */
#define GO_PROFILE_HTTP_DEBT_MAX_NS   (5 * NSEC_PER_SEC)
/* Processes of a container in an answer. Reached: the others are left out:
 * `podprof_go_pulls_total{outcome="dropped"}`. */
#define GO_PROFILE_HTTP_PROCESSES_MAX 64
/* Samples of an answer. Reached: the others are left out:
 * `podprof_go_pulls_total{outcome="dropped"}`. */
#define GO_PROFILE_HTTP_SAMPLES_MAX   (1u << 17)
/* Bytes of an answer before compression. Reached: the rest is left out:
 * `podprof_go_pulls_total{outcome="dropped"}`. */
#define GO_PROFILE_HTTP_PPROF_MAX     (16u << 20)

/* Borrowed members must outlive the object. */
struct go_profile_http_opts {
	struct loop *loop;
	const struct root *proc;
	struct discovery *discovery;
	enum go_profile_mode mode;
	/* The annotation of an entity's pod; called on the loop. NULL: GO_PROFILE_WISH_NONE. */
	go_profile_wish_fn wish;
	void *ctx;
	size_t max_bytes;    /* ceiling for the records and stacks of an answer */
	size_t symbol_bytes; /* ceiling for its symbol tables */
	const char *doc_url; /* as in pprof_opts */
	/* Share of CPU time, charged with the pulls; far in debt, pulls are refused. NULL: none. */
	struct cpu_share *share;
};

int go_profile_http_new(const struct go_profile_http_opts *opts, struct go_profile_http **ret);
/* Waiting requests get the answer that the agent ends. NULL is allowed. */
void go_profile_http_free(struct go_profile_http *p);
/* Borrowed; lives as long as @p. */
const struct pull_source *go_profile_http_source(const struct go_profile_http *p);
/* A metric_collect_fn: podprof_go_pulls. */
void go_profile_http_collect(void *ctx, struct metric_sink *sink);

#endif
