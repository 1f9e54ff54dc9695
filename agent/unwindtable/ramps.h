/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_RAMPS_H
#define PODPROF_UNWINDTABLE_RAMPS_H

/* Which sequences of rows of one image are worth a ramp (bpf/shared/table.h). */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

/* A row, in units from the table's start. */
struct step {
	uint32_t unit;
	uint32_t rule;
};

/* Steps further apart than this are not of one ramp. Most pushes and pops have 1 or 2 bytes, and 4
 * is how far "sub $n, %rsp" and endbr64 reach; beyond, the sequences become so many that the rules'
 * numbers get longer. Measured over 1,030 files: bytes a row 1.42 with 2, 1.31 with 4, 1.26 with 8,
 * for 3,400, 6,200 and 15,900 different ramps. Reached: another ramp or slot. */
#define RAMPS_DISTANCE_MAX 4

/* Sequences that are counted, 2 MiB; libLLVM has 30,000. What comes up first when there are so many
 * is not counted. Reached: those that come later are not merged. */
#define RAMPS_NODES_MAX (1u << 17)

struct ramps;

/* Count the sequences in @n ascending steps; @steps is not kept. 0 or -ENOMEM. */
int ramps_new(const struct step *steps, size_t n, struct ramps **ret);
void ramps_free(struct ramps *ramps);

/* Allow at most @n ramps: those that are the most frequent. Until then there are none. */
void ramps_limit(struct ramps *ramps, size_t n);

/* Numbers of ramps are below this. */
size_t ramps_bound(const struct ramps *ramps);

/* How many steps the longest ramp has that @steps begin with, and its number; 1 if none does. */
size_t ramps_match(const struct ramps *ramps, const struct step *steps, size_t n, uint32_t *ret);

/* The ramp of that number. Its rules are those of the steps. */
void ramps_get(const struct ramps *ramps, uint32_t number, struct table_ramp *ret);

#endif
