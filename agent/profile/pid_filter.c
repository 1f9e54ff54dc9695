// SPDX-License-Identifier: Apache-2.0
/*
 * The filter runs in the kernel, on events that count for the whole CPU. There are two
 * alternatives.
 *
 * One event for each process (perf_event_open(2) with a pid, inherited by later threads and
 * children) fires only for the process. But each existing thread needs an event, and new threads
 * appear while podprof lists and opens the old ones. The kernel creates one more event for each new
 * thread and child, and switches events at each context switch of the target. Containers have no
 * such event.
 *
 * Filtering in user space costs a walked stack for each unwanted sample, and room in the maps. In
 * the kernel an unwanted sample costs an interrupt and one hash lookup.
 */
#include "profile/pid_filter.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "profile/bpfobj.h"
#include "shared/pid_filter.h"

struct pid_filter {
	struct bpfobj_pid_filter bpf;
	int fork_link;
	int exit_link;
	uint64_t *ended; /* processes that had ended at the last sweep; kept until this sweep */
	size_t n_ended;
};

DEFINE_CLEANUP(struct pid_filter *, pid_filter_freep, pid_filter_free);

int pid_filter_new(const struct bpfobj_pid_filter *bpf, struct pid_filter **ret)
{
	_cleanup_(pid_filter_freep) struct pid_filter *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->bpf = *bpf;
	set->fork_link = -1;
	set->exit_link = -1;
	set->ended = calloc(PID_FILTER_ENTRIES, sizeof(*set->ended));
	if (!set->ended)
		return -ENOMEM;
	set->exit_link = bpf_raw_tracepoint_open("sched_process_exit", bpf->exit_program);
	if (set->exit_link < 0)
		return set->exit_link;
	set->fork_link = bpf_raw_tracepoint_open("sched_process_fork", bpf->fork_program);
	if (set->fork_link < 0)
		return set->fork_link;
	*ret = take_ptr(set);
	return 0;
}

void pid_filter_free(struct pid_filter *set)
{
	if (!set)
		return;
	close_fdp(&set->fork_link);
	close_fdp(&set->exit_link);
	free(set->ended);
	free(set);
}

int pid_filter_add(struct pid_filter *set, pid_t pid)
{
	const struct pid_filter_entry value = {0};
	const uint64_t id = (uint64_t)pid;
	/* an entry made by the parent's fork has better information */
	int r = bpf_map_update_elem(set->bpf.ids, &id, &value, BPF_NOEXIST);

	return r == -EEXIST ? 0 : r;
}

/* Drop the entries of the last sweep, unless the pid belongs to a new process by now. */
static void drop_ended(struct pid_filter *set)
{
	struct pid_filter_entry value;

	for (size_t i = 0; i < set->n_ended; i++)
		if (bpf_map_lookup_elem(set->bpf.ids, &set->ended[i], &value) == 0 && value.exited)
			(void)bpf_map_delete_elem(set->bpf.ids, &set->ended[i]);
	set->n_ended = 0;
}

int pid_filter_sweep(struct pid_filter *set)
{
	uint64_t id, *previous = NULL;
	struct pid_filter_entry value;
	int r, live = 0;

	drop_ended(set);
	for (size_t i = 0; i < PID_FILTER_ENTRIES; i++) {
		r = bpf_map_get_next_key(set->bpf.ids, previous, &id);
		if (r < 0)
			return r == -ENOENT ? live : r;
		previous = &id;
		if (bpf_map_lookup_elem(set->bpf.ids, &id, &value) < 0)
			continue;
		live += !value.exited;
		if (value.exited)
			set->ended[set->n_ended++] = id;
	}
	return live;
}

uint64_t pid_filter_n_refused(const struct pid_filter *set)
{
	return *set->bpf.refused;
}
