/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_LINE_H
#define PODPROF_DISCOVERY_CGROUP_LINE_H

/* The lines of /proc/PID/cgroup, one for each hierarchy. Source: cgroups(7). */

#include <stdbool.h>

#include "base/strview.h"

/**
 * struct cgroup_line - one line, "hierarchy:controllers:path"
 * @controllers: separated by commas; empty for the unified hierarchy; "name=systemd" and the like
 *               where a hierarchy has no controller
 * @path:        starts with '/'; without " (deleted)"
 */
struct cgroup_line {
	struct strview controllers;
	struct strview path;
	bool unified;
};

/* The next line of that form; lines of any other form are skipped. False at the end. */
bool cgroup_line_next(struct strview *proc_cgroup, struct cgroup_line *ret) STRVIEW_MUST_CHECK;

#endif
