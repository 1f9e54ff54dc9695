/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_PID_FILTER_H
#define PODPROF_PROFILE_PID_FILTER_H

/* The sampled processes of `podprof record`, with their descendants (bpf/shared/pid_filter.h). For
 * cgroups see profile/cgroup_sampling.h. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpfobj_pid_filter;
struct pid_filter;

/* @bpf: copied; its descriptors are borrowed. From this call on, BPF adds the children of processes
 * in the set. 0 or -errno. */
int pid_filter_new(const struct bpfobj_pid_filter *bpf, struct pid_filter **ret);
void pid_filter_free(struct pid_filter *set);

/* 0; -E2BIG: the set is full. */
int pid_filter_add(struct pid_filter *set, pid_t pid);

/* Call about once a second. Removes processes that ended before the previous call. Returns the
 * number of live processes, or -errno. */
int pid_filter_sweep(struct pid_filter *set);
/* Number of children refused by a full set. */
uint64_t pid_filter_n_refused(const struct pid_filter *set);

#endif
