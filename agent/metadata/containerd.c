// SPDX-License-Identifier: Apache-2.0
/*
 * containerd keeps a directory ("bundle") for each running container,
 *
 *	<state>/io.containerd.runtime.v2.task/<containerd's namespace>/<id>/config.json
 *
 * with the OCI specification for runc; the CRI plugin puts the kubelet's data into the annotations.
 * Containers of Kubernetes are in containerd's namespace k8s.io; containers of nerdctl are in
 * "default", with their names in an annotation.
 *
 * The bundle lacks a pod's labels and controller. A sandbox that is a virtual machine may have no
 * bundle.
 *
 * Source: the containerd project's internal/cri/annotations and core/runtime/v2/bundle.go.
 */
#include "metadata/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* containerd's own directory, and those of distributions with their own containerd. */
static const char *const states[] = {
	"run/containerd",
	"run/k3s/containerd", /* also RKE2 */
	"run/k0s/containerd",
	"var/snap/microk8s/common/run/containerd",
};

static const char *const namespaces[] = {"k8s.io", "default"};

static const struct container_keys keys = {
	.type = "io.kubernetes.cri.container-type",
	.sandbox = "sandbox",
	.namespace = "io.kubernetes.cri.sandbox-namespace",
	.pod = "io.kubernetes.cri.sandbox-name",
	.uid = "io.kubernetes.cri.sandbox-uid",
	.container = "io.kubernetes.cri.container-name",
	.image = "io.kubernetes.cri.image-name",
};

/* Reads the first existing bundle, valid or not. */
static int find_bundle_below(const struct statefiles *files, const char *state, const char *id,
			     json_t **ret)
{
	char path[RUNTIME_PATH_MAX];
	int r = STATEFILE_GONE;

	for (size_t i = 0; i < array_size(namespaces) && r == STATEFILE_GONE; i++) {
		snprintf(path, sizeof(path), "%s/io.containerd.runtime.v2.task/%s/%s/config.json",
			 state, namespaces[i], id);
		r = runtime_read_annotations(files, path, ret);
	}
	return r;
}

static int find_bundle(const struct statefiles *files, const char *id, json_t **ret)
{
	int r = STATEFILE_GONE;

	for (size_t i = 0; i < array_size(states) && r == STATEFILE_GONE; i++)
		if (!statefiles_miss(files, states[i]))
			r = find_bundle_below(files, states[i], id, ret);
	return r;
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	_cleanup_(container_freep) struct container *c = NULL;
	_cleanup_(json_decrefp) json_t *annotations = NULL;
	int r = find_bundle(files, id, &annotations);

	(void)pod_uid;
	if (!r)
		r = container_new(containerd_source.name, &c);
	if (!r)
		r = container_read_pod(c, &keys, annotations, id);
	if (!r && !c->pod)
		r = container_set_name(c, pod_text(annotations, "nerdctl/name"));
	if (r)
		return r;
	if (!c->pod && !*c->name)
		return STATEFILE_ODD;
	*ret = take_ptr(c);
	return 0;
}

const struct runtime_source containerd_source = {.name = "containerd", .read = read_container};
