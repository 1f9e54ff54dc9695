/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_SCOPE_H
#define PODPROF_DISCOVERY_CGROUP_SCOPE_H

#include <stdbool.h>

#include "base/strview.h"
#include "discovery/cgroup.h"

/**
 * struct cgroup_scope - one component of a cgroup path, parsed
 * @kind:    CGROUP_KIND_NONE for a container's monitor process (conmon)
 * @id:      the container's id; borrows from the component; empty for a monitor
 * @escaped: @id uses systemd's \xHH escapes
 */
struct cgroup_scope {
	enum cgroup_runtime runtime;
	enum cgroup_kind kind;
	struct strview id;
	bool escaped;
};

/* True if the directory @name in the directory @parent belongs to a container or a monitor. */
bool cgroup_scope_parse(struct strview name, struct strview parent,
			struct cgroup_scope *ret) STRVIEW_MUST_CHECK;

#endif
