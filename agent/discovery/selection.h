/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_SELECTION_H
#define PODPROF_DISCOVERY_SELECTION_H

/* The entities that a request names: a container, a pod, a service, or several of these at once. An
 * entity must match all. */

#include <stdbool.h>

#include "discovery/cgroup.h"

struct discovery;
struct entity;

/* As users write it; NULL: any. @pod: "NAMESPACE/NAME". */
struct selection_words {
	const char *container;
	const char *pod;
	const char *service;
};

/**
 * struct selection - owns its strings; {0} selects every entity
 * @id:   whole id of a container, with the containers inside; "": none
 * @name: value of the label "container"; NULL: none
 */
struct selection {
	char id[CGROUP_ID_MAX];
	char *name;
	char *pod;
	char *service;
};

enum selection_outcome {
	SELECTION_OK = 0,
	SELECTION_AMBIGUOUS, /* several containers' ids have this prefix, and no name is equal */
};

/* 0 with *@ret for selection_deinit(), a selection_outcome, -ENOMEM. A name of a living container
 * goes before the prefix of an id. */
int selection_init(struct selection *ret, struct discovery *discovery,
		   const struct selection_words *words);
void selection_deinit(struct selection *s);

/* Whether @s selects every entity. */
bool selection_is_all(const struct selection *s);
bool selection_has(const struct selection *s, const struct entity *entity);
/* The same, or the entity's names may still arrive. */
bool selection_may_have(const struct selection *s, const struct entity *entity);

#endif
