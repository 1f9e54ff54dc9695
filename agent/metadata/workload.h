/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_WORKLOAD_H
#define PODPROF_METADATA_WORKLOAD_H

/* What people deploy: the Deployment behind a ReplicaSet's pod, the CronJob behind a Job's. */

#include <stddef.h>

struct pod;

/* Bytes of a name with its NUL; a longer one is cut. Kubernetes allows 253. Reached: cut. */
#define WORKLOAD_NAME_MAX 256

/**
 * struct workload - @kind is "" for a pod that nothing controls; @name then is the pod's, for a
 * static pod without the node's name at its end
 */
struct workload {
	char kind[WORKLOAD_NAME_MAX];
	char name[WORKLOAD_NAME_MAX];
};

/**
 * workload_of_pod() - by the pod alone, without asking for the objects that made it
 *
 * ReplicaSets of a Deployment are named after it and a hash that is on the pod as a label; Jobs of
 * a CronJob after it and the minute they were due. A name that is like that by accident is told by
 * the label, and by the time the pod was made.
 */
void workload_of_pod(const struct pod *pod, struct workload *ret);

/* The first of: annotation podprof.io/service-name, annotation
 * resource.opentelemetry.io/service.name, label app.kubernetes.io/instance, label
 * app.kubernetes.io/name, the workload. Borrows from @pod and @workload. */
const char *workload_service(const struct pod *pod, const struct workload *workload);
/* Which of them it was, for people: "annotation podprof.io/service-name", "Deployment". */
void workload_origin(const struct pod *pod, const struct workload *workload, char *ret, size_t n);

#endif
