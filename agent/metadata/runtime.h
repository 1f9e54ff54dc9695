/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_RUNTIME_H
#define PODPROF_METADATA_RUNTIME_H

/* The container runtimes' state on the node's disk, behind one function. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metadata/container.h"
#include "metadata/statefile.h"

/* Bytes of a path below the host's root. Reached: -. */
#define RUNTIME_PATH_MAX 512

/**
 * struct runtime_source - one runtime
 * @read: reads the state of a container. @id is 64 hexadecimal digits, or "" if only the pod's UID
 *        is known; @pod_uid is as in the cgroup path, or "". *@ret: owned. 0; STATEFILE_GONE for
 *        another runtime's container; another outcome; -ENOMEM
 */
struct runtime_source {
	const char *name;
	int (*read)(const struct statefiles *files, const char *id, const char *pod_uid,
		    struct container **ret);
};

extern const struct runtime_source containerd_source;
extern const struct runtime_source crio_source;
extern const struct runtime_source docker_source;
extern const struct runtime_source podman_source;
extern const struct runtime_source podlogs_source;

#define RUNTIME_SOURCES 5

struct runtime {
	struct statefiles files;
	uint64_t n_reads[RUNTIME_SOURCES][STATEFILE_OUTCOME_MAX];
};

/* @host_root: "/proc/1/root". An unreadable host counts as one without runtimes. 0, a
 *             statefile_outcome, -errno; @runtime is usable in every case. */
int runtime_init(struct runtime *runtime, const char *host_root);
void runtime_deinit(struct runtime *runtime);

/* Tries the sources in the order of their quality. *@ret: owned. 0; STATEFILE_GONE if no source has
 * the container; the worst outcome on the way; -ENOMEM. */
int runtime_read(struct runtime *runtime, const char *id, const char *pod_uid,
		 struct container **ret);

/* "containerd", ... */
const char *runtime_source_name(size_t source);

/* True if the text is a container's id, and so safe in a path. */
bool runtime_is_id(const char *id);
/* Reads the annotations of an OCI bundle. *@ret: owned. STATEFILE_ODD if there are none. */
int runtime_read_annotations(const struct statefiles *files, const char *path, json_t **ret);

#endif
