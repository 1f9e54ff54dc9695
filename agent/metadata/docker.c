// SPDX-License-Identifier: Apache-2.0
/*
 * Docker writes a container down in
 *
 *	/var/lib/docker/containers/<id>/config.v2.json
 *
 *	{"Name": "/shop-web-1", "Config": {"Image": "shop", "Labels": {...}, "Env": [...], ...},
 *...}
 *
 * Compose says in labels which project and service it is, cri-dockerd which pod. A directory given
 * to dockerd as --data-root is not found.
 *
 * Source: the Moby project's daemon/container; the cri-dockerd project's core/docker_service.go.
 */
#include "metadata/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const folders[] = {
	"var/lib/docker/containers",
	"var/snap/docker/common/var-lib-docker/containers",
};

static const struct container_keys keys = {
	.type = "io.kubernetes.docker.type",
	.sandbox = "podsandbox",
	.namespace = "io.kubernetes.pod.namespace",
	.pod = "io.kubernetes.pod.name",
	.uid = "io.kubernetes.pod.uid",
	.container = "io.kubernetes.container.name",
};

/* What is being read. */
struct reading {
	struct container *c;
	const char *id;
};

static int read_config(struct reading *reading, const json_t *config)
{
	const json_t *labels = json_object_get(config, "Labels");
	int r = container_set_image(reading->c, pod_text(config, "Image"));

	if (!r)
		r = container_add_labels(reading->c, labels);
	return r ? r : container_read_pod(reading->c, &keys, labels, reading->id);
}

static int read_member(void *ctx, const char *key, const json_t *value)
{
	struct reading *reading = ctx;
	const char *name;

	if (strcmp(key, "Config") == 0)
		return read_config(reading, value);
	name = json_is_string(value) ? json_string_value(value) : "";
	name += *name == '/';
	return strlen(name) <= POD_TEXT_MAX ? container_set_name(reading->c, name) : 0;
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	static const char *const wanted[] = {"Name", "Config", NULL};
	_cleanup_(container_freep) struct container *c = NULL;
	struct reading reading = {.id = id};
	char path[RUNTIME_PATH_MAX];
	int r = container_new(docker_source.name, &c);

	(void)pod_uid;
	if (r)
		return r;
	reading.c = c;
	r = STATEFILE_GONE;
	for (size_t i = 0; i < array_size(folders) && r == STATEFILE_GONE; i++) {
		snprintf(path, sizeof(path), "%s/%s/config.v2.json", folders[i], id);
		r = statefile_read(files, path, wanted, read_member, &reading);
	}
	if (r)
		return r;
	if (!c->pod && !*c->name)
		return STATEFILE_ODD;
	*ret = take_ptr(c);
	return 0;
}

const struct runtime_source docker_source = {.name = "docker", .read = read_container};
