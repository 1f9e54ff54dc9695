// SPDX-License-Identifier: Apache-2.0
/*
 * Why the filter is in the kernel, on events that count for the whole CPU. The other way is an
 * event for each process (perf_event_open(2) with a pid, and inherit for what it makes later): it
 * only fires for that process. But each thread that is there already needs one of its own, and
 * makes others while they are being listed and opened; the kernel makes one more for each thread
 * and child that comes, and changes them at each context switch of the target; and there are none
 * for a container. Events that fire for everybody cost what is not wanted an interrupt and a look
 * into a hash. To throw samples away in user space costs a walked stack each, and room in the maps
 * that the wanted ones need.
 */
#include "profile/wanted.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "profile/bpfobj.h"
#include "shared/wanted.h"

struct wanted_set {
	struct bpfobj_wanted bpf;
	int fork_link;
	int exit_link;
	uint64_t *ended; /* processes that had at the last sweep; they are kept until this one */
	size_t n_ended;
};

DEFINE_CLEANUP(struct wanted_set *, wanted_freep, wanted_free);

static int attach(struct wanted_set *set)
{
	set->exit_link = bpf_raw_tracepoint_open("sched_process_exit", set->bpf.exit_program);
	if (set->exit_link < 0)
		return set->exit_link;
	set->fork_link = bpf_raw_tracepoint_open("sched_process_fork", set->bpf.fork_program);
	return set->fork_link < 0 ? set->fork_link : 0;
}

int wanted_new(const struct bpfobj_wanted *bpf, struct wanted_set **ret)
{
	_cleanup_(wanted_freep) struct wanted_set *set = calloc(1, sizeof(*set));
	int r;

	if (!set)
		return -ENOMEM;
	set->bpf = *bpf;
	set->fork_link = -1;
	set->exit_link = -1;
	set->ended = calloc(WANTED_ENTRIES, sizeof(*set->ended));
	if (!set->ended)
		return -ENOMEM;
	r = attach(set);
	if (r < 0)
		return r;
	*ret = take_ptr(set);
	return 0;
}

void wanted_free(struct wanted_set *set)
{
	if (!set)
		return;
	close_fdp(&set->fork_link);
	close_fdp(&set->exit_link);
	free(set->ended);
	free(set);
}

int wanted_add_process(struct wanted_set *set, pid_t pid)
{
	const struct wanted value = {0};
	const uint64_t id = (uint64_t)pid;
	/* one that its parent's fork has entered already is known better than we do */
	int r = bpf_map_update_elem(set->bpf.ids, &id, &value, BPF_NOEXIST);

	return r == -EEXIST ? 0 : r;
}

/* Those of the last sweep; a number that lives again by now is another process. */
static void drop_ended(struct wanted_set *set)
{
	struct wanted value;

	for (size_t i = 0; i < set->n_ended; i++)
		if (bpf_map_lookup_elem(set->bpf.ids, &set->ended[i], &value) == 0 && value.exited)
			(void)bpf_map_delete_elem(set->bpf.ids, &set->ended[i]);
	set->n_ended = 0;
}

int wanted_sweep(struct wanted_set *set)
{
	uint64_t id, *previous = NULL;
	struct wanted value;
	int r, live = 0;

	drop_ended(set);
	for (size_t i = 0; i < WANTED_ENTRIES; i++) {
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

uint64_t wanted_n_refused(const struct wanted_set *set)
{
	return *set->bpf.refused;
}
