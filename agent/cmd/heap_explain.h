/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_HEAP_EXPLAIN_H
#define PODPROF_CMD_HEAP_EXPLAIN_H

struct go_profile_oneshot;

/* Prints the reason for an empty result, and the remedy. @who: "process 12", "container ab12".
 * Returns the exit status. */
int heap_explain(const struct go_profile_oneshot *s, const char *who);

#endif
