// SPDX-License-Identifier: Apache-2.0
/*
 * Each file of this folder has one topic. Its look or trial functions probe the node, may fail in
 * any way, and leave results. Its check function depends on the results alone, so a test can
 * produce each outcome without a matching kernel.
 *
 * All servers are asked at the same time, on one loop.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/http.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "config/config.h"
#include "discovery/discovery.h"

#define DOCTOR_POLL_NS	(60 * NSEC_PER_MSEC)
#define DOCTOR_GRACE_NS NSEC_PER_SEC

/* All open resources of a run. */
struct look {
	const struct doctor_opts *opts;
	struct probe_results *results;
	struct root proc;
	struct root own_proc;
	struct root sys;
	struct loop *loop;
	struct loop_source *timer;
	struct http *http;
	struct discovery *discovery; /* NULL: no cgroups */
	struct listener_trial *listener;
	struct network_trial *network;
	struct sources_trial *sources;
	uint64_t deadline_ns;
};

static void look_deinit(struct look *l)
{
	discovery_free(l->discovery);
	http_free(l->http);
	loop_free(l->loop);
	root_deinit(&l->proc);
	root_deinit(&l->own_proc);
	root_deinit(&l->sys);
}

static void on_poll(void *ctx)
{
	struct look *l = ctx;
	bool pending = listener_pending(l->listener) || network_pending(l->network);

	pending = (l->sources && sources_pending(l->sources)) || pending;
	if (!pending || nsec_monotonic() >= l->deadline_ns)
		loop_stop(l->loop);
}

/* All probes over the network. */
static int ask_servers(struct look *l)
{
	int r = listener_begin(l->http, l->opts->config, &l->listener);

	if (!r)
		r = network_begin(l->http, l->opts->config, &l->network);
	if (!r && l->discovery)
		r = sources_begin(l->loop, l->opts->metadata, l->discovery, &l->sources);
	if (!r)
		r = loop_arm(l->timer, 1, DOCTOR_POLL_NS);
	l->deadline_ns = nsec_monotonic() + DOCTOR_WAIT_NS;
	if (!r)
		r = loop_run(l->loop);
	/* the trials end, with or without their answers */
	listener_end(take_ptr(l->listener), &l->results->listener);
	network_end(take_ptr(l->network), &l->results->network);
	sources_end(take_ptr(l->sources), &l->results->sources);
	return r;
}

static int look_at_node(struct look *l)
{
	struct discovery_opts opts = *l->opts->discovery;
	const struct config *c = l->opts->config;
	const struct entity *entity = NULL;
	int r = node_look(c, &l->proc, &l->results->node);

	if (!r)
		r = reading_look(c, &l->proc, &l->results->reading);
	if (r)
		return r;
	opts.loop = l->loop;
	opts.proc = &l->proc;
	opts.grace_ns = DOCTOR_GRACE_NS;
	r = discovery_new(&opts, &l->discovery);
	if (r)
		return r == -ENOMEM ? r : 0; /* node_check() reports the problem */
	while ((entity = discovery_next_entity(l->discovery, entity)))
		l->results->node.n_containers +=
			entity->kind == ENTITY_CONTAINER && entity_alive(entity);
	return 0;
}

static int look_at_all(struct look *l)
{
	const struct config *c = l->opts->config;
	struct probe_results *f = l->results;
	int r;

	/* a failed open leaves -1, below which nothing is found */
	(void)root_open("/proc", &l->own_proc);
	(void)root_open("/sys", &l->sys);
	f->no_proc = root_open(c->proc_root, &l->proc);
	if (f->no_proc == -ENOMEM)
		return -ENOMEM;
	r = loop_new(&l->loop);
	if (!r)
		r = loop_add_timer(l->loop, on_poll, l, &l->timer);
	if (!r)
		r = http_new(l->loop, &l->http);
	if (r)
		return r;
	rights_look(&l->own_proc, &l->sys, &f->rights);
	storedir_look(c, &f->storedir);
	storedir_look_spool(c, &f->spooldir);
	if (c->cpu_rate)
		kernelside_look(&l->own_proc, &l->sys, &f->kernel);
	if (!f->no_proc)
		r = look_at_node(l);
	if (!r)
		r = ask_servers(l);
	if (!r && l->discovery && c->cpu_rate && !f->listener.agent)
		r = l->opts->try_cpu(c, l->loop, &l->proc, &l->sys, l->discovery, &f->kernel);
	return r;
}

int doctor_look(const struct doctor_opts *opts, struct probe_results *ret)
{
	_cleanup_(look_deinit) struct look look = {
		.opts = opts,
		.results = ret,
		.proc = ROOT_INIT,
		.own_proc = ROOT_INIT,
		.sys = ROOT_INIT,
	};

	*ret = (struct probe_results){
		.config = opts->config,
		.in_cluster = config_in_cluster(),
	};
	return look_at_all(&look);
}

void doctor_check(const struct probe_results *results, struct findings *ret)
{
	*ret = (struct findings){0};
	rights_check(results, ret);
	kernelside_check(results, ret);
	if (results->no_proc) {
		finding_say(findings_add(ret, "processes", FINDING_MISSING, "%s: %s",
					 results->config->proc_root, root_why(results->no_proc)),
			    "the agent does not start", "set --proc-root to the node's procfs");
	} else {
		node_check(results, ret);
		reading_check(results, ret);
		sources_check(results, ret);
	}
	storedir_check(results, ret);
	network_check(results, ret);
	listener_check(results, ret);
}
