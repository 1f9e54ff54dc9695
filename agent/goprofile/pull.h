/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_PULL_H
#define PODPROF_GOPROFILE_PULL_H

/*
 * Go's own profiles on demand, over HTTP: who asks waits until a worker has read the processes,
 * each by a reader that is made for it, as 'podprof heap' does. Only processes that are profiled
 * anyway can be asked for, and none is changed.
 */

#include <stddef.h>

#include "goprofile/mode.h"
#include "server/pull.h"

struct discovery;
struct heap_pull;
struct loop;
struct metric_sink;
struct owner;
struct root;

/* Requests waiting for the worker; who comes then is told to come again. Reached: 503;
 * `podprof_go_pulls_total{outcome="busy"}`. */
#define HEAP_PULL_QUEUE_MAX	4
/* Processes of a container that one answer is of; the others are left out, and counted. Reached:
 * `podprof_go_pulls_total{outcome="left_out"}`. */
#define HEAP_PULL_PROCESSES_MAX 64
/* Samples and bytes before compression of one answer; what has no room is left out, and counted.
 * Reached: `podprof_go_pulls_total{outcome="left_out"}`. */
#define HEAP_PULL_SAMPLES_MAX	(1u << 17)
/* Bytes of one answer before compression. Reached: `podprof_go_pulls_total{outcome="left_out"}`. */
#define HEAP_PULL_PPROF_MAX	(16u << 20)

/* What is borrowed must outlive it. */
struct heap_pull_opts {
	struct loop *loop;
	const struct root *proc;
	struct discovery *discovery;
	enum heap_mode mode;
	/* What an owner's pod asks for; called on the loop. NULL: HEAP_WISH_NONE. */
	heap_wish_fn wish;
	void *ctx;
	size_t max_bytes;    /* ceiling for the records and stacks of one answer */
	size_t symbol_bytes; /* and for its symbol tables */
};

int heap_pull_new(const struct heap_pull_opts *opts, struct heap_pull **ret);
/* Requests that wait are answered that it ends. NULL is fine. */
void heap_pull_free(struct heap_pull *p);
/* Borrowed; lives as long as @p. */
const struct pull_source *heap_pull_source(const struct heap_pull *p);
/* A metric_collect_fn: podprof_go_pulls. */
void heap_pull_collect(void *ctx, struct metric_sink *sink);

#endif
