/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_WINDOW_H
#define PODPROF_CPU_WINDOW_H

/*
 * The stacks of a window that has ended, until their entities have their names: then those with the
 * same labels, which are one series, are reported together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/profile.h"

struct cpu_window;
struct entity;
struct fold;

/* Bytes of the stacks of a window that waits: those of 16 MB are not kept longer than necessary.
 * Reached: the window is reported with the labels that are known. */
#define CPU_WINDOW_BYTES_MAX (16u << 20)

/**
 * struct cpu_window_part - one entity's stacks of one kind
 * @entity: a reference
 * @fold:   owned
 * @n:      samples; @value: what they stand for together
 */
struct cpu_window_part {
	struct entity *entity;
	enum profile_kind kind;
	struct fold *fold;
	uint64_t n;
	uint64_t value;
};

/* @deadline_ns: monotonic; names are waited for until then. */
int cpu_window_new(uint64_t start_ns, uint64_t duration_ns, uint64_t deadline_ns,
		   struct cpu_window **ret);
void cpu_window_free(struct cpu_window *w);

uint64_t cpu_window_start_ns(const struct cpu_window *w);
uint64_t cpu_window_duration_ns(const struct cpu_window *w);

/* Takes @part->fold (and leaves NULL) on 0; a reference to the entity is its own. 0 or -ENOMEM. */
int cpu_window_add(struct cpu_window *w, struct cpu_window_part *part);
/* No entity's names may yet come, or there is no more time, or too much of it. */
bool cpu_window_ready(const struct cpu_window *w);

/* Takes the folds that it wants (and leaves NULL): those of one series, one or more. */
typedef void (*cpu_window_fn)(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
			      size_t n);
/* Calls @fn for each series; what its entity is not to be profiled for goes to @left_out
 * instead. */
void cpu_window_report(struct cpu_window *w, cpu_window_fn fn, cpu_window_fn left_out, void *ctx);

#endif
