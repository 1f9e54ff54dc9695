// SPDX-License-Identifier: Apache-2.0
/*
 * A pod names its direct controller. This is enough for StatefulSets and DaemonSets. But a
 * Deployment's pods belong to a ReplicaSet, WEB-5d4f8c7b9 for a Deployment WEB. A CronJob's pods
 * belong to a Job, BACKUP-29384720 for a CronJob BACKUP that was due 29,384,720 minutes after 1970.
 * Requests for these objects would need another right, for the whole cluster; their names suffice.
 *
 * A user's ReplicaSet may also end in a dash and some letters. But only a Deployment puts exactly
 * these letters on the pod as the label pod-template-hash, and Argo's Rollout, which has
 * ReplicaSets of the same form, as a label of its own.
 *
 * Sources: the Kubernetes project's pkg/controller/deployment (getReplicaSetName),
 * pkg/controller/cronjob (getJobName), 1.21 and later; pkg/kubelet/config/common.go
 * (generatePodName); the Argo Rollouts project's pkg/apis/rollouts/v1alpha1/types.go
 * (DefaultRolloutUniqueLabelKey).
 */
#include "metadata/workload.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "metadata/pod.h"

/* A Job may be late after an outage of the controller, but not by a month. */
#define CRONJOB_LATE_MINUTES ((int64_t)31 * 24 * 60)

static void set(struct workload *ret, const char *kind, const char *name, size_t n)
{
	snprintf(ret->kind, sizeof(ret->kind), "%s", kind);
	snprintf(ret->name, sizeof(ret->name), "%.*s",
		 (int)(n < WORKLOAD_NAME_MAX ? n : WORKLOAD_NAME_MAX), name);
}

/* The owners of ReplicaSets, and the label with the end of a ReplicaSet's name. */
static const struct {
	const char *kind;
	const char *label;
} hashes[] = {
	{"Deployment", "pod-template-hash"},
	{"Rollout", "rollouts-pod-template-hash"},
};

/* Length of @name before "-@suffix"; 0 without this suffix. */
static size_t stem(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	if (m == 0 || n < m + 2 || name[n - m - 1] != '-' || strcmp(name + n - m, suffix) != 0)
		return 0;
	return n - m - 1;
}

/* True if @digits are a minute since 1970, shortly before the pod's creation. */
static bool is_due_minute(const char *digits, int64_t created_s)
{
	uint64_t minute;

	return strlen(digits) == 8 && strview_only_u64(strview_of(digits), 10, &minute) &&
	       created_s / 60 >= (int64_t)minute &&
	       created_s / 60 - (int64_t)minute <= CRONJOB_LATE_MINUTES;
}

/* True for a pod that a kubelet made from a file or a URL. The kubelet's own list has no controller
 * for such a pod, but an annotation with the pod's origin. The runtime has only the UID. */
static bool is_static(const struct pod *pod)
{
	const char *source = pod_annotation(pod, "kubernetes.io/config.source");

	/* True for the UID of a static pod, an MD5 of the manifest. All other UIDs have dashes. */
	return strcmp(pod->owner_kind, "Node") == 0 || *pod->static_uid ||
	       (strlen(pod->uid) == 32 && strspn(pod->uid, "0123456789abcdef") == 32) ||
	       (*source && strcmp(source, "api") != 0);
}

void workload_of_pod(const struct pod *pod, struct workload *ret)
{
	const char *name = pod->owner_name, *dash = strrchr(name, '-');
	size_t n;

	if (is_static(pod)) {
		/* without the node's name, which the kubelet appends: the same pod on all nodes is
		 * one service */
		n = stem(pod->name, pod->node);
		set(ret, "", pod->name, n ? n : strlen(pod->name));
		return;
	}
	if (!*name) {
		set(ret, "", pod->name, strlen(pod->name));
		return;
	}
	for (size_t i = 0; i < array_size(hashes) && strcmp(pod->owner_kind, "ReplicaSet") == 0;
	     i++) {
		n = stem(name, pod_label(pod, hashes[i].label));
		if (n) {
			set(ret, hashes[i].kind, name, n);
			return;
		}
	}
	if (strcmp(pod->owner_kind, "Job") == 0 && dash && dash != name &&
	    is_due_minute(dash + 1, pod->created_s)) {
		set(ret, "CronJob", name, (size_t)(dash - name));
		return;
	}
	set(ret, pod->owner_kind, name, strlen(name));
}

/* The user's own names of a service, in order of precedence. */
static const struct {
	const char *kind;
	const char *(*get)(const struct pod *pod, const char *key);
	const char *key;
} told[] = {
	{"annotation", pod_annotation, "podprof.io/service-name"},
	{"annotation", pod_annotation, "resource.opentelemetry.io/service.name"},
	{"pod label", pod_label, "app.kubernetes.io/instance"},
	{"pod label", pod_label, "app.kubernetes.io/name"},
};

/* Index of the first name that is set; the array's size for none. */
static size_t teller(const struct pod *pod)
{
	size_t i = 0;

	while (i < array_size(told) && !*told[i].get(pod, told[i].key))
		i++;
	return i;
}

const char *workload_service(const struct pod *pod, const struct workload *workload)
{
	size_t i = teller(pod);

	return i < array_size(told) ? told[i].get(pod, told[i].key) : workload->name;
}

void workload_origin(const struct pod *pod, const struct workload *workload, char *ret, size_t n)
{
	size_t i = teller(pod);

	if (i < array_size(told))
		snprintf(ret, n, "%s %s", told[i].kind, told[i].key);
	else
		snprintf(ret, n, "%s", *workload->kind ? workload->kind : "pod");
}
