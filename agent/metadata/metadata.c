// SPDX-License-Identifier: Apache-2.0
/*
 * The sources of a container's names:
 *
 *	                 from when       needs
 *	runtime's state  before it runs  the node's files
 *	kubelet          1 s after       a right for a node's pods
 *	API server       1 s after       a right for all pods
 *
 * All sources know names; labels, annotations and the workload come from servers (CRI-O also has
 * labels). Later sources take precedence. The runtime's state fills the time until a server knows
 * the container, and joins the two. If a server knows the pod but not yet the container's id, and
 * the runtime knows the container's name, the names are complete. Without a server the runtime's
 * state has to suffice.
 *
 * A sandbox has the cgroup path of a container, and the runtime tells the difference. Without the
 * runtime, the order of creation decides: a pod's status lists the containers of one moment. So a
 * container is the sandbox if it is missing in the status, but older than a listed container,
 * because every pod begins with its sandbox. If both are older than the agent, the order is
 * unknown. Then the sandbox is a container that is missing for a minute in its pod's status.
 */
#include "metadata/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "metadata/lookup.h"
#include "metadata/pods.h"
#include "metadata/runtime.h"
#include "metadata/servers.h"

/* A container that its pod's server does not list for this time is the sandbox. */
#define SANDBOX_AFTER_NS (60 * NSEC_PER_SEC)
/* Containers of a pod that are searched for a younger one: usual pods have 10. */
#define SANDBOX_LOOKS	 64
/* First version of the runtimes' pods: beyond the versions of the servers'. */
#define RUNTIME_VERSIONS (1ull << 40)
/* Containers whose state is read in one step of the loop, and the pause to the next step. At the
 * start there may be some hundred, at 50 to 500 microseconds each. */
#define READS_STEP	 32
#define READS_PAUSE_NS	 (50 * NSEC_PER_MSEC)

struct metadata {
	struct metadata_opts opts;
	struct servers *servers;
	struct runtime runtime;
	int runtime_why; /* the outcome of opening the node's files */
	bool asks_runtime;
	struct lookups lookups;
	struct loop_source *timer;
	uint64_t timer_ns; /* monotonic; 0: not set */
	size_t n_step;	   /* reads since the timer last fired */
	uint64_t n_rounds; /* times that the timer has fired */
	uint64_t n_changes;
	uint64_t n_found[RUNTIME_SOURCES];
};

const char *metadata_outcome_name(int outcome)
{
	static const char *const names[METADATA_OUTCOME_MAX] = {
		[METADATA_OK] = "ok",
		[METADATA_PLAIN] = "no_pod",
		[METADATA_SANDBOX] = "sandbox",
		[METADATA_POD] = "pod_only",
		[METADATA_UNKNOWN_ID] = "unknown_id",
		[METADATA_UNREACHABLE] = "unreachable",
		[METADATA_DENIED] = "denied",
		[METADATA_NOT_ASKED] = "not_asked",
	};

	return outcome >= 0 && outcome < METADATA_OUTCOME_MAX ? names[outcome] : "error";
}

/* ---------------------------------------------------------------- the runtime's word */

static void arm(struct metadata *m, uint64_t at_ns, uint64_t now_ns)
{
	if (m->timer_ns && m->timer_ns <= at_ns)
		return;
	m->timer_ns = at_ns;
	(void)loop_arm(m->timer, at_ns > now_ns ? at_ns - now_ns : 1, 0); /* cannot fail */
}

/* True if the runtime can add nothing. A lookup without an id is for a pod. */
static bool is_whole(const struct lookup *lookup, const struct container *state)
{
	return state && (!*lookup->id || !state->pod || state->sandbox || state->pod->n_containers);
}

static void found(struct metadata *m, struct lookup *lookup, struct container *state)
{
	for (size_t i = 0; i < RUNTIME_SOURCES; i++)
		if (strcmp(state->source, runtime_source_name(i)) == 0 && m->n_found[i]++ == 0)
			m->opts.source(m->opts.ctx, state->source, true, "ok");
	container_free(lookup->state);
	lookup->state = state;
	m->n_changes++;
	if (state->pod)
		state->pod->version = RUNTIME_VERSIONS + m->n_changes;
}

/* Reads the runtimes' state and adds the node, which runtimes do not record. */
static int read_here(struct metadata *m, const struct lookup *lookup, struct container **ret)
{
	_cleanup_(container_freep) struct container *state = NULL;
	int r = runtime_read(&m->runtime, lookup->id, lookup->pod_uid, &state);

	if (!r && state->pod && m->opts.node)
		r = pod_set_node(state->pod, m->opts.node);
	if (!r)
		*ret = take_ptr(state);
	return r;
}

/* False if the read is postponed, because other lookups used up the step. */
static bool read_state(struct metadata *m, struct lookup *lookup, uint64_t now_ns)
{
	struct container *state;
	int r;

	if (!m->asks_runtime || is_whole(lookup, lookup->state) || now_ns < lookup->read_ns)
		return true;
	/* limits the reads between two timer events */
	if (m->n_step++ >= READS_STEP) {
		lookup->due_ns = now_ns + READS_PAUSE_NS;
		return false;
	}
	lookup_read(lookup, now_ns);
	r = read_here(m, lookup, &state);
	if (r)
		return true; /* a later attempt may succeed, also after -ENOMEM */
	if (lookup->state && !is_whole(lookup, state))
		container_free(state); /* no news */
	else
		found(m, lookup, state);
	return true;
}

/* ---------------------------------------------------------------- both */

static bool same_pod(const struct pod *a, const struct pod *b)
{
	return strcmp(a->namespace, b->namespace) == 0 && strcmp(a->name, b->name) == 0;
}

/* The server's pod of a container. NULL if this pod has a different name than the runtime's: then
 * it is another pod with the same UID. */
static const struct pod *pod_of_server(const struct metadata *m, const struct lookup *lookup)
{
	const struct pod *own = lookup->state ? lookup->state->pod : NULL, *pod = NULL;

	if (*lookup->pod_uid)
		pod = pods_by_uid(servers_pods(m->servers), lookup->pod_uid);
	if (!pod && own && *own->uid)
		pod = pods_by_uid(servers_pods(m->servers), own->uid);
	return pod && own && !same_pod(pod, own) ? NULL : pod;
}

static enum metadata_outcome why_unknown(const struct metadata *m)
{
	switch (servers_state(m->servers)) {
	case SERVERS_ANSWERED:
		return METADATA_UNKNOWN_ID;
	case SERVERS_UNREACHABLE:
		return METADATA_UNREACHABLE;
	case SERVERS_DENIED:
		return METADATA_DENIED;
	default:
		break;
	}
	if (!m->asks_runtime)
		return METADATA_NOT_ASKED;
	return m->runtime_why == STATEFILE_DENIED ? METADATA_DENIED : METADATA_UNKNOWN_ID;
}

/* True if a listed container of the pod is younger than this one. Containers of the same round have
 * no order: a single walk of the cgroups may have found them. */
static bool is_before_known(const struct metadata *m, const struct lookup *lookup,
			    const struct pod *pod)
{
	for (size_t i = 0; i < pod->n_containers && i < SANDBOX_LOOKS; i++) {
		const struct lookup *known = lookups_find(&m->lookups, pod->containers[i].id);

		if (known && known->round > lookup->round)
			return true;
	}
	return false;
}

/* True if a container outside its pod's status is the sandbox. */
static bool seems_sandbox(const struct metadata *m, const struct lookup *lookup,
			  const struct pod *pod)
{
	if (!*lookup->id || !pod->n_containers)
		return false;
	if (lookup->outcome == METADATA_SANDBOX) /* also while no server answers */
		return true;
	if (is_before_known(m, lookup, pod))
		return true;
	return servers_fresh(m->servers) &&
	       lookup->asked_ns - lookup->first_ns >= m->opts.sandbox_after_ns;
}

/* Joins the runtime's state with the server's pod. */
static enum metadata_outcome join(const struct metadata *m, const struct lookup *lookup,
				  struct metadata_names *names)
{
	const struct container *state = lookup->state;
	const struct pod *own = state ? state->pod : NULL;

	names->state = state;
	names->pod = pod_of_server(m, lookup);
	if (state && state->sandbox) {
		names->pod = names->pod ? names->pod : own;
		return METADATA_SANDBOX;
	}
	if (names->pod && !(own && own->n_containers))
		return seems_sandbox(m, lookup, names->pod) ? METADATA_SANDBOX : METADATA_POD;
	if (own) {
		names->partial = !names->pod && (servers_state(m->servers) == SERVERS_ANSWERED ||
						 servers_state(m->servers) == SERVERS_UNREACHABLE);
		names->pod = names->pod ? names->pod : own;
		names->container = own->n_containers ? &own->containers[0] : NULL;
		return names->container ? METADATA_OK : METADATA_POD;
	}
	return state ? METADATA_PLAIN : why_unknown(m);
}

/* True if a source may still know more: a server for pods, a runtime for all containers. */
static bool is_missing(const struct metadata *m, const struct lookup *lookup,
		       const struct metadata_names *names)
{
	bool in_pod = *lookup->pod_uid || names->pod;

	switch (lookup->outcome) {
	case METADATA_OK:
		return names->partial;
	case METADATA_POD:
		return *lookup->id || names->partial;
	case METADATA_PLAIN:
	case METADATA_SANDBOX:
	case METADATA_NOT_ASKED:
		return false;
	default:
		return in_pod || m->asks_runtime;
	}
}

enum metadata_outcome metadata_find(struct metadata *m, const char *container_id,
				    const char *pod_uid, struct metadata_names *ret)
{
	uint64_t now = nsec_monotonic();
	struct lookup *lookup;
	int r = lookups_ask(&m->lookups, container_id, pod_uid, now, &lookup);

	*ret = (struct metadata_names){0};
	if (r == LOOKUP_NEW) {
		lookup->round = m->n_rounds;
		arm(m, now + READS_PAUSE_NS, now);
		if (read_state(m, lookup, now))
			lookup_tried(lookup, now);
	} else if (r) { /* no memory, or too many lookups: a server may know the container */
		if (*container_id)
			ret->pod = pods_by_container(servers_pods(m->servers), container_id,
						     &ret->container);
		return ret->pod ? METADATA_OK : why_unknown(m);
	}
	ret->state = lookup->state;
	if (*lookup->id)
		ret->pod = pods_by_container(servers_pods(m->servers), lookup->id, &ret->container);
	lookup->outcome = ret->pod ? METADATA_OK : (int)join(m, lookup, ret);
	lookup->missing = is_missing(m, lookup, ret);
	ret->missing = lookup->missing;
	if (lookup->missing)
		arm(m, lookup->due_ns, now);
	return (enum metadata_outcome)lookup->outcome;
}

/* ---------------------------------------------------------------- trying again */

/* True if a server may know more by now. */
static bool try_again(struct metadata *m, struct lookup *lookup, uint64_t now_ns)
{
	if (!read_state(m, lookup, now_ns))
		return false;
	lookup_tried(lookup, now_ns);
	return *lookup->pod_uid || (lookup->state && lookup->state->pod);
}

static void due(void *ctx)
{
	struct metadata *m = ctx;
	uint64_t now = nsec_monotonic(), next = now + LOOKUP_GONE_NS;
	struct lookup *lookup, *following;
	bool wanting = false;

	m->n_step = 0;
	m->n_rounds++;
	lookups_sweep(&m->lookups, now);
	HASH_ITER(hh, m->lookups.by_id, lookup, following) {
		if (lookup_due(lookup, now))
			wanting = try_again(m, lookup, now) || wanting;
		if (lookup->missing && lookup->due_ns < next)
			next = lookup->due_ns;
	}
	if (wanting)
		servers_look(m->servers);
	m->timer_ns = 0;
	if (HASH_COUNT(m->lookups.by_id))
		arm(m, next, now);
}

/* ---------------------------------------------------------------- all of it */

DEFINE_CLEANUP(struct metadata *, metadata_freep, metadata_free);

/* A node without runtimes or readable files is not an error: its containers only lack names. */
static int start_runtime(struct metadata *m)
{
	int r;

	m->runtime.files = (struct statefiles)STATEFILES_INIT;
	if (!m->opts.host_root ||
	    (m->opts.mode != METADATA_AUTO && m->opts.mode != METADATA_RUNTIME))
		return 0;
	r = runtime_init(&m->runtime, m->opts.host_root);
	m->runtime_why = r < 0 ? STATEFILE_ODD : r;
	m->asks_runtime = !r || m->opts.mode == METADATA_RUNTIME;
	return r == -ENOMEM ? r : 0;
}

int metadata_new(const struct metadata_opts *opts, struct metadata **ret)
{
	_cleanup_(metadata_freep) struct metadata *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
	if (!m->opts.sandbox_after_ns)
		m->opts.sandbox_after_ns = SANDBOX_AFTER_NS;
	r = start_runtime(m);
	if (!r)
		r = servers_new(opts, &m->servers);
	if (!r)
		r = loop_add_timer(opts->loop, due, m, &m->timer);
	if (r)
		return r;
	*ret = take_ptr(m);
	return 0;
}

void metadata_free(struct metadata *m)
{
	if (!m)
		return;
	loop_remove(m->timer);
	lookups_deinit(&m->lookups);
	servers_free(m->servers);
	runtime_deinit(&m->runtime);
	free(m);
}

bool metadata_active(const struct metadata *m)
{
	return m->asks_runtime || servers_state(m->servers) != SERVERS_NONE;
}

bool metadata_has_server(const struct metadata *m)
{
	return servers_state(m->servers) != SERVERS_NONE;
}

/* ---------------------------------------------------------------- for people */

static enum metadata_state state_of_server(int outcome)
{
	switch (outcome) {
	case -1:
		return METADATA_WAITING;
	case PODCLIENT_OK:
	case PODCLIENT_EXPIRED:
		return METADATA_WORKS;
	case PODCLIENT_DENIED:
		return METADATA_REFUSES;
	case PODCLIENT_UNREACHABLE:
		return METADATA_FAILS;
	default:
		return METADATA_STRANGE;
	}
}

static enum metadata_state state_of_runtime(int why)
{
	if (!why)
		return METADATA_WAITING;
	return why == STATEFILE_DENIED ? METADATA_REFUSES : METADATA_FAILS;
}

static size_t runtime_sources(const struct metadata *m, struct metadata_source *ret)
{
	bool found = false;
	size_t n = 0;

	for (size_t i = 0; i < RUNTIME_SOURCES; i++)
		if (m->n_found[i]) {
			ret[n++] = (struct metadata_source){runtime_source_name(i), METADATA_WORKS,
							    "ok", ""};
			found = true;
		}
	/* None has found a container: refused files may be the reason. */
	for (size_t i = 0; !found && i < RUNTIME_SOURCES; i++)
		if (m->runtime.n_reads[i][STATEFILE_DENIED])
			ret[n++] = (struct metadata_source){
				runtime_source_name(i), METADATA_REFUSES,
				statefile_outcome_name(STATEFILE_DENIED), ""};
	if (!n && (m->asks_runtime || m->runtime_why))
		ret[n++] = (struct metadata_source){"runtime", state_of_runtime(m->runtime_why),
						    m->runtime_why
							    ? statefile_outcome_name(m->runtime_why)
							    : "no container of any yet",
						    ""};
	return n;
}

size_t metadata_sources(const struct metadata *m, struct metadata_source ret[METADATA_SOURCES_MAX])
{
	_Static_assert(RUNTIME_SOURCES + SERVER_MAX <= METADATA_SOURCES_MAX, "all have room");
	size_t n = runtime_sources(m, ret);

	for (enum server i = 0; i < SERVER_MAX; i++) {
		const char *word = servers_word(m->servers, i);

		if (word)
			ret[n++] = (struct metadata_source){
				server_name(i), state_of_server(servers_outcome(m->servers, i)),
				word, servers_url(m->servers, i)};
	}
	return n;
}

void metadata_describe(const struct metadata *m, char *ret, size_t size)
{
	struct metadata_source sources[METADATA_SOURCES_MAX];
	size_t n_sources = metadata_sources(m, sources), n = 0;

	*ret = '\0';
	for (size_t i = 0; i < n_sources && n < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%s: %s", n ? "; " : "", sources[i].name,
				      sources[i].word);
}

void metadata_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc reads = {
		"podprof_metadata_state_reads", METRIC_COUNTER,
		"Lookups in the container runtimes' state on the node, by outcome.", NULL};
	struct metadata *m = ctx;

	servers_collect(m->servers, sink);
	metric_family(sink, &reads);
	for (size_t s = 0; s < RUNTIME_SOURCES; s++)
		for (int i = 0; i < STATEFILE_OUTCOME_MAX; i++) {
			const struct metric_label labels[] = {
				{"source", runtime_source_name(s)},
				{"outcome", statefile_outcome_name(i)}};

			metric_u64(sink, m->runtime.n_reads[s][i], labels, array_size(labels));
		}
}
