/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOALLOC_H
#define PODPROF_GOPROFILE_GOALLOC_H

/*
 * container_go_alloc_*: the allocations of each container's Go processes, as counters that never go
 * down while the container lives. The values of several processes are added, and the last values of
 * ended processes stay in the sum.
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
/* Go runtimes of a container followed at a time. Reached:
 * `podprof_go_processes_over_limit_total`. */
#define GOALLOC_PROCESSES_MAX  256

/* The values of a runtime: first counters, then gauges. */
enum goalloc_value {
	GOALLOC_ALLOC_BYTES, /* since the start of the program */
	GOALLOC_ALLOC_OBJECTS,
	GOALLOC_GC_CYCLES,
	GOALLOC_COUNTERS,

	GOALLOC_INUSE_BYTES = GOALLOC_COUNTERS, /* live at the last garbage collection, unsampled */
	GOALLOC_INUSE_OBJECTS,
	GOALLOC_HEAP_BYTES, /* allocated and not freed, including garbage */
	GOALLOC_HEAP_OBJECTS,
	GOALLOC_SPANS_BYTES, /* of spans with objects */
	GOALLOC_SYS_BYTES,   /* of all spans, also free or released */
	GOALLOC_RELEASED_BYTES,
	GOALLOC_LIVE_BYTES, /* live according to the last garbage collection, exact */
	GOALLOC_NEXT_GC_BYTES,
	GOALLOC_GOROUTINES,
	GOALLOC_VALUES,
};

/* A Go runtime. Each runtime of a process has a different number, also if the process later
 * executes another program; but a reader that has forgotten the process gives the numbers again
 * (goalloc_reading.mark). */
struct goalloc_who {
	struct pid_id pid;
	unsigned int number;
};

/**
 * struct goalloc_reading - the result of one look at a runtime
 * @has: a bit for each present enum goalloc_value; the others keep their earlier values
 * @mark: of the runtime's file and place in memory: with another one, the process has executed
 *        another program; 0: not known
 * @state, @source: words for the info metric, borrowed from constants
 */
struct goalloc_reading {
	uint32_t has;
	uint64_t values[GOALLOC_VALUES];
	uint64_t mark;
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
/* @container: labels_key() of the container's labels, unique to them; copied, as are the labels.
 * 0, GOALLOC_FULL, -ENOMEM. */
int goalloc_update(struct goalloc *g, const char *container, const struct labels *labels,
		   const struct goalloc_who *who, const struct goalloc_reading *reading);
/* The lowest number of a process's followed runtimes; without followed runtimes, that of the
 * runtimes that ended last; 1 if no runtime is known. For a reader that has forgotten the process.
 */
unsigned int goalloc_first_number(const struct goalloc *g, const char *container,
				  const struct pid_id *pid);
/* The container still exists, with or without Go processes. */
void goalloc_keep(struct goalloc *g, const char *container);
/* Call after each round of readings. Runtimes absent from the round have ended, and a container
 * absent for @keep_rounds is dropped. A container without a live runtime has the state "gone". */
void goalloc_end_round(struct goalloc *g, unsigned int keep_rounds);
/* The last report on a container's first runtime; borrowed until the next update. */
struct goalloc_view {
	const char *state;
	const char *go_version;
	uint64_t inuse_bytes;
};

/* False if the container has no Go process. */
bool goalloc_view(const struct goalloc *g, const char *container, struct goalloc_view *ret);
/* Parts of goalloc_collect(): each value of all containers, then the rest. */
#define GOALLOC_PARTS (GOALLOC_VALUES + 1)
void goalloc_collect(const struct goalloc *g, struct metric_sink *sink, size_t part);

#endif
