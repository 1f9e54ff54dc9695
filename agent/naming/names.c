// SPDX-License-Identifier: Apache-2.0
/*
 * Labels are names where known, and ids otherwise. A container with a name has no id label: the id
 * would make a new series of each restart. So two containers with the same names (the running and
 * the previous one) form a single series, and the profile builder adds up both.
 *
 * An entity in a pod but in none of its containers (gVisor's kernel, Kata's virtual machine) has
 * the pod's names and the label ENTITY_LEVEL. From outside it is impossible to tell the container
 * for which the entity works.
 *
 * A process in the outer container chooses the ids of inner containers, and may choose the id of
 * any container of the node. So no source is asked for an inner id. An inner container gets the
 * names of the outer container. If these are unknown, both ids stay as labels. No source is asked
 * for a container of a user without privileges (rootless Podman): podprof does not read the user's
 * own files, and no other source has the container. Containers of LXC and nspawn are not looked up
 * either, because their path has the name.
 */
#include "naming/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "discovery/entity.h"
#include "metadata/workload.h"

#define COMPOSE_SERVICE	  "com.docker.compose.service"
#define SETTING_PREFIX	  "podprof.io/"
/* Bytes of a setting's name with the NUL. Reached: no setting. */
#define NAMES_SETTING_MAX 64

/* Runtimes and servers write ids in lower case; a cgroup's name may have capitals (ECS). */
static enum metadata_outcome find(struct metadata *metadata, const char *id, const char *pod_uid,
				  struct metadata_names *ret)
{
	char lower[CGROUP_ID_MAX];
	size_t i = 0;

	for (; id[i]; i++)
		lower[i] = (char)(id[i] >= 'A' && id[i] <= 'F' ? id[i] - 'A' + 'a' : id[i]);
	lower[i] = '\0';
	return metadata_find(metadata, lower, pod_uid, ret);
}

/* Without a container of a pod, the outcome is that of an id which nobody knows. */
static void find_outer(struct metadata *metadata, const char *id, struct names *ret)
{
	ret->outcome = find(metadata, id, "", &ret->known);
	ret->outer = ret->outcome == METADATA_OK;
	if (ret->outer)
		return;
	ret->known = (struct metadata_names){0};
	if (ret->outcome == METADATA_PLAIN || ret->outcome == METADATA_SANDBOX)
		ret->outcome = METADATA_NOT_ASKED; /* and nothing will change that */
	else if (ret->outcome == METADATA_POD)
		ret->outcome = METADATA_UNKNOWN_ID;
}

void names_find(struct metadata *metadata, const struct entity *entity, struct names *ret)
{
	const struct cgroup_id *id = &entity->id;
	struct strview user;

	*ret = (struct names){.outcome = METADATA_NOT_ASKED};
	if (!entity_has_dirs(entity->kind))
		return;
	if (cgroup_user(id, &user))
		return; /* the node's runtimes do not have the user's containers, whatever their ids
			 */
	if (id->outer_id[0])
		find_outer(metadata, id->outer_id, ret);
	else if (!cgroup_id_is_name(id))
		ret->outcome = find(metadata, id->container_id, id->pod_uid, &ret->known);
}

bool names_of_pod(const struct names *names, const struct entity *entity)
{
	if (names->outer)
		return false;
	return entity->kind == ENTITY_POD || entity->id.kind == CGROUP_KIND_SANDBOX ||
	       names->outcome == METADATA_SANDBOX;
}

bool names_known(const struct names *names)
{
	return names->known.pod || names->outcome == METADATA_PLAIN;
}

/* The few labels here have valid names and stay far below the ceiling, so the only error is
 * -ENOMEM. */
static int set(struct labels *l, const char *name, const char *value)
{
	return labels_set(l, name, value) ? -ENOMEM : 0;
}

static int keep(struct labels *l, const struct labels *identity, const char *name)
{
	const char *value = labels_get(identity, name);

	return value ? set(l, name, value) : 0;
}

static int label_pod(struct labels *l, const struct names *names)
{
	const struct pod_container *container = names->known.container;
	const struct pod *pod = names->known.pod;
	struct workload workload;

	workload_of_pod(pod, &workload);
	if (set(l, "namespace", pod->namespace) || set(l, "pod", pod->name) ||
	    set(l, "container", container ? container->name : "") ||
	    set(l, "service_name", workload_service(pod, &workload)))
		return -ENOMEM;
	return 0;
}

/* The name that the user gave to Docker or Podman. */
static const char *plain_name(const struct names *names, const struct entity *entity)
{
	const char *name = names->known.state ? names->known.state->name : "";

	return *name ? name : entity_name(entity);
}

static const char *compose_service(const struct names *names)
{
	return names->known.state ? container_label(names->known.state, COMPOSE_SERVICE) : "";
}

static int label_plain(struct labels *l, const struct names *names, const struct entity *entity)
{
	const char *name = plain_name(names, entity), *service = compose_service(names);

	return set(l, "container", name) || set(l, "service_name", *service ? service : name)
		       ? -ENOMEM
		       : 0;
}

int names_labels(const struct names *names, const struct entity *entity, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, identity = {0};
	int r;

	if (!names_known(names))
		return entity_identity(entity, ret);
	r = names->known.pod ? label_pod(&labels, names) : label_plain(&labels, names, entity);
	if (r || entity_identity(entity, &identity) || keep(&labels, &identity, "node"))
		return -ENOMEM;
	if (!names->outer &&
	    (keep(&labels, &identity, ENTITY_OUTER) || keep(&labels, &identity, "unit")))
		return -ENOMEM;
	if (names_of_pod(names, entity) && set(&labels, ENTITY_LEVEL, ENTITY_LEVEL_POD))
		return -ENOMEM;
	labels_swap(ret, &labels);
	return 0;
}

static const char *identity_origin(const struct entity *entity)
{
	switch (entity->kind) {
	case ENTITY_CONTAINER:
	case ENTITY_POD:
	case ENTITY_UNIT:
		return "cgroup";
	case ENTITY_PROCESS:
		return "process name";
	case ENTITY_UNKNOWN:
	case ENTITY_KIND_MAX:
		break;
	}
	return "unknown entity";
}

static const char *source_of(const struct names *names)
{
	return names->known.state ? names->known.state->source : "pod";
}

/* The origin of ENTITY_LEVEL. */
static const char *level_origin(const struct names *names)
{
	if (names->outcome != METADATA_SANDBOX)
		return "cgroup";
	return names->known.state && names->known.state->sandbox ? source_of(names)
								 : "none of its pod's containers";
}

static const char *origin_of(const struct names *names, const struct entity *entity,
			     const char *label, char text[NAMES_TEXT_MAX])
{
	struct workload workload;

	if (strcmp(label, "node") == 0)
		return "--node-name";
	if (!names_known(names) || strcmp(label, ENTITY_OUTER) == 0 || strcmp(label, "unit") == 0)
		return identity_origin(entity);
	if (strcmp(label, ENTITY_LEVEL) == 0)
		return level_origin(names);
	if (!names->known.pod)
		return strcmp(label, "service_name") == 0 && *compose_service(names)
			       ? "container label " COMPOSE_SERVICE
			       : source_of(names);
	if (strcmp(label, "service_name") != 0)
		return names->outer ? "pod of the outer container" : source_of(names);
	workload_of_pod(names->known.pod, &workload);
	workload_origin(names->known.pod, &workload, text, NAMES_TEXT_MAX);
	return text;
}

int names_origins(const struct names *names, const struct entity *entity, const struct labels *own,
		  struct labels *ret)
{
	char text[NAMES_TEXT_MAX];

	for (size_t i = 0; i < own->n; i++) {
		const char *label = own->items[i].name;

		if (labels_set(ret, label, origin_of(names, entity, label, text)) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

void names_text(const struct names *names, const struct entity *entity, char ret[NAMES_TEXT_MAX])
{
	const struct pod_container *container = names->known.container;
	const struct pod *pod = names->known.pod;

	if (names->known.pod)
		snprintf(ret, NAMES_TEXT_MAX, "%s/%s/%s", pod->namespace, pod->name,
			 container ? container->name : "");
	else
		snprintf(ret, NAMES_TEXT_MAX, "%s", plain_name(names, entity));
	/* patterns match UTF-8 */
	utf8_repair(ret, strlen(ret));
}

static int add_setting(struct labels *settings, const struct pod_pair *pair)
{
	const size_t prefix = strlen(SETTING_PREFIX);
	char name[NAMES_SETTING_MAX];
	size_t n = strlen(pair->key);

	if (strncmp(pair->key, SETTING_PREFIX, prefix) != 0 || n - prefix >= sizeof(name))
		return 0;
	for (size_t k = 0; k <= n - prefix; k++)
		name[k] = (char)(pair->key[prefix + k] == '-' ? '_' : pair->key[prefix + k]);
	/* an invalid name, or a setting beyond the ceiling, is ignored */
	return labels_set(settings, name, pair->value) == -ENOMEM ? -ENOMEM : 0;
}

int names_settings(const struct names *names, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels settings = {0};
	const struct pod *pod = names->known.pod;

	for (size_t i = 0; pod && i < pod->annotations.n; i++)
		if (add_setting(&settings, &pod->annotations.items[i]))
			return -ENOMEM;
	labels_swap(ret, &settings);
	return 0;
}
