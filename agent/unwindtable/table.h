/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_TABLE_H
#define PODPROF_UNWINDTABLE_TABLE_H

/*
 * The packed unwind table of one image in the kernel's layout (bpf/shared/table.h), but with local
 * numbers of rules and rule runs. tables_publish() gives the table a place and the node's numbers.
 */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"
#include "unwind/rows.h"

/* Bytes of one table image: ten times the largest program seen (700 MB of Go: 3 MB). Reached:
 * `TABLE_TOO_LARGE`. */
#define TABLE_BYTES_MAX (32u << 20)

/**
 * struct table - one packed table; plain memory, may go from thread to thread
 * @exe:     positions in @table_image; the place of the table image (table_page, tail) is as if it
 *           were alone
 * @table_image:    @n_bytes, a multiple of TABLE_SUBPAGE_BYTES, allocated to whole pages
 * @n_ids:   local ids; each is a rule's index in @rules, or TABLE_RULE_RUN and an index in
 *           @rule_runs
 * @rule_runs:   their rules are indexes in @rules
 * @n_rows:  rows in the table
 * @n_cut:   rows that became gaps. 0 for the output of compilers
 */
struct table {
	struct table_exe exe;
	uint8_t *table_image;
	size_t n_bytes;
	uint32_t n_ids;
	uint32_t n_rules;
	uint32_t n_rule_runs;
	struct unwind_rule *rules;
	struct table_rule_run *rule_runs;
	size_t n_rows;
	size_t n_cut;
};

enum table_outcome {
	TABLE_OK = 0,
	TABLE_EMPTY,	 /* there are no rows */
	TABLE_TOO_LARGE, /* the code is too far apart or too much */
};

/**
 * table_pack() - pack finished rows
 *
 * The same rows give the same bytes. Pure, for a worker's thread; besides the result it takes 8
 * bytes a row.
 *
 * Return: 0, an outcome, -ENOMEM.
 */
int table_pack(const struct rows *rows, struct table **ret);
void table_free(struct table *table);

/* The walker's lookup of the rule at @vaddr: TABLE_FOUND, or the reason of a miss (enum
 * table_found). Never reads outside the table, even for invalid content. */
uint32_t table_lookup(const struct table *table, uint64_t vaddr, struct unwind_rule *ret);

#endif
