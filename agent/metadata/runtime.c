// SPDX-License-Identifier: Apache-2.0
/*
 * Before a container starts, its runtime writes the names into files on the node, for its own use.
 * So names are available when the container's first process runs, without a request to a server and
 * without rights in the cluster. The runtime's socket offers the same data, but write access to the
 * socket gives full power over the node.
 *
 * An id is in the state of only one runtime, so the first result is used. The kubelet's log links
 * come last, because log shippers have access to their directory.
 */
#include "metadata/runtime.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static const struct runtime_source *const sources[RUNTIME_SOURCES] = {
	&containerd_source, &crio_source, &docker_source, &podman_source, &podlogs_source,
};

const char *runtime_source_name(size_t source)
{
	return sources[source]->name;
}

int runtime_init(struct runtime *runtime, const char *host_root)
{
	*runtime = (struct runtime){.files = STATEFILES_INIT};
	return statefiles_open(host_root, &runtime->files);
}

void runtime_deinit(struct runtime *runtime)
{
	statefiles_deinit(&runtime->files);
}

/* The id comes from a cgroup's name, so from any user, and becomes part of a path. */
bool runtime_is_id(const char *id)
{
	return strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64;
}

int runtime_read(struct runtime *runtime, const char *id, const char *pod_uid,
		 struct container **ret)
{
	int worst = STATEFILE_GONE;

	if ((*id && !runtime_is_id(id)) || runtime->files.root.fd < 0)
		return STATEFILE_GONE;
	/* without an id, only the pod's log directory can help */
	for (size_t i = *id ? 0 : RUNTIME_SOURCES - 1; i < RUNTIME_SOURCES; i++) {
		int r = sources[i]->read(&runtime->files, id, pod_uid, ret);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			r = STATEFILE_ODD; /* a failing disk, too many open files */
		runtime->n_reads[i][r]++;
		if (!r)
			return 0;
		worst = r > worst ? r : worst;
	}
	return worst;
}

static int keep_annotations(void *ctx, const char *key, const json_t *value)
{
	json_t **ret = ctx;

	(void)key;
	json_decref(*ret); /* for duplicate members the last counts, as for the runtimes */
	*ret = json_incref((json_t *)value);
	return 0;
}

int runtime_read_annotations(const struct statefiles *files, const char *path, json_t **ret)
{
	static const char *const wanted[] = {"annotations", NULL};
	_cleanup_(json_decrefp) json_t *annotations = NULL;
	int r = statefile_read(files, path, wanted, keep_annotations, &annotations);

	if (r)
		return r;
	if (!json_is_object(annotations))
		return STATEFILE_ODD;
	*ret = take_ptr(annotations);
	return 0;
}
