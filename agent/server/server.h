/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_SERVER_H
#define PODPROF_SERVER_SERVER_H

/*
 * podprof's HTTP paths:
 *
 *	/metrics      Prometheus text or OpenMetrics, as the client prefers
 *	/-/healthy    200 or 500, with reasons
 *	/-/ready      200 or 503, with reasons
 *	/debug/pprof/ the profiles of pull.h
 *	/ and below   the pages of ui.h
 *
 * With users (web_access.h), all but the two health paths need a name and a password: kubelet has
 * none. The answers of these two then leave the reasons out.
 *
 * Errors are a line of text. The server has one address for all paths, or a second address for the
 * first three paths. About the profiled programs these tell the names only.
 */

#include "base/nsec.h"
#include "server/health.h"
#include "server/listen.h"
#include "server/pull.h"
#include "server/ui.h"

/* HTTP work gets one part of so many of one CPU, once SERVER_SHARE_BURST_NS of CPU time are used
 * up: some 40 flame graphs of usual size. Reached: answers take longer, then 503. */
#define SERVER_SHARE_PARTS    4
#define SERVER_SHARE_BURST_NS (2 * NSEC_PER_SEC)

struct cpu_share;
struct loop;
struct metric_list;
struct metric_sink;
struct server;
struct web_access;

/* Health and metrics are answered on the loop, pages and stored profiles by a worker (job.h). All
 * HTTP work keeps to a share of CPU time, SERVER_SHARE_*.
 *
 * All borrowed, and must outlive the server. @ui: NULL for no pages; @pull: NULL for no profiles on
 * demand; @share: NULL for no limit; @access: NULL for plain HTTP without users; taken on
 * success. */
struct server_opts {
	struct loop *loop;
	const struct listen_plan *addresses;
	const struct metric_list *metrics;
	const struct health *health;
	const struct ui_source *ui;
	const struct pull_sources *pull;
	struct cpu_share *share;
	struct web_access *access;
};

/* -errno of listening, with *@ret_ui: at the address of the pages. listen_hint() gives the remedy.
 */
int server_new(const struct server_opts *opts, bool *ret_ui, struct server **ret);
void server_free(struct server *s);
/* The address of the pages, and the address of the metrics, with the port chosen by the kernel:
 * "127.0.0.1:7070". Borrowed. */
const char *server_address(const struct server *s);
const char *server_metrics_address(const struct server *s);
/* A metric_collect_fn: requests, connections, samples omitted from the page itself. */
void server_collect(void *ctx, struct metric_sink *sink);

#endif
