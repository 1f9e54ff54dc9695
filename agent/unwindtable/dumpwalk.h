/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_DUMPWALK_H
#define PODPROF_UNWINDTABLE_DUMPWALK_H

/* The walk over a stack dump (bpf/shared/stack_dump.h). It uses the tables of the kernel's walker,
 * and the walker's own text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/process.h"
#include "shared/settings.h"
#include "shared/stack_dump.h"

struct dumpwalk;
struct tables;
struct unwind_rule;

/* Missing images reported by one walk. Reached: a later walk reports the others, once these have
 * tables. */
#define DUMPWALK_MISSING_MAX 8

/**
 * struct dumpwalk_from - start of a walk; all of it borrowed
 * @at:     address of the first of @n_bytes bytes
 * @pieces: of each STACK_DUMP_READ_BYTES of these: the distance from @at, in pieces; ascending.
 *          NULL: without gaps
 * @maps:   of the process, sorted, none overlapping: @n_maps, 0 if nothing is known
 * @runtime: enum frame_runtime whose step the walk has
 * @process: the record of the process for that runtime, for a walk with an excerpt; else NULL
 * @rule:    the rule at @vaddr of an executable without a table, false if it is not known
 *           (early_rules.h); NULL: none is known. Gets @rule_ctx
 * @excerpt: of the runtime's memory (shared/stack_dump.h), @n_excerpt bytes aligned to 8
 */
struct dumpwalk_from {
	const struct regs *regs;
	uint64_t at;
	const uint8_t *bytes;
	size_t n_bytes;
	const uint16_t *pieces;
	const struct process_mapping *maps;
	size_t n_maps;
	uint32_t runtime;
	const void *process;
	const uint8_t *excerpt;
	size_t n_excerpt;
	enum settings_unwind mode;
	bool (*rule)(void *ctx, uint16_t exe, uint64_t vaddr, struct unwind_rule *ret);
	void *rule_ctx;
};

/**
 * struct dumpwalk_stack - result of a walk
 * @words:   @n words of frames as in a sample, innermost first; borrowed until the next walk
 * @n_rows:  number of frames found by rows
 * @end:     enum sample_end
 * @flags:   SAMPLE_FLAG_*
 * @missing: executables on the stack without a table and without the rule, the innermost first
 */
struct dumpwalk_stack {
	const uint64_t *words;
	size_t n;
	size_t n_rows;
	uint32_t end;
	uint32_t flags;
	uint16_t missing[DUMPWALK_MISSING_MAX];
	size_t n_missing;
};

/* @tables is borrowed. 0 or -ENOMEM. */
int dumpwalk_new(struct tables *tables, struct dumpwalk **ret);
void dumpwalk_free(struct dumpwalk *dw);
/* Counts the images on the stack as the kernel's walkers do (struct table_use). */
void dumpwalk_walk(struct dumpwalk *dw, const struct dumpwalk_from *from,
		   struct dumpwalk_stack *ret);
/* After a group of walks: unmaps the memory that was mapped for them. */
void dumpwalk_rest(struct dumpwalk *dw);

#endif
