/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_LEAF_H
#define PODPROF_DISCOVERY_LEAF_H

#include <stdbool.h>

#include "base/strview.h"
#include "discovery/cgroup.h"

/**
 * struct leaf - what one component of a cgroup path was found to be
 * @kind:    CGROUP_KIND_NONE for the processes that watch over a container (conmon)
 * @id:      the container's; borrows from the component; empty for a monitor
 * @escaped: @id is written with systemd's \xHH
 */
struct leaf {
	enum cgroup_runtime runtime;
	enum cgroup_kind kind;
	struct strview id;
	bool escaped;
};

/* Whether @name, a directory in one called @parent, is a container's or a monitor's. */
bool leaf_parse(struct strview name, struct strview parent, struct leaf *ret) STRVIEW_MUST_CHECK;

#endif
