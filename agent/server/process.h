/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_PROCESS_H
#define PODPROF_SERVER_PROCESS_H

/* Metrics of the agent itself: process_* with the names of the Prometheus client libraries, and
 * podprof_build_info. */

struct metric_sink;
struct process_metrics;

/* Remembers when the process started. 0 or -ENOMEM. */
int process_metrics_new(struct process_metrics **ret);
void process_metrics_free(struct process_metrics *p);
/* A metric_collect_fn. Unreadable numbers are left out. */
void process_metrics_collect(void *ctx, struct metric_sink *sink);

#endif
