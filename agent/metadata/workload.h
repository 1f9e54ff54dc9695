/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_WORKLOAD_H
#define PODPROF_METADATA_WORKLOAD_H

/* The object that a user deploys: the Deployment behind a ReplicaSet's pod, the CronJob behind a
 * Job's. */

#include <stddef.h>

struct pod;

/* Bytes of a name with the NUL. Kubernetes allows 253. Reached: cut. */
#define WORKLOAD_NAME_MAX 256

/**
 * struct workload - @kind is "" for a pod without a controller. Then @name is the pod's name, for a
 * static pod without the node's name at the end
 */
struct workload {
	char kind[WORKLOAD_NAME_MAX];
	char name[WORKLOAD_NAME_MAX];
};

/**
 * workload_of_pod() - derive the workload from the pod alone, without requests for its controllers
 *
 * The name of a Deployment's ReplicaSet is the Deployment's and a hash, and the hash is a label of
 * the pod. The name of a CronJob's Job is the CronJob's and the minute when the run was due. The
 * label and the pod's creation time rule out accidental matches.
 */
void workload_of_pod(const struct pod *pod, struct workload *ret);

/* The first of: annotation podprof.io/service-name, annotation
 * resource.opentelemetry.io/service.name, label app.kubernetes.io/instance, label
 * app.kubernetes.io/name, the workload. Borrows from @pod and @workload. */
const char *workload_service(const struct pod *pod, const struct workload *workload);
/* The origin of that name, for users: "annotation podprof.io/service-name", "Deployment". */
void workload_origin(const struct pod *pod, const struct workload *workload, char *ret, size_t n);

#endif
