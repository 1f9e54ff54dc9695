/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_RULE_RUNS_H
#define PODPROF_UNWINDTABLE_RULE_RUNS_H

/* Selection of the row sequences of one image that become rule runs (bpf/shared/table.h). */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

/* A row, in units from the table's start. */
struct step {
	uint32_t unit;
	uint32_t rule; /* a number below 2^31 */
};

/* Units of code (bytes; on arm64 instructions) between steps of one rule run. Most pushes and pops
 * have 1 or 2 bytes, and 4 reaches over "sub $n, %rsp" and endbr64. Larger distances give so many
 * sequences that the rules' numbers get longer. Measured over 1,030 files: bytes a row 1.42 with
 * 2, 1.31 with 4, 1.26 with 8, for 3,400, 6,200 and 15,900 different rule runs. Reached: another
 * rule run or slot. */
#define RULE_RUNS_DISTANCE_MAX 4

/* Sequences that are counted, 3 MiB; libLLVM has 30,000. Later sequences are not counted.
 * Reached: later sequences are not merged. */
#define RULE_RUNS_NODES_MAX (1u << 17)

struct rule_runs;

/* Count the sequences in @n ascending steps, whose rules are below @n_rules; @steps is not kept. 0
 * or -ENOMEM. */
int rule_runs_new(struct step *steps, size_t n, size_t n_rules, struct rule_runs **ret);
void rule_runs_free(struct rule_runs *rule_runs);

/* Allows at most @n rule runs, the most frequent ones. Before this call there are none. */
void rule_runs_limit(struct rule_runs *rule_runs, size_t n);

/* Numbers of rule runs are below this. */
size_t rule_runs_bound(const struct rule_runs *rule_runs);

/* Length and number of the longest rule run at the start of @steps, which were counted; without a
 * match 1 and the rule of the step. */
size_t rule_runs_match(const struct rule_runs *rule_runs, const struct step *steps, size_t n,
		       uint32_t *ret);

/* The rule run of that number. Its rules are the rules of the steps. */
void rule_runs_get(const struct rule_runs *rule_runs, uint32_t number, struct table_rule_run *ret);

#endif
