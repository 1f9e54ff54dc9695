/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_COPYWALK_H
#define PODPROF_UNWINDTABLE_COPYWALK_H

/* The walk over a stack that was copied out of a process (bpf/shared/copy.h), by the tables that
 * the walker in the kernel has, and by its own text. */

#include <stddef.h>
#include <stdint.h>

#include "shared/copy.h"
#include "shared/process.h"
#include "shared/settings.h"

struct copywalk;
struct tables;

/* Images without a table that one walk tells of; those behind them are seen when these are there.
 * Reached: the others are come upon when those are there. */
#define COPYWALK_MISSING_MAX 8

/**
 * struct copywalk_from - where it begins; all of it borrowed
 * @at:     address of the first of @n_bytes bytes
 * @maps:   of the process, sorted, none overlapping: @n_maps, 0 if nothing is known
 */
struct copywalk_from {
	const struct regs *regs;
	uint64_t at;
	const uint8_t *bytes;
	size_t n_bytes;
	const struct process_mapping *maps;
	size_t n_maps;
	enum settings_unwind mode;
};

/**
 * struct copywalk_stack - what it found
 * @pcs:     @n frames as in a sample, innermost first; borrowed until the next walk
 * @n_rows:  of them found by rows
 * @end:     enum sample_end
 * @flags:   SAMPLE_FLAG_*
 * @missing: executables that it came upon and that have no table, the innermost first
 */
struct copywalk_stack {
	const uint64_t *pcs;
	size_t n;
	size_t n_rows;
	uint32_t end;
	uint32_t flags;
	uint16_t missing[COPYWALK_MISSING_MAX];
	size_t n_missing;
};

/* @tables is borrowed. 0 or -ENOMEM. */
int copywalk_new(struct tables *tables, struct copywalk **ret);
void copywalk_free(struct copywalk *cw);
/* Counts the images that it comes upon as the kernel's walkers do (struct table_use). */
void copywalk_walk(struct copywalk *cw, const struct copywalk_from *from,
		   struct copywalk_stack *ret);
/* After some walks: what was mapped for them is not any more. */
void copywalk_rest(struct copywalk *cw);

#endif
