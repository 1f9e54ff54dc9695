/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUP_H
#define PODPROF_DISCOVERY_CGROUP_H

#include <stdbool.h>

#include "base/strview.h"

/* What a cgroup path says about the container it belongs to. Pure text in, value out. */

enum cgroup_runtime {
	CGROUP_RUNTIME_NONE,	/* neither a container nor a pod's directory */
	CGROUP_RUNTIME_UNKNOWN, /* one of several; the path does not tell which */
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
	CGROUP_KIND_CONTAINER, /* or a sandbox: most runtimes give both the same path */
	CGROUP_KIND_SANDBOX,   /* surely one: Kata's, CRI-O's empty directory */
	CGROUP_KIND_POD,       /* a pod's own directory, or one in it that is no container's */
	CGROUP_KIND_MAX,
};

/* Of a container, or what holds a pod's containers: not of the pod around them. */
static inline bool cgroup_in_container(enum cgroup_kind kind)
{
	return kind == CGROUP_KIND_CONTAINER || kind == CGROUP_KIND_SANDBOX;
}

/* Bytes of a container id with its NUL. Ids are 64 hexadecimal digits; the names of LXC and nspawn
 * containers can be longer, and one that does not fit is no container (a cut one could be
 * another's). Reached: no container: a cut id could be another's. */
#define CGROUP_ID_MAX  128
/* Bytes of a pod UID with its NUL: 36 characters, or 32 for a static pod. Reached: no pod. */
#define CGROUP_UID_MAX 37

/**
 * struct cgroup_id - what a path says
 * @container_id: "" if the path names no container
 * @outer_id:     the container around that one (docker in docker, the node of kind), or the user's
 *                systemd it is in (rootless podman); "" if none. What is inside one of them chose
 *                its own path and may claim any name.
 * @service:      the systemd service that runs it, "web.service" (Podman's split mode, Quadlet); ""
 *                if none
 * @pod_uid:      with dashes, or 32 digits for a static pod; "" if the path names none
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

/* One path, as below a cgroup mount or in /proc/PID/cgroup; a leading '/' is not needed. */
void cgroup_parse_path(struct strview path, struct cgroup_id *ret);
/* The text of /proc/PID/cgroup: the line that says most, the first of equals. */
void cgroup_parse_proc(struct strview proc_cgroup, struct cgroup_id *ret);
/* Either of them, told apart by the form of the first line. */
void cgroup_parse(struct strview t, struct cgroup_id *ret);

/* The number of the user whose systemd a container or pod is in. False if it is in none's: then
 * @outer_id is a container's. */
bool cgroup_user(const struct cgroup_id *id, struct strview *ret) STRVIEW_MUST_CHECK;

/* How much it says: a container that knows its pod more than one that does not, that more than a
 * pod. 0 for nothing. */
int cgroup_richness(const struct cgroup_id *id);
/* Whether @id is of a container in @outer's. */
bool cgroup_is_inside(const struct cgroup_id *id, const struct cgroup_id *outer);

/* Whether people have chosen the container's id: then that is what it is called, and no runtime's
 * file has another name for it. */
bool cgroup_id_is_name(const struct cgroup_id *id);

/* Names as in labels and JSON: "containerd", "burstable", "container". NULL for a QoS class that is
 * not known. */
const char *cgroup_runtime_name(enum cgroup_runtime runtime);
const char *cgroup_qos_name(enum cgroup_qos qos);
const char *cgroup_kind_name(enum cgroup_kind kind);

#endif
