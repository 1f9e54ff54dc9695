/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_CONTAINER_H
#define PODPROF_METADATA_CONTAINER_H

/* What a container runtime's own state says of one container. */

#include <stdbool.h>

#include "base/cleanup.h"
#include "metadata/pod.h"

/**
 * struct container - all strings are owned and never NULL; "" where the state says nothing
 * @source:  who says so: "containerd", ...; not owned
 * @sandbox: it holds a pod's namespaces and runs nothing of the user's ("pause")
 * @pod:     its namespace, name and UID (which may be ""), labels where they are known, and this
 *           container alone (none for a sandbox, or where only the pod is known); NULL for a
 *           container of no pod
 * @name:    of a container of no pod, as people gave it to docker or podman
 * @image:   as it was asked for
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

/* An empty one. 0 or -ENOMEM. */
int container_new(const char *source, struct container **ret);
void container_free(struct container *c);
DEFINE_CLEANUP(struct container *, container_freep, container_free);

/* Both replace what was there. 0 or -ENOMEM. */
int container_set_name(struct container *c, const char *name);
int container_set_image(struct container *c, const char *image);

/* "" if there is none. Borrowed. */
const char *container_label(const struct container *c, const char *key);
/* @labels: a JSON object of strings, or anything. 0 or -ENOMEM. */
int container_add_labels(struct container *c, const json_t *labels);

/* Under which names a runtime keeps what Kubernetes has told it. @type has the value @sandbox for a
 * sandbox. @image may be NULL. */
struct container_keys {
	const char *type;
	const char *sandbox;
	const char *namespace;
	const char *pod;
	const char *uid;
	const char *container;
	const char *image;
};

/* Fill in the pod, by an object of strings: a runtime's annotations, or labels. Nothing where they
 * do not speak of one. 0 or -ENOMEM. */
int container_read_pod(struct container *c, const struct container_keys *keys, const json_t *texts,
		       const char *id);

#endif
