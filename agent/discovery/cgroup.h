/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_H
#define PODPROF_DISCOVERY_CGROUP_H

#include <stdbool.h>

#include "base/strview.h"

/* The parser of cgroup paths: from a path to the runtime, the container's id and the pod's UID.
 * Pure text in, value out. */

enum cgroup_runtime {
	CGROUP_RUNTIME_NONE,	/* neither a container nor a pod's directory */
	CGROUP_RUNTIME_UNKNOWN, /* several runtimes use this form of path */
	CGROUP_RUNTIME_CONTAINERD,
	CGROUP_RUNTIME_CRIO,
	CGROUP_RUNTIME_DOCKER,
	CGROUP_RUNTIME_PODMAN,
	CGROUP_RUNTIME_RUNC,
	CGROUP_RUNTIME_KATA,
	CGROUP_RUNTIME_LXC,
	CGROUP_RUNTIME_NSPAWN,
	CGROUP_RUNTIME_ECS,
	CGROUP_RUNTIME_GARDEN,
	CGROUP_RUNTIME_NOMAD,
	CGROUP_RUNTIME_MAX,
};

enum cgroup_qos {
	CGROUP_QOS_UNKNOWN,
	CGROUP_QOS_BESTEFFORT,
	CGROUP_QOS_BURSTABLE,
	CGROUP_QOS_GUARANTEED,
	CGROUP_QOS_MAX,
};

enum cgroup_kind {
	CGROUP_KIND_NONE,
	CGROUP_KIND_CONTAINER, /* or a sandbox: most runtimes give both the same form of path */
	CGROUP_KIND_SANDBOX,   /* certainly a sandbox: Kata's, CRI-O's empty directory */
	CGROUP_KIND_POD,       /* a pod's own directory, or a subdirectory of no container */
	CGROUP_KIND_MAX,
};

/* True for containers and sandboxes, false for the pod around them. */
static inline bool cgroup_in_container(enum cgroup_kind kind)
{
	return kind == CGROUP_KIND_CONTAINER || kind == CGROUP_KIND_SANDBOX;
}

/* Bytes of a container id with the NUL. Ids are 64 hexadecimal digits; the names of LXC and nspawn
 * containers can be longer. A longer id is not cut, because the cut id could be another
 * container's. Reached: no container. */
#define CGROUP_ID_MAX  128
/* Bytes of a pod UID with the NUL: 36 characters, or 32 for a static pod. Reached: no pod. */
#define CGROUP_UID_MAX 37

/**
 * struct cgroup_id - the parts of a cgroup path
 * @container_id: "" if the path names no container
 * @outer_id:     the outermost container around this container (docker in docker, the node of
 * kind), or the systemd instance of a user around all of them (rootless podman); "" for neither.
 * Processes inside an outer container choose their own paths and may claim any name, also for the
 * containers between.
 * @service:      the systemd service of the container, "web.service" (Podman's split mode,
 *                Quadlet); "" for none
 * @pod_uid:      with dashes, or 32 digits for a static pod; "" if the path names no pod
 */
struct cgroup_id {
	enum cgroup_runtime runtime;
	enum cgroup_qos qos;
	enum cgroup_kind kind;
	char container_id[CGROUP_ID_MAX];
	char outer_id[CGROUP_ID_MAX];
	char service[CGROUP_ID_MAX];
	char pod_uid[CGROUP_UID_MAX];
};

/* Parses one path, as below a cgroup mount or in /proc/PID/cgroup; a leading '/' is not needed. */
void cgroup_parse_path(struct strview path, struct cgroup_id *ret);
/* Parses the text of /proc/PID/cgroup. The result is the line with the highest cgroup_richness(),
 * the first of equals, but an inner container replaces its outer container. */
void cgroup_parse_proc(struct strview proc_cgroup, struct cgroup_id *ret);
/* Parses either text; the form of the first line tells which. */
void cgroup_parse(struct strview t, struct cgroup_id *ret);

/* The uid of the user whose systemd contains the container or pod. False: there is no such user,
 * and @outer_id is a container's. */
bool cgroup_user(const struct cgroup_id *id, struct strview *ret) STRVIEW_MUST_CHECK;

/* How much a parsed path says: 4 for a container with a pod, 3 for a container without, 2 for a
 * pod, 1 for a QoS class, 0 for nothing. */
int cgroup_richness(const struct cgroup_id *id);
/* True if the container of @id is inside the container of @outer. */
bool cgroup_is_inside(const struct cgroup_id *id, const struct cgroup_id *outer);

/* True if people choose the container's id (LXC, nspawn). Then the id is the container's name, and
 * no runtime's file has another name. */
bool cgroup_id_is_name(const struct cgroup_id *id);

/* Names for labels and JSON: "containerd", "burstable", "container". NULL for an unknown QoS class.
 */
const char *cgroup_runtime_name(enum cgroup_runtime runtime);
const char *cgroup_qos_name(enum cgroup_qos qos);
const char *cgroup_kind_name(enum cgroup_kind kind);

#endif
