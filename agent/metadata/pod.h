/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_POD_H
#define PODPROF_METADATA_POD_H

/*
 * The names in a Kubernetes API object of kind Pod: of the pod, its containers and its controller.
 *
 * Source: Kubernetes API reference, core/v1 Pod, PodSpec, PodStatus, ContainerStatus.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metadata/jsontrim.h"

/* Containers of a pod, including former runs. Usual pods have 10; the API's ceiling of 1.5 MB per
 * object has room for some thousand. Reached: `podprof_metadata_containers_dropped_total`. */
#define POD_CONTAINERS_MAX 16384
/* Labels of a pod, and annotations of a pod: each kind has this ceiling. Reached: left out, but
 * never podprof's own. */
#define POD_PAIRS_MAX	   128
/* Bytes of a name or value. Kubernetes allows 317 for a key, 253 for a name, 63 for a label's
 * value. Annotations have any length, but a longer text is no name. Reached: treated as missing. */
#define POD_TEXT_MAX	   1024

enum pod_outcome {
	POD_OK = 0,
	POD_MALFORMED, /* not JSON, or without name, namespace or UID */
	POD_OUTCOME_MAX,
};

enum pod_container_kind {
	POD_CONTAINER_ORDINARY,
	POD_CONTAINER_INIT, /* also sidecars */
	POD_CONTAINER_EPHEMERAL,
	POD_CONTAINER_KIND_MAX,
};

/* One run of a container. @id is without "containerd://". A container with two runs has two
 * entries. */
struct pod_container {
	char *name;
	char *id;
	char *image; /* the runtime's name for the image */
	enum pod_container_kind kind;
};

/* A label or an annotation. */
struct pod_pair {
	char *key;
	char *value;
};

struct pod_pairs {
	struct pod_pair *items;
	size_t n;
	size_t cap;
};

/**
 * struct pod - all strings are owned and never NULL; "" if missing in the object
 * @static_uid: UID in the cgroup path of a static pod; the API server has a copy of the pod with
 *              another UID
 * @node:       the pod's node
 * @ip, @host_ip, @phase: address of the pod, address of the node, "Running"
 * @owner_kind, @owner_name: of the controller: ReplicaSet, Job, ...
 * @created_s:  Unix time; 0 if unknown
 * @n_left_out: number of labels and annotations beyond the ceilings
 * @n_containers_left_out: number of containers beyond the ceiling
 * @version:    unique for each pod in the table of pods and each of its changes
 */
struct pod {
	char *uid;
	char *static_uid;
	char *namespace;
	char *name;
	char *node;
	char *ip;
	char *host_ip;
	char *phase;
	char *owner_kind;
	char *owner_name;
	int64_t created_s;
	struct pod_pairs labels;
	struct pod_pairs annotations;
	struct pod_container *containers;
	size_t n_containers;
	size_t containers_cap;
	size_t n_left_out;
	size_t n_containers_left_out;
	uint64_t version;
};

/* *@ret: owned. 0, POD_MALFORMED, -ENOMEM. */
int pod_of_json(const json_t *object, struct pod **ret);
int pod_parse(const char *json, size_t n, struct pod **ret);
/* The members for pod_of_json(), as input of jsontrim_parse(), and the object's kind and status
 * code. */
extern const struct jsontrim pod_wanted[];
/* Parses any JSON. *@ret: owned, borrows nothing. 0, POD_MALFORMED, -ENOMEM. */
int pod_parse_json(const char *json, size_t n, json_t **ret);
void pod_free(struct pod *pod);
/* Approximate memory in bytes. */
size_t pod_bytes(const struct pod *pod);
/* True if all fields but the versions are equal. */
bool pod_equal(const struct pod *a, const struct pod *b);

/* Makes a pod with only these names. *@ret: owned. 0, POD_MALFORMED without a name or namespace,
 * -ENOMEM. */
int pod_make(const char *namespace, const char *name, const char *uid, struct pod **ret);
/* Copies @node. 0 or -ENOMEM. */
int pod_set_node(struct pod *pod, const char *node);
/* Copy their arguments; entries beyond the ceilings are left out. @labels: an object of strings;
 * anything else is ignored. 0 or -ENOMEM. */
int pod_add_container(struct pod *pod, enum pod_container_kind kind, const char *name,
		      const char *id, const char *image);
int pod_add_labels(struct pod *pod, const json_t *labels);

/* The text of a member; "" if the member is no string or longer than POD_TEXT_MAX. Borrowed. */
const char *pod_text(const json_t *object, const char *key);

void pod_pairs_deinit(struct pod_pairs *p);
/* "" if there is none. Borrowed. */
const char *pod_pairs_get(const struct pod_pairs *p, const char *key);
/* @object: an object of strings; anything else is ignored. *@n_left_out grows by the pairs beyond
 *          the ceilings. 0, -ENOMEM. */
int pod_pairs_add(struct pod_pairs *p, const json_t *object, size_t *n_left_out);

/* "" if there is none. Borrowed. */
const char *pod_label(const struct pod *pod, const char *key);
const char *pod_annotation(const struct pod *pod, const char *key);

#endif
