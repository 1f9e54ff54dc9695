/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_UNIT_H
#define PODPROF_DISCOVERY_UNIT_H

/* What a cgroup path says about the systemd unit it belongs to. Pure text in, value out. */

#include <stdbool.h>

#include "base/strview.h"

/**
 * struct unit - all texts borrow from the path
 * @name:  "ssh.service": a service, scope or other unit with processes, else a slice
 * @slice: the one it is in, "system.slice"; "" for none
 * @user:  the number of the user whose systemd has it, or who is logged in there; "" for the system
 */
struct unit {
	struct strview name;
	struct strview slice;
	struct strview user;
};

/* The deepest unit in a path. All sessions of a user are one, under the name of the user's slice,
 * and so are the monitors of a slice's containers ("libpod-conmon"). False if there is none. */
bool unit_of_path(struct strview path, struct unit *ret) STRVIEW_MUST_CHECK;
/* The same over all lines of /proc/PID/cgroup. */
bool unit_of_proc(struct strview proc_cgroup, struct unit *ret) STRVIEW_MUST_CHECK;

/* The number in "user@1000.service", below which a user without privileges makes any directory.
 * False if it is something else. */
bool unit_is_manager(struct strview component, struct strview *ret_user) STRVIEW_MUST_CHECK;

#endif
