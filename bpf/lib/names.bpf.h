/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_NAMES_BPF_H
#define PODPROF_BPF_LIB_NAMES_BPF_H

/*
 * The name of the sampled thread (--thread-names), and a limit of names, which names of tasks have,
 * too (python_task.bpf.h). Each name gives a stack another entry in the stack maps. A process may
 * change its names at any rate, so a process has SAMPLE_NAMES_MAX names of a kind until user space
 * empties the map, with each drain. The rest of its threads or tasks share one label.
 *
 * settings.thread_names is read-only data, known to the verifier. With 0 it removes all of this.
 */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include "lib/settings.bpf.h"
#include "shared/sample.h"

/* The names in use, and for each process their number. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_name_key);
	__type(value, __u32);
} sample_names __weak SEC(".maps");

/* Count one more name of the kind and process of @like. False above the limit, or without room. */
static __always_inline int names_spend(const struct sample_name_key *like)
{
	struct sample_name_key key = {.tgid = like->tgid, .kind = like->kind, .is_count = 1};
	__u32 *n = bpf_map_lookup_elem(&sample_names, &key), zero = 0;

	if (!n) {
		bpf_map_update_elem(&sample_names, &key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&sample_names, &key);
	}
	/* CPUs that look at the same time may exceed the limit by their number. */
	if (!n || *n >= SAMPLE_NAMES_MAX)
		return 0;
	__sync_fetch_and_add(n, 1);
	return 1;
}

/* Whether the process may use this name. */
static __always_inline int names_permit(const struct sample_name_key *key)
{
	const __u32 one = 1;
	int r;

	if (bpf_map_lookup_elem(&sample_names, key))
		return 1;
	if (!names_spend(key))
		return 0;
	r = (int)bpf_map_update_elem(&sample_names, key, &one, BPF_NOEXIST);
	return !r || r == -EEXIST;
}

/* The name of @task, the current one, of the process @tgid, with zeros behind it. The kernel may
 * leave an older, longer name there. Returns SAMPLE_FLAG_THREAD, or, without @ret_name,
 * SAMPLE_FLAG_OTHER_THREAD. */
static __always_inline __u32 names_thread(struct task_struct *task, __u32 tgid,
					  __u64 ret_name[SAMPLE_THREAD_WORDS])
{
	struct sample_name_key key = {.tgid = tgid, .kind = SAMPLE_NAME_THREAD};

	bpf_probe_read_kernel_str(key.name, SAMPLE_THREAD_WORDS * sizeof(__u64), task->comm);
	if (!names_permit(&key))
		return SAMPLE_FLAG_OTHER_THREAD;
	ret_name[0] = key.name[0];
	ret_name[1] = key.name[1];
	return SAMPLE_FLAG_THREAD;
}

#endif
