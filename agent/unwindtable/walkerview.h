/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_WALKERVIEW_H
#define PODPROF_UNWINDTABLE_WALKERVIEW_H

/* What the walker of a running podprof goes by: the kernel's maps, found from outside and only
 * read. For inspecting; it needs CAP_SYS_ADMIN. */

#include <stdint.h>

#include "shared/process.h"
#include "shared/table.h"

struct walkerview;

enum walkerview_outcome {
	WALKERVIEW_OK = 0,
	WALKERVIEW_NONE,    /* no walker runs */
	WALKERVIEW_UNKNOWN, /* no walker that runs knows the process */
	WALKERVIEW_ODD,	    /* the maps have another form: another version of podprof */
	WALKERVIEW_OUTCOME_MAX,
};

/* The maps of the walker that knows @tgid, the one that began last if there are several, and its
 * record. 0, an outcome, -errno (-EPERM: may not look). */
int walkerview_open(uint32_t tgid, struct walkerview **ret);
void walkerview_free(struct walkerview *view);

/* As it was when it was opened. Borrowed. */
const struct process *walkerview_process(const struct walkerview *view);
/* One of its n_mappings; all zeros for what is not there. */
struct process_mapping walkerview_mapping(const struct walkerview *view, uint32_t i);

/* NULL for a number that there cannot be. Borrowed; changes while one looks. */
const struct table_exe *walkerview_exe(const struct walkerview *view, uint16_t number);
/* Frames that walkers came upon in it. */
uint64_t walkerview_frames(const struct walkerview *view, uint16_t number);

/* What the walker finds at a pc. */
struct walkerview_row {
	uint64_t vaddr;
	uint16_t exe;	/* 0: code without an image */
	uint32_t found; /* enum table_found: whether there is a row */
	struct unwind_rule rule;
};

/* 0, or WALKERVIEW_UNKNOWN if @pc is in no mapping. */
int walkerview_lookup(const struct walkerview *view, uint64_t pc, struct walkerview_row *ret);

#endif
