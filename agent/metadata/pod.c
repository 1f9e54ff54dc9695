// SPDX-License-Identifier: Apache-2.0
/*
 * Of a pod's JSON, 6 to 15 KB, some hundred bytes are of use. The rest, including environment
 * variables with secrets, is discarded with the parsed text.
 *
 * Conditions are ignored: a pod's readiness changes during its life, and each change would make a
 * new version.
 *
 * A container's id is in its status, "containerd://0123...", some time after the start. While the
 * container waits for a restart, the id of its last run is in lastState. For a static pod, the
 * kubelet's own list has the UID of the cgroup path. The API server has a copy ("mirror pod") with
 * another UID, and the first UID in an annotation.
 */
#include "metadata/pod.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "metadata/jsontrim.h"

#define STATIC_UID_ANNOTATION "kubernetes.io/config.mirror"

static const struct jsontrim metadata_wanted[] = {
	{.key = "name"},
	{.key = "namespace"},
	{.key = "uid"},
	{.key = "resourceVersion"},
	{.key = "creationTimestamp"},
	{.key = "labels"},
	{.key = "annotations"},
	{.key = "ownerReferences", .array = true},
	{0},
};

static const struct jsontrim spec_wanted[] = {{.key = "nodeName"}, {0}};

static const struct jsontrim run_wanted[] = {{.key = "containerID"}, {0}};

static const struct jsontrim last_wanted[] = {{.key = "terminated", .below = run_wanted}, {0}};

static const struct jsontrim container_wanted[] = {
	{.key = "name"},
	{.key = "image"},
	{.key = "containerID"},
	{.key = "lastState", .below = last_wanted},
	{0},
};

static const struct jsontrim status_wanted[] = {
	{.key = "podIP"},
	{.key = "hostIP"},
	{.key = "phase"},
	{.key = "containerStatuses", .array = true, .below = container_wanted},
	{.key = "initContainerStatuses", .array = true, .below = container_wanted},
	{.key = "ephemeralContainerStatuses", .array = true, .below = container_wanted},
	{0},
};

const struct jsontrim pod_wanted[] = {
	{.key = "kind"},
	{.key = "code"},
	{.key = "metadata", .below = metadata_wanted},
	{.key = "spec", .below = spec_wanted},
	{.key = "status", .below = status_wanted},
	{0},
};

void pod_pairs_deinit(struct pod_pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->items[i].key);
		free(p->items[i].value);
	}
	free(p->items);
	*p = (struct pod_pairs){0};
}

void pod_free(struct pod *pod)
{
	if (!pod)
		return;
	for (size_t i = 0; i < pod->n_containers; i++) {
		free(pod->containers[i].name);
		free(pod->containers[i].id);
		free(pod->containers[i].image);
	}
	free(pod->containers);
	pod_pairs_deinit(&pod->labels);
	pod_pairs_deinit(&pod->annotations);
	free(pod->uid);
	free(pod->static_uid);
	free(pod->namespace);
	free(pod->name);
	free(pod->node);
	free(pod->ip);
	free(pod->host_ip);
	free(pod->phase);
	free(pod->owner_kind);
	free(pod->owner_name);
	free(pod);
}

static size_t text_bytes(const char *text)
{
	return strlen(text) + 1;
}

static size_t pairs_bytes(const struct pod_pairs *p)
{
	size_t n = p->cap * sizeof(*p->items);

	for (size_t i = 0; i < p->n; i++)
		n += text_bytes(p->items[i].key) + text_bytes(p->items[i].value);
	return n;
}

size_t pod_bytes(const struct pod *pod)
{
	const char *const texts[] = {
		pod->uid, pod->static_uid, pod->namespace, pod->name,	    pod->node,
		pod->ip,  pod->host_ip,	   pod->phase,	   pod->owner_kind, pod->owner_name,
	};
	size_t n = sizeof(*pod) + pod->containers_cap * sizeof(*pod->containers);

	for (size_t i = 0; i < array_size(texts); i++)
		n += text_bytes(texts[i]);
	for (size_t i = 0; i < pod->n_containers; i++)
		n += text_bytes(pod->containers[i].name) + text_bytes(pod->containers[i].id) +
		     text_bytes(pod->containers[i].image);
	return n + pairs_bytes(&pod->labels) + pairs_bytes(&pod->annotations);
}

DEFINE_CLEANUP(struct pod *, pod_freep, pod_free);

const char *pod_pairs_get(const struct pod_pairs *p, const char *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->items[i].key, key) == 0)
			return p->items[i].value;
	return "";
}

const char *pod_label(const struct pod *pod, const char *key)
{
	return pod_pairs_get(&pod->labels, key);
}

const char *pod_annotation(const struct pod *pod, const char *key)
{
	return pod_pairs_get(&pod->annotations, key);
}

static bool pairs_equal(const struct pod_pairs *a, const struct pod_pairs *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->items[i].key, b->items[i].key) != 0 ||
		    strcmp(a->items[i].value, b->items[i].value) != 0)
			return false;
	return true;
}

static bool containers_equal(const struct pod *a, const struct pod *b)
{
	if (a->n_containers != b->n_containers)
		return false;
	for (size_t i = 0; i < a->n_containers; i++) {
		const struct pod_container *x = &a->containers[i], *y = &b->containers[i];

		if (x->kind != y->kind || strcmp(x->name, y->name) != 0 ||
		    strcmp(x->id, y->id) != 0 || strcmp(x->image, y->image) != 0)
			return false;
	}
	return true;
}

bool pod_equal(const struct pod *a, const struct pod *b)
{
	return a->created_s == b->created_s && a->n_left_out == b->n_left_out &&
	       strcmp(a->uid, b->uid) == 0 && strcmp(a->static_uid, b->static_uid) == 0 &&
	       strcmp(a->namespace, b->namespace) == 0 && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->node, b->node) == 0 && strcmp(a->ip, b->ip) == 0 &&
	       strcmp(a->host_ip, b->host_ip) == 0 && strcmp(a->phase, b->phase) == 0 &&
	       strcmp(a->owner_kind, b->owner_kind) == 0 &&
	       strcmp(a->owner_name, b->owner_name) == 0 && pairs_equal(&a->labels, &b->labels) &&
	       pairs_equal(&a->annotations, &b->annotations) && containers_equal(a, b);
}

/* ---------------------------------------------------------------- text */

const char *pod_text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) && json_string_length(value) <= POD_TEXT_MAX
		       ? json_string_value(value)
		       : "";
}

static int copy(const char *text, char **ret)
{
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

/* "2026-01-02T03:04:05Z" */
static int64_t parse_time(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	return end && !*end ? timegm(&tm) : 0;
}

/* ---------------------------------------------------------------- labels, annotations */

/* Keys that podprof itself reads; they take precedence over all others. */
static bool is_own(const char *key)
{
	return strncmp(key, "podprof.io/", 11) == 0 ||
	       strncmp(key, "resource.opentelemetry.io/", 26) == 0 ||
	       strncmp(key, "app.kubernetes.io/", 18) == 0 ||
	       strcmp(key, "pod-template-hash") == 0 ||
	       strcmp(key, "rollouts-pod-template-hash") == 0;
}

static int add_pair(struct pod_pairs *p, const char *key, const json_t *value, size_t *n_left_out)
{
	struct pod_pair *pair;
	int r;

	if (!json_is_string(value))
		return 0;
	if (strlen(key) > POD_TEXT_MAX || json_string_length(value) > POD_TEXT_MAX ||
	    p->n >= POD_PAIRS_MAX) {
		(*n_left_out)++;
		return 0;
	}
	r = vec_grow(&p->items, &p->cap, p->n + 1, sizeof(*p->items), POD_PAIRS_MAX);
	if (r)
		return r;
	pair = &p->items[p->n++];
	*pair = (struct pod_pair){0};
	r = copy(key, &pair->key);
	return r ? r : copy(json_string_value(value), &pair->value);
}

int pod_pairs_add(struct pod_pairs *p, const json_t *object, size_t *n_left_out)
{
	const char *key;
	json_t *value;
	int r = 0;

	for (int own = 1; own >= 0; own--)
		json_object_foreach((json_t *)object, key, value) {
			if (is_own(key) == (bool)own)
				r = add_pair(p, key, value, n_left_out);
			if (r)
				return r;
		}
	return 0;
}

int pod_add_labels(struct pod *pod, const json_t *labels)
{
	return pod_pairs_add(&pod->labels, labels, &pod->n_left_out);
}

/* ---------------------------------------------------------------- containers */

int pod_add_container(struct pod *pod, enum pod_container_kind kind, const char *name,
		      const char *id, const char *image)
{
	struct pod_container *one;
	int r;

	if (pod->n_containers >= POD_CONTAINERS_MAX) {
		pod->n_containers_left_out++;
		return 0;
	}
	r = vec_grow(&pod->containers, &pod->containers_cap, pod->n_containers + 1, sizeof(*one),
		     POD_CONTAINERS_MAX);
	if (r)
		return r;
	one = &pod->containers[pod->n_containers++];
	*one = (struct pod_container){.kind = kind};
	if (copy(name, &one->name) || copy(id, &one->id) || copy(image, &one->image))
		return -ENOMEM;
	return 0;
}

/* @run: an object with the id of one run. */
static int add_run(struct pod *pod, enum pod_container_kind kind, const json_t *status,
		   const json_t *run)
{
	const char *name = pod_text(status, "name");
	const char *scheme_end = strstr(pod_text(run, "containerID"), "://");

	if (!scheme_end || !scheme_end[3] || !*name)
		return 0; /* not started yet */
	return pod_add_container(pod, kind, name, scheme_end + 3, pod_text(status, "image"));
}

static int add_statuses(struct pod *pod, enum pod_container_kind kind, const json_t *statuses)
{
	const json_t *status;
	size_t i;

	json_array_foreach((json_t *)statuses, i, status) {
		const json_t *last =
			json_object_get(json_object_get(status, "lastState"), "terminated");
		int r = add_run(pod, kind, status, status);

		if (!r)
			r = add_run(pod, kind, status, last);
		if (r)
			return r;
	}
	return 0;
}

static int read_containers(struct pod *pod, const json_t *status)
{
	static const char *const keys[POD_CONTAINER_KIND_MAX] = {
		[POD_CONTAINER_ORDINARY] = "containerStatuses",
		[POD_CONTAINER_INIT] = "initContainerStatuses",
		[POD_CONTAINER_EPHEMERAL] = "ephemeralContainerStatuses",
	};
	int r = 0;

	for (int i = 0; i < POD_CONTAINER_KIND_MAX && !r; i++)
		r = add_statuses(pod, (enum pod_container_kind)i, json_object_get(status, keys[i]));
	return r;
}

/* ---------------------------------------------------------------- a pod */

static const json_t *controller_of(const json_t *metadata)
{
	json_t *owners = json_object_get(metadata, "ownerReferences");
	const json_t *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
		if (json_is_true(json_object_get(owner, "controller")))
			return owner;
	return NULL;
}

static int read_names(struct pod *pod, const json_t *metadata, const json_t *spec,
		      const json_t *status)
{
	const json_t *controller = controller_of(metadata);
	const json_t *annotations = json_object_get(metadata, "annotations");

	pod->created_s = parse_time(pod_text(metadata, "creationTimestamp"));
	if (copy(pod_text(metadata, "uid"), &pod->uid) ||
	    copy(pod_text(metadata, "namespace"), &pod->namespace) ||
	    copy(pod_text(metadata, "name"), &pod->name) ||
	    copy(pod_text(spec, "nodeName"), &pod->node) ||
	    copy(pod_text(status, "podIP"), &pod->ip) ||
	    copy(pod_text(status, "hostIP"), &pod->host_ip) ||
	    copy(pod_text(status, "phase"), &pod->phase) ||
	    copy(pod_text(annotations, STATIC_UID_ANNOTATION), &pod->static_uid) ||
	    copy(pod_text(controller, "kind"), &pod->owner_kind) ||
	    copy(pod_text(controller, "name"), &pod->owner_name))
		return -ENOMEM;
	return *pod->uid && *pod->namespace && *pod->name ? 0 : POD_MALFORMED;
}

static int read_pod(struct pod *pod, const json_t *object)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const json_t *status = json_object_get(object, "status");
	int r = read_names(pod, metadata, json_object_get(object, "spec"), status);

	if (!r)
		r = pod_add_labels(pod, json_object_get(metadata, "labels"));
	if (!r)
		r = pod_pairs_add(&pod->annotations, json_object_get(metadata, "annotations"),
				  &pod->n_left_out);
	return r ? r : read_containers(pod, status);
}

int pod_of_json(const json_t *object, struct pod **ret)
{
	_cleanup_(pod_freep) struct pod *pod = calloc(1, sizeof(*pod));
	int r = pod ? read_pod(pod, object) : -ENOMEM;

	if (!r)
		*ret = take_ptr(pod);
	return r;
}

int pod_make(const char *namespace, const char *name, const char *uid, struct pod **ret)
{
	_cleanup_(pod_freep) struct pod *pod = calloc(1, sizeof(*pod));

	if (!*namespace || !*name)
		return POD_MALFORMED;
	if (!pod || copy(namespace, &pod->namespace) || copy(name, &pod->name) ||
	    copy(uid, &pod->uid) || copy("", &pod->static_uid) || copy("", &pod->node) ||
	    copy("", &pod->ip) || copy("", &pod->host_ip) || copy("", &pod->phase) ||
	    copy("", &pod->owner_kind) || copy("", &pod->owner_name))
		return -ENOMEM;
	*ret = take_ptr(pod);
	return 0;
}

int pod_set_node(struct pod *pod, const char *node)
{
	char *fresh;

	if (copy(node, &fresh))
		return -ENOMEM;
	free(pod->node);
	pod->node = fresh;
	return 0;
}

int pod_parse_json(const char *json, size_t n, json_t **ret)
{
	json_error_t error;
	json_t *value = json_loadb(json, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);

	if (!value)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM
									   : POD_MALFORMED;
	*ret = value;
	return 0;
}

int pod_parse(const char *json, size_t n, struct pod **ret)
{
	_cleanup_(json_decrefp) json_t *object = NULL;
	int r = jsontrim_parse(json, n, pod_wanted, &object);

	return r ? r : pod_of_json(object, ret); /* JSONTRIM_MALFORMED is the same number */
}

_Static_assert((int)JSONTRIM_MALFORMED == (int)POD_MALFORMED, "handed on as it is");
