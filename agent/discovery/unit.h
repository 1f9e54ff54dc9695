/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_UNIT_H
#define PODPROF_DISCOVERY_UNIT_H

/* The parser of systemd units in cgroup paths. Pure text in, value out. */

#include <stdbool.h>

#include "base/strview.h"

/**
 * struct unit - all texts borrow from the path
 * @name:  "ssh.service": a service, scope or other unit with processes, else a slice
 * @slice: the slice around the unit, "system.slice"; "" for none
 * @user:  the uid of the user whose systemd manages the unit, or who has the session; "" for the
 *         system
 */
struct unit {
	struct strview name;
	struct strview slice;
	struct strview user;
};

/* The deepest unit in a path. All sessions of a user count as the user's slice. All container
 * monitors of a slice count as a single unit ("libpod-conmon"). False if there is no unit. */
bool unit_of_path(struct strview path, struct unit *ret) STRVIEW_MUST_CHECK;
/* The same over all lines of /proc/PID/cgroup. */
bool unit_of_proc(struct strview proc_cgroup, struct unit *ret) STRVIEW_MUST_CHECK;

/* Whether a component is a unit with processes of its own, such as a service or a scope; a slice is
 * not. */
bool unit_has_processes(struct strview component) STRVIEW_MUST_CHECK;

/* The uid in "user@1000.service". Below this directory, a user without privileges makes any
 * directory. False for any other component. */
bool unit_is_manager(struct strview component, struct strview *ret_user) STRVIEW_MUST_CHECK;

#endif
