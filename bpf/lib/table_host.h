/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TABLE_HOST_H
#define PODPROF_BPF_LIB_TABLE_HOST_H

/* table.bpf.h's accessors for the host: plain arrays. */

#include "lib/table.bpf.h"

struct table_space {
	const struct table_page *table_pages;
	const struct unwind_rule *rules;
	const struct table_rule_run *rule_runs;
	__u64 n_table_pages;
	__u64 n_rules;
	__u64 n_rule_runs;
};

TABLE_INLINE const struct table_page *table_page(const struct table_space *space, __u64 number)
{
	return number < space->n_table_pages ? &space->table_pages[number] : (void *)0;
}

TABLE_INLINE const struct unwind_rule *table_rule(const struct table_space *space, __u64 number)
{
	return number < space->n_rules ? &space->rules[number] : (void *)0;
}

TABLE_INLINE const struct table_rule_run *table_rule_run(const struct table_space *space,
							 __u64 number)
{
	return number < space->n_rule_runs ? &space->rule_runs[number] : (void *)0;
}

#endif
