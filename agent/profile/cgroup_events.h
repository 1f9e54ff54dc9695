/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_CGROUP_EVENTS_H
#define PODPROF_PROFILE_CGROUP_EVENTS_H

/* Paths of recent cgroup directories, including removed ones (bpf/shared/cgroup_events.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/hierarchy.h"
#include "shared/cgroup_events.h"

struct bpfobj_cgroup_events;
struct cgroup_events;
struct metric_sink;

/* @bpf: copied; its descriptors are borrowed. 0, or -errno: no events from this kernel. */
int cgroup_events_new(const struct bpfobj_cgroup_events *bpf, struct cgroup_events **ret);
void cgroup_events_free(struct cgroup_events *m);

/* A discovery_made_fn: the path of a directory among the last CGROUP_EVENTS created ones. The
 * search is linear, so use it last, for ids without another source. @cgroup_events NULL: false. */
bool cgroup_events_find(void *cgroup_events, enum hierarchy hierarchy, uint64_t id, char *ret,
			size_t size);

/* A metric_collect_fn: podprof_cgroup_mkdir_events. */
void cgroup_events_collect(void *cgroup_events, struct metric_sink *sink);

#endif
