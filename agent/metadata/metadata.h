/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_METADATA_H
#define PODPROF_METADATA_METADATA_H

/* What Kubernetes calls a container: the front of this folder. */

#include <stdbool.h>

#include "base/http.h"
#include "metadata/pod.h"

struct loop;
struct metadata;
struct metric_sink;

/* Whom to ask. */
enum metadata_mode {
	METADATA_AUTO, /* in a Kubernetes pod the kubelet, and where it refuses the API server */
	METADATA_KUBELET,
	METADATA_APISERVER,
	METADATA_NONE,
	METADATA_MODE_MAX,
};

/* A source has answered otherwise than before: whether it works now, and for people, why not. */
typedef void (*metadata_source_fn)(void *ctx, const char *source, bool ok, const char *why);

/**
 * struct metadata_opts - everything is borrowed and must outlive it, where not NULL
 * @node:           this node's name, for the API server
 * @kubelet_url:    "https://ADDRESS:10250"; NULL: $HOST_IP tells the address
 * @kubelet_verify: of its certificate, with @ca_file
 * @apiserver_url:  NULL: $KUBERNETES_SERVICE_HOST and _PORT tell it
 * @token_file, @ca_file: NULL: those of the pod's service account
 */
struct metadata_opts {
	struct loop *loop;
	enum metadata_mode mode;
	const char *node;
	const char *kubelet_url;
	enum http_verify kubelet_verify;
	const char *apiserver_url;
	const char *token_file;
	const char *ca_file;
	metadata_source_fn source;
	void *ctx;
};

enum metadata_outcome {
	METADATA_OK = 0,
	METADATA_POD,	      /* the pod is known, which of its containers it is is not (yet) */
	METADATA_UNKNOWN_ID,  /* no pod has it (yet) */
	METADATA_UNREACHABLE, /* nobody has answered yet */
	METADATA_DENIED,      /* nobody that was asked will tell */
	METADATA_NOT_ASKED,   /* METADATA_NONE, or not in Kubernetes */
	METADATA_OUTCOME_MAX,
};

/* Borrowed until the next trip through the loop. @container: NULL with METADATA_POD. */
struct metadata_names {
	const struct pod *pod;
	const struct pod_container *container;
};

int metadata_new(const struct metadata_opts *opts, struct metadata **ret);
void metadata_free(struct metadata *m);

/* Whether anybody is asked. */
bool metadata_active(const struct metadata *m);

/* @container_id, @pod_uid: as in the cgroup's path; "" for none. @ret is set on METADATA_OK and
 * METADATA_POD. */
enum metadata_outcome metadata_find(const struct metadata *m, const char *container_id,
				    const char *pod_uid, struct metadata_names *ret);
/* Differs from an earlier one if something may be known that was not, or has changed. */
uint64_t metadata_version(const struct metadata *m);
/* There is a container that is not known: look again soon. */
void metadata_look(struct metadata *m);

/* A metric_collect_fn; @ctx is the metadata. */
void metadata_collect(void *ctx, struct metric_sink *sink);

const char *metadata_outcome_name(int outcome);

#endif
