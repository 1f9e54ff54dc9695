/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_WANTED_H
#define PODPROF_PROFILE_WANTED_H

/* Whose samples the kernel side takes, where only those of some processes and their descendants are
 * wanted (bpf/shared/wanted.h). Cgroups are profile/shares.h's. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/settings.h"

struct bpfobj_wanted;
struct wanted_set;

/* @bpf: copied; its descriptors are borrowed. From here on the children of those who are in the set
 * come into it by themselves. 0 or -errno. */
int wanted_new(const struct bpfobj_wanted *bpf, struct wanted_set **ret);
void wanted_free(struct wanted_set *set);

/* 0; -E2BIG if there is no room. */
int wanted_add_process(struct wanted_set *set, pid_t pid);

/* Every second or so: forget the processes that have ended before the last call. The number of
 * those that live, or -errno. */
int wanted_sweep(struct wanted_set *set);
/* Children that found no room. */
uint64_t wanted_n_refused(const struct wanted_set *set);

#endif
