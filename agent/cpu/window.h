/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_WINDOW_H
#define PODPROF_CPU_WINDOW_H

/*
 * The stacks of an ended window wait here until the metadata of their entities arrives. Then the
 * stacks of entities with equal labels form one series and one report.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/profile.h"

struct cpu_window;
struct entity;
struct fold;

/* Bytes of the stacks of a waiting window: a bound on memory. Reached: the window is reported with
 * the labels known so far. */
#define CPU_WINDOW_BYTES_MAX (16u << 20)

/**
 * struct cpu_window_part - the stacks of one entity and one kind of profile
 * @entity: a reference
 * @fold:   owned
 * @n:      samples
 * @value:  their total value
 */
struct cpu_window_part {
	struct entity *entity;
	enum profile_kind kind;
	struct fold *fold;
	uint64_t n;
	uint64_t value;
};

/* @deadline_ns: monotonic; end of the wait for metadata. */
int cpu_window_new(uint64_t start_ns, uint64_t duration_ns, uint64_t deadline_ns,
		   struct cpu_window **ret);
void cpu_window_free(struct cpu_window *w);

uint64_t cpu_window_start_ns(const struct cpu_window *w);
uint64_t cpu_window_duration_ns(const struct cpu_window *w);

/* If the result is 0, takes @part->fold (and leaves NULL) and a further reference to the entity. 0
 * or -ENOMEM. */
int cpu_window_add(struct cpu_window *w, struct cpu_window_part *part);
/* Whether the window can be reported: no entity is pending, the deadline is over, or the stacks
 * exceed CPU_WINDOW_BYTES_MAX. */
bool cpu_window_ready(const struct cpu_window *w);

/* Receives the parts of one series, one or more. May take folds (and leave NULL). */
typedef void (*cpu_window_fn)(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
			      size_t n);
/* Calls @fn for each series; parts excluded by their entity's settings go to @left_out instead. */
void cpu_window_report(struct cpu_window *w, cpu_window_fn fn, cpu_window_fn left_out, void *ctx);

#endif
