/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_PROFILER_H
#define PODPROF_GOPROFILE_PROFILER_H

/*
 * The way of a Go heap to a profile. Once a window, the processes of each container go to a worker
 * as a list. The worker reads the heaps of Go processes, names the stacks, encodes, and returns one
 * profile per container and the numbers for the container_go_* metrics.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/export.h"
#include "goprofile/goalloc.h"
#include "goprofile/policy.h"
#include "goprofile/reader.h"

struct discovery;
struct entity;
struct go_profiler;
struct loop;
struct metric_sink;
struct root;

/* Borrowed members must outlive the profiler. */
struct go_profiler_opts {
	struct loop *loop;
	const struct root *proc;
	struct discovery *discovery;
	enum go_profile_mode mode;
	/* The annotation of an entity's pod; called on the loop. NULL: GO_PROFILE_WISH_NONE. */
	go_profile_wish_fn wish;
	size_t heap_bytes;   /* ceiling for all processes' records together */
	size_t symbol_bytes; /* ceiling for symbol tables kept */
	bool no_contention;  /* do not read mutex and block profiles */
	uint64_t stuck_ns;   /* as in struct go_profile_worker_opts; 0: the default */
	/* Of one profile; {0}: profile_limits_max. */
	struct profile_limits limits;
	const char *doc_url; /* as in pprof_opts */
	/* Takes a finished profile; called on the loop. */
	void (*out)(void *ctx, struct profile *profile);
	void *ctx; /* of both callbacks */
};

int go_profiler_new(const struct go_profiler_opts *opts, struct go_profiler **ret);
/* Waits for the end of the current read, but not long. */
void go_profiler_free(struct go_profiler *p);

/* Before the first window, which begins at @start_ns (wall clock): read the processes older than
 * that, so that their first profiles have differences. Waits up to @wait_ns for pending names. */
void go_profiler_begin(struct go_profiler *p, uint64_t start_ns, uint64_t wait_ns);
/* Read all heaps, for profiles of this span (wall clock, as it is now set). While the last round is
 * unfinished, no new round begins, and the skip is counted. */
void go_profiler_end_window(struct go_profiler *p, uint64_t start_ns, uint64_t duration_ns);
/* The run ends: the next round is the last, and waits up to @wait_ns for pending names. */
void go_profiler_finish(struct go_profiler *p, uint64_t wait_ns);
/* Containers not read yet. */
size_t go_profiler_pending(const struct go_profiler *p);
/* The state of an entity's Go heap; false if none of its processes is Go. */
bool go_profiler_view(const struct go_profiler *p, const struct entity *entity,
		      struct goalloc_view *ret);
/* Memory of the caches after the last round. */
struct go_profile_memory go_profiler_memory(const struct go_profiler *p);
/* A metric_collect_part_fn: the values of all containers are many. */
#define GO_PROFILER_PARTS (GOALLOC_PARTS + 1)
void go_profiler_collect(void *ctx, struct metric_sink *sink, size_t part);

#endif
