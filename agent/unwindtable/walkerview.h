/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_WALKERVIEW_H
#define PODPROF_UNWINDTABLE_WALKERVIEW_H

/* A read-only view of the maps of a running podprof's walker, from outside. For inspection; needs
 * CAP_SYS_ADMIN. */

#include <stdint.h>

#include "shared/process.h"
#include "shared/table.h"

struct walkerview;

enum walkerview_outcome {
	WALKERVIEW_OK = 0,
	WALKERVIEW_NONE,    /* no walker runs */
	WALKERVIEW_UNKNOWN, /* no running walker knows the process */
	WALKERVIEW_ODD,	    /* the maps have another form: another version of podprof */
	WALKERVIEW_OUTCOME_MAX,
};

/* Opens the maps of the walker with @tgid and its record; of several walkers, the newest. 0, an
 * outcome, -errno (-EPERM: no permission). */
int walkerview_open(uint32_t tgid, struct walkerview **ret);
void walkerview_free(struct walkerview *view);

/* The record at the time of opening. Borrowed. */
const struct process *walkerview_process(const struct walkerview *view);
/* A mapping, out of n_mappings; all zeros if it does not exist. */
struct process_mapping walkerview_mapping(const struct walkerview *view, uint32_t i);

/* NULL for an invalid number. Borrowed; changes while the walker runs. */
const struct table_exe *walkerview_exe(const struct walkerview *view, uint16_t number);
/* Walkers' count of frames in the executable. */
uint64_t walkerview_frames(const struct walkerview *view, uint16_t number);

/* The walker's lookup result at a pc. */
struct walkerview_row {
	uint64_t vaddr;
	uint16_t exe;	/* 0: code without an image */
	uint32_t found; /* enum table_found: whether there is a row */
	struct unwind_rule rule;
};

/* 0, or WALKERVIEW_UNKNOWN if @pc is in no mapping. */
int walkerview_lookup(const struct walkerview *view, uint64_t pc, struct walkerview_row *ret);

#endif
