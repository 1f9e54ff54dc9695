// SPDX-License-Identifier: Apache-2.0
/*
 * The names are those of Prometheus, so users can reuse their rules. In the key of a label or
 * annotation, '_' replaces all characters other than letters and digits. Each key also has a
 * "present" label, because an empty label does not exist.
 *
 * Source: Prometheus' documentation of kubernetes_sd_config, role pod, and
 * discovery/kubernetes/pod.go of the project.
 */
#include "naming/meta_labels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/strview.h"
#include "discovery/entity.h"
#include "metadata/pod.h"
#include "naming/names.h"

#define POD_META       "__meta_kubernetes_pod_"
#define CONTAINER_META "__meta_container_"

/* Bytes of the longest name: a key of POD_TEXT_MAX and a prefix. Reached: -. */
#define META_LABEL_NAME_MAX (POD_TEXT_MAX + 64)

/* A label beyond the ceiling, or with an invalid name, is left out. */
static int set(struct labels *l, const char *name, const char *value)
{
	return *value && labels_set(l, name, value) == -ENOMEM ? -ENOMEM : 0;
}

static int set_text(struct labels *l, const char *name, struct strview value)
{
	_cleanup_(freep) char *s = strview_dup(value);

	return s ? set(l, name, s) : -ENOMEM;
}

/* Builds the name from @prefix and a key, with '_' for invalid characters. */
static int set_keyed(struct labels *l, const char *prefix, const char *key, const char *value)
{
	char name[META_LABEL_NAME_MAX];

	snprintf(name, sizeof(name), "%s%s", prefix, key);
	for (char *c = name; *c; c++)
		if (!labels_name_char(*c))
			*c = '_';
	return set(l, name, value);
}

static int add_pairs(struct labels *l, const struct pod_pairs *pairs, const char *prefix,
		     const char *present_prefix)
{
	int r = 0;

	for (size_t i = 0; i < pairs->n && !r; i++) {
		r = set_keyed(l, prefix, pairs->items[i].key, pairs->items[i].value);
		if (!r && present_prefix)
			r = set_keyed(l, present_prefix, pairs->items[i].key, "true");
	}
	return r;
}

static int add_pod(struct labels *l, const struct pod *pod)
{
	int r = 0;

	if (set(l, "__meta_kubernetes_namespace", pod->namespace) ||
	    set(l, POD_META "name", pod->name) || set(l, POD_META "uid", pod->uid) ||
	    set(l, POD_META "node_name", pod->node) || set(l, POD_META "ip", pod->ip) ||
	    set(l, POD_META "host_ip", pod->host_ip) || set(l, POD_META "phase", pod->phase) ||
	    set(l, POD_META "controller_kind", pod->owner_kind) ||
	    set(l, POD_META "controller_name", pod->owner_name))
		r = -ENOMEM;
	if (!r)
		r = add_pairs(l, &pod->labels, POD_META "label_", POD_META "labelpresent_");
	if (!r)
		r = add_pairs(l, &pod->annotations, POD_META "annotation_",
			      POD_META "annotationpresent_");
	return r;
}

/* In the form of a pod's status: "containerd://...". */
static int add_pod_container_id(struct labels *l, const struct cgroup_id *id)
{
	const char *runtime = cgroup_runtime_name(id->runtime);
	char url[CGROUP_ID_MAX + 32];

	if (strcmp(runtime, "unknown") == 0)
		snprintf(url, sizeof(url), "%s", id->container_id);
	else
		snprintf(url, sizeof(url), "%s://%s",
			 strcmp(runtime, "crio") == 0 ? "cri-o" : runtime, id->container_id);
	return set(l, POD_META "container_id", url);
}

static int add_pod_container(struct labels *l, const struct pod_container *container)
{
	bool init = container->kind == POD_CONTAINER_INIT;

	if (set(l, POD_META "container_name", container->name) ||
	    set(l, POD_META "container_image", container->image) ||
	    set(l, POD_META "container_init", init ? "true" : "false"))
		return -ENOMEM;
	return 0;
}

/* Adds the labels from the runtime's state. */
static int add_state(struct labels *l, const struct container *state)
{
	if (set(l, CONTAINER_META "name", state->name) ||
	    set(l, CONTAINER_META "image", state->image))
		return -ENOMEM;
	return add_pairs(l, &state->labels, CONTAINER_META "label_", NULL);
}

/* A pod's own cgroup has neither id nor runtime. */
static int add_container(struct labels *l, const struct cgroup_id *id)
{
	struct strview user = strview_of("");
	const char *outer_id = cgroup_user(id, &user) ? "" : id->outer_id;

	if (set(l, CONTAINER_META "id", id->container_id) ||
	    set(l, CONTAINER_META "outer_id", outer_id) ||
	    set(l, CONTAINER_META "unit", id->service) || set_text(l, CONTAINER_META "user", user))
		return -ENOMEM;
	if (id->kind == CGROUP_KIND_POD)
		return 0;
	return set(l, CONTAINER_META "runtime", cgroup_runtime_name(id->runtime));
}

static int add_unit(struct labels *l, const struct entity *entity)
{
	const struct unit unit = entity_unit_of(entity);

	if (set(l, "__meta_process_unit", entity_name(entity)) ||
	    set_text(l, "__meta_process_slice", unit.slice) ||
	    set_text(l, "__meta_process_user", unit.user))
		return -ENOMEM;
	return 0;
}

int meta_labels_add(const struct names *names, const struct entity *entity, struct labels *labels)
{
	int r = 0;

	switch (entity->kind) {
	case ENTITY_UNIT:
		return add_unit(labels, entity);
	case ENTITY_PROCESS:
		return set(labels, "__meta_process_comm", entity_name(entity));
	case ENTITY_CONTAINER:
	case ENTITY_POD:
		r = add_container(labels, &entity->id);
		break;
	case ENTITY_UNKNOWN:
	case ENTITY_KIND_MAX:
		return 0;
	}
	if (!r && names->known.state && !names->outer)
		r = add_state(labels, names->known.state);
	if (!r && names->known.pod)
		r = add_pod(labels, names->known.pod);
	if (!r && names->known.container && !names->outer)
		r = add_pod_container_id(labels, &entity->id);
	if (!r && names->known.container)
		r = add_pod_container(labels, names->known.container);
	return r;
}
