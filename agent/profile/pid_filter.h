/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_PID_FILTER_H
#define PODPROF_PROFILE_PID_FILTER_H

/* Whose samples the kernel side takes, where only those of some processes and their descendants are
 * wanted (bpf/shared/pid_filter.h). Cgroups are profile/cgroup_sampling.h's. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/settings.h"

struct bpfobj_pid_filter;
struct pid_filter;

/* @bpf: copied; its descriptors are borrowed. From here on the children of those who are in the set
 * come into it by themselves. 0 or -errno. */
int pid_filter_new(const struct bpfobj_pid_filter *bpf, struct pid_filter **ret);
void pid_filter_free(struct pid_filter *set);

/* 0; -E2BIG if there is no room. */
int pid_filter_add(struct pid_filter *set, pid_t pid);

/* Every second or so: forget the processes that have ended before the last call. The number of
 * those that live, or -errno. */
int pid_filter_sweep(struct pid_filter *set);
/* Children that found no room. */
uint64_t pid_filter_n_refused(const struct pid_filter *set);

#endif
