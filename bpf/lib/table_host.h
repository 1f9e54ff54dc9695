/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TABLE_HOST_H
#define PODPROF_BPF_LIB_TABLE_HOST_H

/* table.bpf.h's accessors for the host: plain arrays. */

#include "lib/table.bpf.h"

struct table_space {
	const struct table_element *elements;
	const struct unwind_rule *rules;
	const struct table_ramp *ramps;
	__u64 n_elements;
	__u64 n_rules;
	__u64 n_ramps;
};

TABLE_INLINE const struct table_element *table_element(const struct table_space *space,
						       __u64 number)
{
	return number < space->n_elements ? &space->elements[number] : (void *)0;
}

TABLE_INLINE const struct unwind_rule *table_rule(const struct table_space *space, __u64 number)
{
	return number < space->n_rules ? &space->rules[number] : (void *)0;
}

TABLE_INLINE const struct table_ramp *table_ramp(const struct table_space *space, __u64 number)
{
	return number < space->n_ramps ? &space->ramps[number] : (void *)0;
}

#endif
