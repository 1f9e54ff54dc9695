// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime writes down what a container is called before it starts it, for itself, on the node: no
 * server has to be asked, no right in the cluster is needed, and it is there when the container's
 * first process runs. The same could be had from the runtime's socket, but whoever may write to
 * that may do anything on the node.
 *
 * An id is in one runtime's state only, so the first that has it is believed; the kubelet's log
 * links come last, since they are in a directory that log shippers are let into.
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

/* What is told to the file system as a name comes from a cgroup's, and so from anybody. */
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
	/* Without an id there is only the pod's directory of logs. */
	for (size_t i = *id ? 0 : RUNTIME_SOURCES - 1; i < RUNTIME_SOURCES; i++) {
		int r = sources[i]->read(&runtime->files, id, pod_uid, ret);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			r = STATEFILE_ODD; /* a disk that fails, too many open files */
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
	json_decref(*ret); /* the last counts, as for those that wrote it */
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
