/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOALLOC_H
#define PODPROF_GOPROFILE_GOALLOC_H

/*
 * container_go_alloc_*: what each container's Go processes have allocated, as counters that never
 * go down while the container lives. Several processes add up; what a process had when it ended
 * stays in the sum.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "discovery/pid.h"

struct goalloc;
struct metric_sink;

/* Containers with Go processes; a node's kubelet allows 110 pods by default, some allow 500.
 * Reached: `podprof_go_processes_over_limit_total`. */
#define GOALLOC_CONTAINERS_MAX 4096
/* Go runtimes of one container that are followed at a time. Reached:
 * `podprof_go_processes_over_limit_total`. */
#define GOALLOC_PROCESSES_MAX  256

/* What is told of a runtime. The first are counters; the others are gauges. */
enum goalloc_value {
	GOALLOC_ALLOC_BYTES, /* since the program started */
	GOALLOC_ALLOC_OBJECTS,
	GOALLOC_GC_CYCLES,
	GOALLOC_COUNTERS,

	GOALLOC_INUSE_BYTES = GOALLOC_COUNTERS, /* live at the last garbage collection, unsampled */
	GOALLOC_INUSE_OBJECTS,
	GOALLOC_HEAP_BYTES, /* allocated and not freed, garbage included */
	GOALLOC_HEAP_OBJECTS,
	GOALLOC_SPANS_BYTES, /* of the spans that have objects */
	GOALLOC_SYS_BYTES,   /* of all spans, those included that are free or given back */
	GOALLOC_RELEASED_BYTES,
	GOALLOC_LIVE_BYTES, /* found to be live by the last garbage collection, exact */
	GOALLOC_NEXT_GC_BYTES,
	GOALLOC_GOROUTINES,
	GOALLOC_VALUES,
};

/* One Go runtime. A process may have several, of which each has a number; the one of a program that
 * it executes later has another number than the one before. */
struct goalloc_who {
	struct pid_id pid;
	unsigned int number;
};

/**
 * struct goalloc_reading - what one look at one runtime gave
 * @has: a bit for each enum goalloc_value that is there; the others keep what they were
 * @state, @source: words for the info metric, borrowed from constants
 */
struct goalloc_reading {
	uint32_t has;
	uint64_t values[GOALLOC_VALUES];
	const char *go_version; /* copied */
	const char *source;
	const char *state;
};

void goalloc_set(struct goalloc_reading *reading, enum goalloc_value what, uint64_t value);

enum goalloc_outcome {
	GOALLOC_OK = 0,
	GOALLOC_FULL, /* over a ceiling: not followed, counted */
};

int goalloc_new(struct goalloc **ret);
void goalloc_free(struct goalloc *g);
/* @container: what tells its labels from all others: labels_key(); copied, as are the labels. 0,
 * GOALLOC_FULL, -ENOMEM. */
int goalloc_update(struct goalloc *g, const char *container, const struct labels *labels,
		   const struct goalloc_who *who, const struct goalloc_reading *reading);
/* The container is still there, whether it has Go processes now or not. */
void goalloc_keep(struct goalloc *g, const char *container);
/* After each round of readings: runtimes not seen in it have ended, and a container that was not
 * seen for @keep_rounds is dropped. One whose runtimes have all ended has the state "gone". */
void goalloc_end_round(struct goalloc *g, unsigned int keep_rounds);
/* A container's first runtime as last reported; borrowed until the next update. */
struct goalloc_view {
	const char *state;
	const char *go_version;
	uint64_t inuse_bytes;
};

/* False if the container has no Go process. */
bool goalloc_view(const struct goalloc *g, const char *container, struct goalloc_view *ret);
/* A metric_collect_fn. */
void goalloc_collect(void *ctx, struct metric_sink *sink);

#endif
