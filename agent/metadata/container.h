/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_CONTAINER_H
#define PODPROF_METADATA_CONTAINER_H

/* A container as described by the state of its container runtime. */

#include <stdbool.h>

#include "base/cleanup.h"
#include "metadata/pod.h"

/**
 * struct container - all strings are owned and never NULL; "" if unknown
 * @source:  name of the source: "containerd", ...; not owned
 * @sandbox: the container holds a pod's namespaces and runs no user's program ("pause")
 * @pod:     with namespace, name, UID (may be ""), known labels, and this container alone (no
 *           container for a sandbox, or if only the pod is known); NULL outside pods
 * @name:    outside pods: the user's name for the container in Docker or Podman
 * @image:   as requested
 * @labels:  the container's own: Docker's
 */
struct container {
	const char *source;
	bool sandbox;
	struct pod *pod;
	char *name;
	char *image;
	struct pod_pairs labels;
};

/* An empty container. *@ret: owned. 0 or -ENOMEM. */
int container_new(const char *source, struct container **ret);
void container_free(struct container *c);
DEFINE_CLEANUP(struct container *, container_freep, container_free);

/* Copy the text and replace the old one. 0 or -ENOMEM. */
int container_set_name(struct container *c, const char *name);
int container_set_image(struct container *c, const char *image);

/* "" if there is none. Borrowed. */
const char *container_label(const struct container *c, const char *key);
/* @labels: a JSON object of strings; anything else is ignored. 0 or -ENOMEM. */
int container_add_labels(struct container *c, const json_t *labels);

/* The keys of a runtime for the kubelet's data. @type has the value @sandbox for a sandbox. @image
 * may be NULL. */
struct container_keys {
	const char *type;
	const char *sandbox;
	const char *namespace;
	const char *pod;
	const char *uid;
	const char *container;
	const char *image;
};

/* Fills in the pod from an object of strings: a runtime's annotations or labels. Without a pod in
 * @texts there is no pod. 0 or -ENOMEM. */
int container_read_pod(struct container *c, const struct container_keys *keys, const json_t *texts,
		       const char *id);

#endif
