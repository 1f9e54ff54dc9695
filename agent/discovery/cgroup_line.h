/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_LINE_H
#define PODPROF_DISCOVERY_CGROUP_LINE_H

/* The lines of /proc/PID/cgroup, one for each hierarchy. Source: cgroups(7). */

#include <stdbool.h>

#include "base/strview.h"

/**
 * struct cgroup_line - one line, "hierarchy:controllers:path"
 * @controllers: separated by commas; empty for the unified hierarchy; "name=systemd" and the like
 *               for a hierarchy without a controller
 * @path:        starts with '/'; without " (deleted)"
 */
struct cgroup_line {
	struct strview controllers;
	struct strview path;
	bool unified;
};

/* Returns the next line of this form and skips all other lines. Borrows from the text. False at the
 * end. */
bool cgroup_line_next(struct strview *proc_cgroup, struct cgroup_line *ret) STRVIEW_MUST_CHECK;

#endif
