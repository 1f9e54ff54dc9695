/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_AGENT_H
#define PODPROF_AGENT_H

/* The agent: owns one of each part, starts them in the order of the data, ends them in reverse. */

#include "config/config.h"

struct agent;

/* @config is borrowed and must outlive the agent. 0, or -errno after the reason was logged. */
int agent_new(const struct config *config, struct agent **ret);
void agent_free(struct agent *agent);
/* Until SIGINT or SIGTERM; what was sampled until then goes out first. 0 or -errno. */
int agent_run(struct agent *agent);

#endif
