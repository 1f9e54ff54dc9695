/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_HEAP_EXPLAIN_H
#define PODPROF_CMD_HEAP_EXPLAIN_H

struct go_profile_oneshot;

/* Why nothing was read, and what to do about it. @who: "process 12", "container ab12". Exit
 * status. */
int heap_explain(const struct go_profile_oneshot *s, const char *who);

#endif
