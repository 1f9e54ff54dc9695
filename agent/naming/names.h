/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_NAMES_H
#define PODPROF_NAMING_NAMES_H

/* The labels that an entity has before anybody's rules are applied to them. */

#include "metadata/metadata.h"

struct entity;
struct labels;

/**
 * struct names - what is known of an entity
 * @known:   its pod is NULL where none is known
 * @outer:   it is inside a container of which that is known, not of itself
 */
struct names {
	enum metadata_outcome outcome;
	bool outer;
	struct metadata_names known;
};

/* What is told of an entity of any kind. */
void names_find(struct metadata *metadata, const struct entity *entity, struct names *ret);
/* Whether its name is known, or its pod's. */
bool names_known(const struct names *names);

/* Whether it is in a pod and in none of its containers. */
bool names_of_pod(const struct names *names, const struct entity *entity);

/* Its labels: namespace, pod, container, node and service_name where names are known, ENTITY_LEVEL
 * where it is names_of_pod(); else those of entity_identity(). @ret must be empty. 0 or -ENOMEM. */
int names_labels(const struct names *names, const struct entity *entity, struct labels *ret);
/* Where each of @own, its labels of names_labels(), is from, for people, set in @ret by the labels'
 * names. 0 or -ENOMEM. */
int names_origins(const struct names *names, const struct entity *entity, const struct labels *own,
		  struct labels *ret);
/* Bytes of what it is called; a longer text is cut. Reached: cut. */
#define NAMES_TEXT_MAX 1024
/* What it is called in one text: NAMESPACE/POD/CONTAINER; elsewhere the name of the container, unit
 * or process. */
void names_text(const struct names *names, const struct entity *entity, char ret[NAMES_TEXT_MAX]);
/* What its pod's annotations podprof.io/... ask for: podprof.io/go-heap as "go_heap". @ret must be
 * empty. 0 or -ENOMEM. */
int names_settings(const struct names *names, struct labels *ret);

#endif
