/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_PROCESS_MAPS_BPF_H
#define PODPROF_BPF_LIB_PROCESS_MAPS_BPF_H

/* The walker's process records (shared/process.h). Weak: the same map in every object that includes
 * this header. The agent writes, with bpf_map_update_elem() and bpf_map_delete_elem(). */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include "shared/process.h"

/* Preallocated: 8,192 records take 0.8 MB. Before 6.1, hashes without preallocation were unsuitable
 * for programs such as these. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROCESS_RECORDS);
	__type(key, __u32);
	__type(value, struct process);
} process_records __weak SEC(".maps");

#endif
