/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_WANTED_H
#define PODPROF_PROFILE_WANTED_H

/* Whose samples the kernel side takes, where not everybody's are wanted: processes with their
 * descendants, or cgroups (bpf/shared/wanted.h). */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/settings.h"

struct bpfobj_wanted;
struct wanted_set;

/* @bpf: copied; its descriptors are borrowed. @kind is not SETTINGS_WANTED_ALL. From here on the
 * children of those who are in the set come into it by themselves. 0 or -errno. */
int wanted_new(const struct bpfobj_wanted *bpf, enum settings_wanted kind, struct wanted_set **ret);
void wanted_free(struct wanted_set *set);

/* 0; -E2BIG if there is no room. */
int wanted_add_process(struct wanted_set *set, pid_t pid);
int wanted_add_cgroup(struct wanted_set *set, uint64_t id);

/* Every second or so: forget the processes that have ended before the last call. The number of
 * those that live, or of cgroups; or -errno. */
int wanted_sweep(struct wanted_set *set);
/* Children that found no room. */
uint64_t wanted_n_refused(const struct wanted_set *set);

#endif
