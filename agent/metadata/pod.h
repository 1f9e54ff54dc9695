/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_POD_H
#define PODPROF_METADATA_POD_H

/*
 * What a Kubernetes API object of kind Pod says of names: of the pod, of its containers, of what
 * made it. Source: Kubernetes API reference, core/v1 Pod, PodSpec, PodStatus, ContainerStatus.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metadata/jsontrim.h"

/* Containers of a pod, former ones counted. People use 10; what the API takes, objects of 1.5 MB,
 * has room for some thousand. Reached: `podprof_metadata_containers_dropped_total`. */
#define POD_CONTAINERS_MAX 16384
/* Labels, and annotations, of a pod. What is beyond is left out, but never podprof's own. Reached:
 * left out, but never podprof's own. */
#define POD_PAIRS_MAX	   128
/* Bytes of a name or value. Kubernetes allows 317 for a key, 253 for a name, 63 for a label's
 * value; annotations may be anything, and what is longer is no name of something. Reached: as if it
 * were not there. */
#define POD_TEXT_MAX	   1024

enum pod_outcome {
	POD_OK = 0,
	POD_MALFORMED, /* no JSON, or no name, namespace or UID */
	POD_OUTCOME_MAX,
};

enum pod_container_kind {
	POD_CONTAINER_ORDINARY,
	POD_CONTAINER_INIT, /* sidecars as well */
	POD_CONTAINER_EPHEMERAL,
	POD_CONTAINER_KIND_MAX,
};

/* One run of a container; @id has no "containerd://" before it. A container that has run twice is
 * there twice. */
struct pod_container {
	char *name;
	char *id;
	char *image; /* as its runtime calls it */
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
 * struct pod - all strings are owned and never NULL; "" where the object says nothing
 * @static_uid: the UID in the cgroup of a static pod, of which the API server knows a copy with
 *              another UID
 * @node:       where it runs
 * @ip, @host_ip, @phase: its address, its node's, "Running"
 * @owner_kind, @owner_name: of the object that controls it: ReplicaSet, Job, ...
 * @created_s:  Unix time; 0 if not known
 * @n_left_out: labels and annotations beyond the ceilings
 * @n_containers_left_out: containers beyond the ceiling
 * @version:    another one for each pod that is put into the table of pods and each change of one
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

/* @ret is the caller's to free. 0, POD_MALFORMED, -ENOMEM. */
int pod_of_json(const json_t *object, struct pod **ret);
int pod_parse(const char *json, size_t n, struct pod **ret);
/* The members that pod_of_json() looks at, for a reader that passes over the others; those that say
 * of what kind and version the object is as well. */
extern const struct jsontrim pod_wanted[];
/* Any JSON, borrowing nothing. 0, POD_MALFORMED, -ENOMEM. */
int pod_parse_json(const char *json, size_t n, json_t **ret);
void pod_free(struct pod *pod);
/* Bytes of memory that it takes, about. */
size_t pod_bytes(const struct pod *pod);
/* In all but their version. */
bool pod_equal(const struct pod *a, const struct pod *b);

/* A pod of which no more than this is known. 0, POD_MALFORMED without a name or namespace,
 * -ENOMEM. */
int pod_make(const char *namespace, const char *name, const char *uid, struct pod **ret);
/* Copies. 0 or -ENOMEM. */
int pod_set_node(struct pod *pod, const char *node);
/* Beyond the ceilings they are left out. 0 or -ENOMEM. @labels: an object of strings, or
 * anything. */
int pod_add_container(struct pod *pod, enum pod_container_kind kind, const char *name,
		      const char *id, const char *image);
int pod_add_labels(struct pod *pod, const json_t *labels);

/* The text of a member; "" for what is no string, or longer than POD_TEXT_MAX. Borrowed. */
const char *pod_text(const json_t *object, const char *key);

void pod_pairs_deinit(struct pod_pairs *p);
/* "" if there is none. Borrowed. */
const char *pod_pairs_get(const struct pod_pairs *p, const char *key);
/* @object: of strings, or anything. *@n_left_out grows by those beyond the ceilings. 0, -ENOMEM. */
int pod_pairs_add(struct pod_pairs *p, const json_t *object, size_t *n_left_out);

/* "" if there is none. Borrowed. */
const char *pod_label(const struct pod *pod, const char *key);
const char *pod_annotation(const struct pod *pod, const char *key);

/* "container", "init", "ephemeral" */
const char *pod_container_kind_name(enum pod_container_kind kind);

#endif
