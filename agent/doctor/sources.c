// SPDX-License-Identifier: Apache-2.0
#include "doctor/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capability.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "discovery/discovery.h"
#include "doctor/finding.h"
#include "doctor/probe_results.h"

/* Lookups of all containers until the runtimes' files have certainly been read: 32 containers a
 * step. */
#define LOOKS(n_containers) ((n_containers) / 32 + 2)

struct sources_trial {
	struct metadata_opts opts;
	struct metadata *metadata; /* NULL: @result */
	struct discovery *discovery;
	int result;
	size_t n_looks;
	size_t n_containers;
	size_t n_named;
};

/* ---------------------------------------------------------------- looking */

/* The result is examined at the end. */
static void on_source(void *ctx, const char *source, bool ok, const char *why)
{
	(void)ctx;
	(void)source;
	(void)ok;
	(void)why;
}

int sources_begin(struct loop *loop, const struct metadata_opts *metadata,
		  struct discovery *discovery, struct sources_trial **ret)
{
	struct sources_trial *trial = calloc(1, sizeof(*trial));

	if (!trial)
		return -ENOMEM;
	trial->opts = *metadata;
	trial->opts.loop = loop;
	trial->opts.source = on_source;
	trial->discovery = discovery;
	trial->result = metadata_new(&trial->opts, &trial->metadata);
	if (trial->result == -ENOMEM) {
		free(trial);
		return -ENOMEM;
	}
	*ret = trial;
	return 0;
}

static bool is_named(struct metadata *metadata, const struct entity *entity)
{
	struct metadata_names names;

	switch (metadata_find(metadata, entity->id.container_id, entity->id.pod_uid, &names)) {
	case METADATA_OK:
	case METADATA_PLAIN:
	case METADATA_SANDBOX:
		return true;
	default:
		return false;
	}
}

static void ask_for_all(struct sources_trial *trial)
{
	const struct entity *entity = NULL;

	trial->n_containers = trial->n_named = 0;
	while ((entity = discovery_next_entity(trial->discovery, entity))) {
		if (entity->kind != ENTITY_CONTAINER || !entity_alive(entity))
			continue;
		trial->n_containers++;
		trial->n_named += is_named(trial->metadata, entity);
	}
	trial->n_looks++;
}

bool sources_pending(struct sources_trial *trial)
{
	struct metadata_source sources[METADATA_SOURCES_MAX];
	bool pending = false;
	size_t n;

	if (!trial->metadata)
		return false;
	ask_for_all(trial);
	n = metadata_sources(trial->metadata, sources);
	for (size_t i = 0; i < n; i++)
		pending |= *sources[i].url && sources[i].state == METADATA_WAITING;
	return pending || trial->n_looks < LOOKS(trial->n_containers);
}

void sources_end(struct sources_trial *trial, struct sources *ret)
{
	struct metadata_source sources[METADATA_SOURCES_MAX] = {0};

	*ret = (struct sources){.result = trial ? trial->result : 0};
	if (!trial)
		return;
	if (trial->metadata)
		ret->n = metadata_sources(trial->metadata, sources);
	for (size_t i = 0; i < ret->n; i++) {
		ret->items[i].state = sources[i].state;
		finding_text(ret->items[i].name, sizeof(ret->items[i].name),
			     strview_of(sources[i].name));
		finding_text(ret->items[i].word, SOURCE_TEXT_MAX, strview_of(sources[i].word));
		finding_text(ret->items[i].url, SOURCE_TEXT_MAX, strview_of(sources[i].url));
	}
	ret->n_containers = trial->n_containers;
	ret->n_named = trial->n_named;
	metadata_free(trial->metadata);
	free(trial);
}

/* ---------------------------------------------------------------- checks */

static bool is_server(const struct source *source)
{
	return *source->url;
}

static bool some_server_works(const struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++)
		if (is_server(&sources->items[i]) && sources->items[i].state == METADATA_WORKS)
			return true;
	return false;
}

static const char *remedy_of_runtime(const struct probe_results *results,
				     const struct source *source)
{
	if (source->state == METADATA_WAITING)
		return "nothing, if containerd, CRI-O, Docker and Podman have not started a "
		       "container yet";
	return rights_has(&results->rights, CAP_SYS_PTRACE)
		       ? "in a pod: hostPID: true; else see reading "
			 "processes"
		       : "see CAP_SYS_PTRACE";
}

static const char *remedy_of_server(const struct source *source)
{
	const bool kubelet = strcmp(source->name, "kubelet") == 0;

	if (strstr(source->word, "token"))
		return "mount the service account's token (automountServiceAccountToken)";
	if (source->state == METADATA_REFUSES)
		return kubelet ? "allow 'get' on nodes/pods (the chart does); kubelets before "
				 "Kubernetes 1.33: on nodes/proxy (metadata.nodesProxy)"
			       : "allow 'list' and 'watch' on pods in the whole cluster (chart: "
				 "metadata.source auto or apiserver)";
	if (strstr(source->word, "certificate"))
		return kubelet ? "set --kubelet-verify to chain, or to none, if the cluster's CA "
				 "has not signed the certificate for the kubelet's address (chart: "
				 "metadata.kubeletVerify)"
			       : "mount the cluster's CA with the token";
	return kubelet ? "set --kubelet-url or $HOST_IP to the node's address; allow port "
			 "10250 in network policies"
		       : "allow connections to the API server in network policies";
}

/* A failed source is harmless if another source has the same names. */
static void check_source(const struct probe_results *results, const struct source *source,
			 struct findings *ret)
{
	const bool auto_mode = results->config->metadata == CONFIG_METADATA_AUTO;
	const bool server = is_server(source);
	enum finding_outcome outcome = FINDING_MISSING;
	struct finding *finding;
	char found[FINDING_TEXT_MAX];

	snprintf(found, sizeof(found), "%s%s%s: %s",
		 strcmp(source->name, "runtime") == 0 ? "the container runtimes' files"
						      : source->name,
		 server ? " " : "", source->url, source->word);
	if (source->state == METADATA_WORKS ||
	    (source->state == METADATA_WAITING && !server && !results->sources.n_containers)) {
		findings_add(ret, "names of pods", FINDING_OK, "%s", found);
		return;
	}
	if (server ? auto_mode && some_server_works(&results->sources)
		   : auto_mode || source->state == METADATA_WAITING)
		outcome = FINDING_DEGRADED;
	finding = findings_add(ret, "names of pods", outcome, "%s", found);
	if (!server)
		finding_say(finding, "the names of containers come late, or not at all",
			    remedy_of_runtime(results, source));
	else
		finding_say(finding,
			    outcome == FINDING_DEGRADED
				    ? "nothing: the other server has the same data, but needs a "
				      "larger right"
				    : "pods have no labels, annotations and workloads in profiles",
			    remedy_of_server(source));
}

static bool all_work(const struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++)
		if (sources->items[i].state != METADATA_WORKS)
			return false;
	return sources->n;
}

/* Containers that have just started may have no name yet. */
static void check_named(const struct probe_results *results, struct findings *ret)
{
	const struct sources *sources = &results->sources;

	if (!sources->n_containers || results->config->metadata == CONFIG_METADATA_NONE)
		return;
	if (!sources->n_named && !all_work(sources))
		return; /* the earlier finding is the reason */
	if (sources->n_named)
		findings_add(ret, "named containers", FINDING_OK, "%zu of %zu", sources->n_named,
			     sources->n_containers);
	else
		finding_say(findings_add(ret, "named containers", FINDING_DEGRADED, "none of %zu",
					 sources->n_containers),
			    "profiles show container ids instead of names",
			    "nothing, if another runtime than containerd, CRI-O, Docker and Podman "
			    "made them");
}

void sources_check(const struct probe_results *results, struct findings *ret)
{
	const struct sources *sources = &results->sources;

	if (sources->result == -EDESTADDRREQ)
		finding_say(
			findings_add(ret, "names of pods", FINDING_MISSING, METADATA_NO_ADDRESS),
			"the agent does not start", METADATA_NO_ADDRESS_REMEDY);
	else if (sources->result == -EINVAL)
		finding_say(findings_add(ret, "names of pods", FINDING_MISSING,
					 "--node-name %s is not the name of a node",
					 results->config->node_name),
			    "pods have no labels, annotations and workloads in profiles",
			    "set --node-name to the name in 'kubectl get nodes'");
	else if (sources->result)
		finding_say(findings_add(ret, "names of pods", FINDING_MISSING, "%s",
					 strerror(-sources->result)),
			    "profiles show container ids instead of names", "see the line above");
	else if (!sources->n && results->config->metadata != CONFIG_METADATA_NONE)
		findings_add(ret, "names of pods", FINDING_OK,
			     "not asked for: podprof does not run in a pod");
	for (size_t i = 0; i < sources->n; i++)
		check_source(results, &sources->items[i], ret);
	check_named(results, ret);
}
