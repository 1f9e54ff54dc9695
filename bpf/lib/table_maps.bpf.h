/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TABLE_MAPS_BPF_H
#define PODPROF_BPF_LIB_TABLE_MAPS_BPF_H

/*
 * The maps of the unwind tables, and table.bpf.h's accessors. Weak: the same maps in every
 * object that includes this.
 *
 * The verifier turns every lookup here into a handful of instructions instead of a call, because
 * the array sizes are known. The size of a slab is known because all slabs are equal and have no
 * flag BPF_F_INNER_MAP (array_map_gen_lookup() in kernel/bpf/arraymap.c). The agent maps the maps
 * into memory and writes there.
 */

#include <bpf/bpf_helpers.h>
#include "lib/table.bpf.h"

/* Sizes instead of types: clang drops the size of a type used only by an inner map. */
struct table_slab {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_SLAB_PAGES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct table_page));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TABLE_SLABS);
	__type(key, __u32);
	__array(values, struct table_slab);
} table_slabs __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_EXES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct table_exe);
} table_exes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_EXES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct table_use);
} table_uses __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} table_rules __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLE_RULE_RUNS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct table_rule_run);
} table_rule_runs __weak SEC(".maps");

TABLE_INLINE const struct table_page *table_page(const struct table_space *space, __u64 number)
{
	__u32 slab = number / TABLE_SLAB_PAGES, index = number & (TABLE_SLAB_PAGES - 1);
	void *map = bpf_map_lookup_elem(&table_slabs, &slab);

	return map ? bpf_map_lookup_elem(map, &index) : (void *)0;
}

TABLE_INLINE const struct unwind_rule *table_rule(const struct table_space *space, __u64 number)
{
	__u32 key = number;

	return bpf_map_lookup_elem(&table_rules, &key);
}

TABLE_INLINE const struct table_rule_run *table_rule_run(const struct table_space *space,
							 __u64 number)
{
	__u32 key = number;

	return bpf_map_lookup_elem(&table_rule_runs, &key);
}

/* The executable's descriptor, for table_find(). NULL only for a number out of range. */
TABLE_INLINE const struct table_exe *table_descriptor(__u32 exe)
{
	return bpf_map_lookup_elem(&table_exes, &exe);
}

/* Add frames found in the executable, with or without a table. All CPUs count in one place: a walk
 * adds once for consecutive frames. */
TABLE_INLINE void table_used(__u32 exe, __u64 n_frames)
{
	struct table_use *use = bpf_map_lookup_elem(&table_uses, &exe);

	if (use)
		use->frames += n_frames;
}

#endif
