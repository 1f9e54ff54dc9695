/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_AGENT_H
#define PODPROF_AGENT_H

/* The agent owns the parts, starts all in the order of the data flow, and ends all in reverse. */

#include "base/nsec.h"
#include "config/config.h"

struct agent;

/* From SIGTERM to the end of the process, whatever hangs. The chart gives the pod 30 s. Reached:
 * the last window is lost, and the log names the threads. */
#define AGENT_GRACE_NS (25 * NSEC_PER_SEC)

/* @config is borrowed and must outlive the agent. 0, or -errno after the reason was logged. */
int agent_new(const struct config *config, struct agent **ret);
void agent_free(struct agent *agent);
/* Runs until SIGINT or SIGTERM, then sends the remaining samples; SUPERVISE_AT_ONCE ends without. 0
 * or -errno. */
int agent_run(struct agent *agent);

#endif
