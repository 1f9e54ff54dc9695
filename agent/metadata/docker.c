// SPDX-License-Identifier: Apache-2.0
/*
 * Docker describes a container in
 *
 *	/var/lib/docker/containers/<id>/config.v2.json
 *
 *	{"Name": "/shop-web-1", "Config": {"Image": "shop", "Labels": {...}, ...}, ...}
 *
 * Labels have Compose's project and service, and cri-dockerd's pod. If the file is not in the usual
 * directory (--data-root, userns-remap), the bundle in dockerd's own or shared containerd leads to
 * the right directory: the mount of /etc/hostname is a file beside config.v2.json. With the network
 * of another container of the same daemon, the file is beside that container's config.v2.json.
 *
 * An image may have any labels (LABEL in its Dockerfile), also those of a pod. Only the runtime
 * chooses the name, so the pod must be in the name as well: cri-dockerd's names are
 *
 *	k8s_<container>_<pod>_<namespace>_<UID>_<attempt>
 *
 * with the container "POD" for a sandbox.
 *
 * Not supported: another --exec-root together with another directory.
 *
 * Source: the Moby project's daemon/container and daemon/oci_linux.go; the cri-dockerd project's
 * core/docker_service.go, core/naming.go.
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

/* Of dockerd's own containerd, and of the node's. */
static const char *const states[] = {
	"run/docker/containerd/daemon",
	"run/containerd",
};

static const struct container_keys keys = {
	.type = "io.kubernetes.docker.type",
	.sandbox = "podsandbox",
	.namespace = "io.kubernetes.pod.namespace",
	.pod = "io.kubernetes.pod.name",
	.uid = "io.kubernetes.pod.uid",
	.container = "io.kubernetes.container.name",
};

/* State of a reading. */
struct reading {
	struct container *c;
	const char *id;
};

static int read_member(void *ctx, const char *key, const json_t *value)
{
	struct reading *reading = ctx;
	const char *name;

	if (strcmp(key, "Config") == 0) {
		const json_t *labels = json_object_get(value, "Labels");
		int r = container_set_image(reading->c, pod_text(value, "Image"));

		if (!r)
			r = container_add_labels(reading->c, labels);
		return r ? r : container_read_pod(reading->c, &keys, labels, reading->id);
	}
	name = json_is_string(value) ? json_string_value(value) : "";
	name += *name == '/';
	return strlen(name) <= POD_TEXT_MAX ? container_set_name(reading->c, name) : 0;
}

static int read_below(const struct statefiles *files, const char *folder, struct reading *reading)
{
	static const char *const wanted[] = {"Name", "Config", NULL};
	char path[RUNTIME_PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/config.v2.json", folder, reading->id);

	if (n >= (int)sizeof(path))
		return STATEFILE_GONE;
	return statefile_read(files, path, wanted, read_member, reading);
}

/* The directory of all containers, from a mount's source: without the file's name and the
 * container's directory. */
static void keep_folder(const char *source, char ret[RUNTIME_PATH_MAX])
{
	int n;

	while (*source == '/')
		source++;
	n = snprintf(ret, RUNTIME_PATH_MAX, "%s", source);
	for (int cut = 0; cut < 2 && n < RUNTIME_PATH_MAX; cut++) {
		char *slash = strrchr(ret, '/');

		if (slash)
			*slash = '\0';
		else
			*ret = '\0';
	}
	if (n >= RUNTIME_PATH_MAX)
		*ret = '\0';
}

static int look_at_mount(void *ctx, const char *key, const json_t *mount)
{
	(void)key;
	if (strcmp(pod_text(mount, "destination"), "/etc/hostname") == 0)
		keep_folder(pod_text(mount, "source"), ctx);
	return 0;
}

/* Finds this directory by the bundle; STATEFILE_GONE without a result. */
static int find_folder(const struct statefiles *files, const char *state, const char *id,
		       char ret[RUNTIME_PATH_MAX])
{
	static const char *const wanted[] = {"mounts", NULL};
	char path[RUNTIME_PATH_MAX];
	int r;

	*ret = '\0';
	snprintf(path, sizeof(path), "%s/io.containerd.runtime.v2.task/moby/%s/config.json", state,
		 id);
	r = statefile_read(files, path, wanted, look_at_mount, ret);
	return r || *ret ? r : STATEFILE_GONE;
}

static int find_config(const struct statefiles *files, struct reading *reading)
{
	char folder[RUNTIME_PATH_MAX];
	int r = STATEFILE_GONE;

	for (size_t i = 0; i < array_size(folders) && r == STATEFILE_GONE; i++)
		if (!statefiles_miss(files, folders[i]))
			r = read_below(files, folders[i], reading);
	for (size_t i = 0; i < array_size(states) && r == STATEFILE_GONE; i++) {
		if (statefiles_miss(files, states[i]))
			continue;
		r = find_folder(files, states[i], reading->id, folder);
		if (!r)
			r = read_below(files, folder, reading);
	}
	return r;
}

/* Whether the pod is in the container's name, too. */
static bool is_named_by_pod(const struct container *c)
{
	const struct pod *pod = c->pod;
	const char *container = c->sandbox	    ? "POD"
				: pod->n_containers ? pod->containers[0].name
						    : "";
	char name[5 * POD_TEXT_MAX];
	int n = snprintf(name, sizeof(name), "k8s_%s_%s_%s_%s_", container, pod->name,
			 pod->namespace, pod->uid);

	return n < (int)sizeof(name) && strncmp(c->name, name, (size_t)n) == 0;
}

static int read_container(const struct statefiles *files, const char *id, const char *pod_uid,
			  struct container **ret)
{
	_cleanup_(container_freep) struct container *c = NULL;
	struct reading reading = {.id = id};
	int r = container_new(docker_source.name, &c);

	(void)pod_uid;
	if (r)
		return r;
	reading.c = c;
	r = find_config(files, &reading);
	if (r)
		return r;
	if (c->pod && !is_named_by_pod(c)) {
		pod_free(take_ptr(c->pod));
		c->sandbox = false;
	}
	if (!c->pod && !*c->name)
		return STATEFILE_ODD;
	*ret = take_ptr(c);
	return 0;
}

const struct runtime_source docker_source = {.name = "docker", .read = read_container};
