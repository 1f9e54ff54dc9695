/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_NAMES_H
#define PODPROF_NAMING_NAMES_H

/* The labels of an entity before any user's rules. */

#include "metadata/metadata.h"

struct entity;
struct labels;

/**
 * struct names - metadata of an entity
 * @known: the result of metadata_find(); its pod is NULL if unknown
 * @outer: @known describes the outer container, not the entity
 */
struct names {
	enum metadata_outcome outcome;
	bool outer;
	struct metadata_names known;
};

/* Looks up the metadata of an entity of any kind. */
void names_find(struct metadata *metadata, const struct entity *entity, struct names *ret);
/* True if the name of the entity or of its pod is known. */
bool names_known(const struct names *names);

/* True if the entity is in a pod but in none of its containers. */
bool names_of_pod(const struct names *names, const struct entity *entity);

/* The entity's labels. With known names: namespace, pod, container, node and service_name, and
 * ENTITY_LEVEL if names_of_pod(). Otherwise the labels of entity_identity(). @ret must be empty. 0
 * or -ENOMEM. */
int names_labels(const struct names *names, const struct entity *entity, struct labels *ret);
/* Sets in @ret the origin of each label of @own, for users, under the label's name. @own comes from
 * names_labels(). 0 or -ENOMEM. */
int names_origins(const struct names *names, const struct entity *entity, const struct labels *own,
		  struct labels *ret);
/* Bytes of an entity's name as text, with the NUL. Reached: cut. */
#define NAMES_TEXT_MAX 1024
/* The entity's name as a text: NAMESPACE/POD/CONTAINER, or the name of the container, unit or
 * process. Patterns match this text. */
void names_text(const struct names *names, const struct entity *entity, char ret[NAMES_TEXT_MAX]);
/* The requests in the pod's annotations podprof.io/...: podprof.io/go-heap becomes "go_heap". @ret
 * must be empty. 0 or -ENOMEM. */
int names_settings(const struct names *names, struct labels *ret);

#endif
