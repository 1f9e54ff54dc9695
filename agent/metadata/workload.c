// SPDX-License-Identifier: Apache-2.0
/*
 * A pod names what controls it directly. That is enough for StatefulSets and DaemonSets, but a
 * Deployment's pods belong to a ReplicaSet, WEB-5d4f8c7b9 for a Deployment WEB, and a CronJob's to
 * a Job, BACKUP-29384720 for a CronJob BACKUP that was due 29,384,720 minutes after 1970. Asking
 * for those objects would take one more right, for all of the cluster; their names tell.
 *
 * A ReplicaSet that somebody made by hand, or that a Rollout made, may end in a dash and some
 * letters too, but only a Deployment's (and a Rollout's, which is as good) puts exactly these
 * letters on the pod as the label pod-template-hash.
 *
 * Sources: the Kubernetes project's pkg/controller/deployment (getReplicaSetName), pkg/controller/
 * cronjob (getJobName), 1.21 and later; pkg/kubelet/config/common.go (generatePodName).
 */
#include "metadata/workload.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/strview.h"
#include "metadata/pod.h"

/* A Job may be made late, after the controller was down; but not a month. */
#define CRONJOB_LATE_MINUTES ((int64_t)31 * 24 * 60)

static void set(struct workload *ret, const char *kind, const char *name, size_t n)
{
	snprintf(ret->kind, sizeof(ret->kind), "%s", kind);
	snprintf(ret->name, sizeof(ret->name), "%.*s",
		 (int)(n < WORKLOAD_NAME_MAX ? n : WORKLOAD_NAME_MAX), name);
}

/* What is before "-@suffix" at the end of @name; 0 if it does not end so. */
static size_t stem(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	if (m == 0 || n < m + 2 || name[n - m - 1] != '-' || strcmp(name + n - m, suffix) != 0)
		return 0;
	return n - m - 1;
}

/* Whether @digits are a minute since 1970 shortly before the pod was made. */
static bool is_due_minute(const char *digits, int64_t created_s)
{
	uint64_t minute;

	return strlen(digits) == 8 && strview_only_u64(strview_of(digits), 10, &minute) &&
	       created_s / 60 >= (int64_t)minute &&
	       created_s / 60 - (int64_t)minute <= CRONJOB_LATE_MINUTES;
}

/* The UID that a kubelet makes of a manifest's text, an MD5; all others have dashes. */
static bool is_digest(const char *uid)
{
	return strlen(uid) == 32 && strspn(uid, "0123456789abcdef") == 32;
}

/* Made by a kubelet out of a file or an address; its own list has no controller for them, and
 * says where each of its pods is from. The runtime has nothing but the UID. */
static bool is_static(const struct pod *pod)
{
	const char *source = pod_annotation(pod, "kubernetes.io/config.source");

	return strcmp(pod->owner_kind, "Node") == 0 || *pod->static_uid || is_digest(pod->uid) ||
	       (*source && strcmp(source, "api") != 0);
}

/* What is on every node is one service: the kubelet has put the node's name at the end. */
static void set_static(struct workload *ret, const struct pod *pod)
{
	size_t n = stem(pod->name, pod->node);

	set(ret, "", pod->name, n ? n : strlen(pod->name));
}

void workload_of_pod(const struct pod *pod, struct workload *ret)
{
	const char *name = pod->owner_name, *dash = strrchr(name, '-');
	size_t n;

	if (is_static(pod)) {
		set_static(ret, pod);
		return;
	}
	if (!*name) {
		set(ret, "", pod->name, strlen(pod->name));
		return;
	}
	if (strcmp(pod->owner_kind, "ReplicaSet") == 0) {
		n = stem(name, pod_label(pod, "pod-template-hash"));
		if (n) {
			set(ret, "Deployment", name, n);
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

/* Where people say themselves what a service is called, in the order of who wins. */
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

#define N_TOLD (sizeof(told) / sizeof(told[0]))

/* The first that does; N_TOLD if none does. */
static size_t teller(const struct pod *pod)
{
	size_t i = 0;

	while (i < N_TOLD && !*told[i].get(pod, told[i].key))
		i++;
	return i;
}

const char *workload_service(const struct pod *pod, const struct workload *workload)
{
	size_t i = teller(pod);

	return i < N_TOLD ? told[i].get(pod, told[i].key) : workload->name;
}

void workload_origin(const struct pod *pod, const struct workload *workload, char *ret, size_t n)
{
	size_t i = teller(pod);

	if (i < N_TOLD)
		snprintf(ret, n, "%s %s", told[i].kind, told[i].key);
	else
		snprintf(ret, n, "%s", *workload->kind ? workload->kind : "pod");
}
