// SPDX-License-Identifier: Apache-2.0
/*
 * Like Podman, CRI-O keeps its containers in the directories of the containers/storage library,
 *
 *	<root>/overlay-containers/<id>/userdata/config.json
 *
 * an OCI specification with annotations. The annotations of the sandbox have the pod's own labels,
 * as JSON inside a text. A container without a pod's name is Podman's.
 *
 * Source: the CRI-O project's internal/annotations and server/container_create.go.
 */
#include "metadata/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "metadata/storage.h"

static const struct container_keys keys = {
	.type = "io.kubernetes.cri-o.ContainerType",
	.sandbox = "sandbox",
	.namespace = "io.kubernetes.pod.namespace",
	.pod = "io.kubernetes.pod.name",
	.uid = "io.kubernetes.pod.uid",
	.container = "io.kubernetes.container.name",
	.image = "io.kubernetes.cri-o.ImageName",
};

struct bundle {
	const char *id;
	json_t *annotations; /* owned */
};

static int look_for_bundle(void *ctx, const struct statefiles *files, const char *folder)
{
	struct bundle *bundle = ctx;
	char path[RUNTIME_PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/userdata/config.json", folder, bundle->id);

	if (n >= (int)sizeof(path))
		return STATEFILE_GONE;
	return runtime_read_annotations(files, path, &bundle->annotations);
}

static int find_bundle(const struct statefiles *files, const char *id, json_t **ret)
{
	struct bundle bundle = {.id = id};
	int r = storage_search(files, look_for_bundle, &bundle);

	if (!r)
		*ret = bundle.annotations;
	return r;
}

/* Missing or unknown labels are ignored: the pod's names are more important. */
static int add_labels(struct container *c, const json_t *annotations)
{
	const char *text =
		json_string_value(json_object_get(annotations, "io.kubernetes.cri-o.Labels"));
	_cleanup_(json_decrefp) json_t *labels = NULL;
	int r = text ? pod_parse_json(text, strlen(text), &labels) : 0;

	return r < 0 ? r : pod_add_labels(c->pod, labels);
}

static int add_sandbox_labels(const struct statefiles *files, struct container *c,
			      const json_t *annotations)
{
	_cleanup_(json_decrefp) json_t *sandbox = NULL;
	const char *id = pod_text(annotations, "io.kubernetes.cri-o.SandboxID");
	int r;

	if (c->sandbox)
		return add_labels(c, annotations);
	if (!runtime_is_id(id))
		return 0;
	r = find_bundle(files, id, &sandbox);
	if (r)
		return r < 0 ? r : 0;
	return add_labels(c, sandbox);
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	_cleanup_(container_freep) struct container *c = NULL;
	_cleanup_(json_decrefp) json_t *annotations = NULL;
	int r = find_bundle(files, id, &annotations);

	(void)pod_uid;
	if (!r)
		r = container_new(crio_source.name, &c);
	if (!r)
		r = container_read_pod(c, &keys, annotations, id);
	if (!r && !c->pod)
		return STATEFILE_GONE;
	if (!r)
		r = add_sandbox_labels(files, c, annotations);
	if (r)
		return r;
	*ret = take_ptr(c);
	return 0;
}

const struct runtime_source crio_source = {.name = "crio", .read = read_container};
