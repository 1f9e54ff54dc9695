/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_SCOPE_H
#define PODPROF_DISCOVERY_CGROUP_SCOPE_H

#include <stdbool.h>

#include "base/strview.h"
#include "discovery/cgroup.h"

/**
 * struct cgroup_scope - what one component of a cgroup path was found to be
 * @kind:    CGROUP_KIND_NONE for the processes that watch over a container (conmon)
 * @id:      the container's; borrows from the component; empty for a monitor
 * @escaped: @id is written with systemd's \xHH
 */
struct cgroup_scope {
	enum cgroup_runtime runtime;
	enum cgroup_kind kind;
	struct strview id;
	bool escaped;
};

/* Whether @name, a directory in one called @parent, is a container's or a monitor's. */
bool cgroup_scope_parse(struct strview name, struct strview parent,
			struct cgroup_scope *ret) STRVIEW_MUST_CHECK;

#endif
