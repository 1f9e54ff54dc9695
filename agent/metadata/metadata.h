/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_METADATA_H
#define PODPROF_METADATA_METADATA_H

/* What containers are called: the front of this folder. */

#include <stdbool.h>

#include "base/http.h"
#include "metadata/container.h"
#include "metadata/pod.h"

struct loop;
struct metadata;
struct metric_sink;

/* Whom to ask. */
enum metadata_mode {
	METADATA_AUTO, /* the runtimes' state on the node; in a Kubernetes pod the kubelet as well,
			  and where it refuses the API server */
	METADATA_KUBELET,
	METADATA_APISERVER,
	METADATA_RUNTIME,
	METADATA_NONE,
	METADATA_MODE_MAX,
};

/* A source has answered otherwise than before: whether it works now, and for people, why not. */
typedef void (*metadata_source_fn)(void *ctx, const char *source, bool ok, const char *why);
/* There was a list, and what it told is not what was known. */
typedef void (*metadata_listed_fn)(void *ctx);

/**
 * struct metadata_opts - everything is borrowed and must outlive it, where not NULL
 * @node:           this node's name, for the API server
 * @host_root:      where the node's root directory is to be seen, for the runtimes' state; NULL:
 *                  nowhere. Not needed any more after the start
 * @kubelet_url:    "https://ADDRESS:10250"; NULL: $HOST_IP tells the address
 * @kubelet_verify: of its certificate, with @ca_file
 * @apiserver_url:  NULL: $KUBERNETES_SERVICE_HOST and _PORT tell it
 * @sandbox_after_ns: what a pod's server does not name as a container of it in this time is its
 *                    sandbox; 0: a minute
 * @watch_lost_ns: an API server that is watched in the place of a kubelet with large lists, and has
 *                 not answered for this long, is not any more; 0: five minutes
 * @listed:     NULL: nobody wants to know
 * @token_file, @ca_file: NULL: those of the pod's service account
 */
struct metadata_opts {
	struct loop *loop;
	enum metadata_mode mode;
	const char *node;
	const char *host_root;
	const char *kubelet_url;
	enum http_verify kubelet_verify;
	const char *apiserver_url;
	uint64_t sandbox_after_ns;
	uint64_t watch_lost_ns;
	const char *token_file;
	const char *ca_file;
	metadata_source_fn source;
	void *ctx;
	metadata_listed_fn listed;
	void *listed_ctx;
};

enum metadata_outcome {
	METADATA_OK = 0,
	METADATA_PLAIN,	     /* a container of no pod: its runtime knows it */
	METADATA_SANDBOX,    /* it holds its pod's namespaces, and runs nothing of anybody's */
	METADATA_POD,	     /* the pod is known, which of its containers it is is not (yet), or was
				not asked */
	METADATA_UNKNOWN_ID, /* nobody has it (yet) */
	METADATA_UNREACHABLE, /* nobody has answered yet */
	METADATA_DENIED,      /* nobody that was asked will tell */
	METADATA_NOT_ASKED,   /* METADATA_NONE, or there is nobody */
	METADATA_OUTCOME_MAX,
};

/**
 * struct metadata_names - what is known; borrowed until the next trip through the loop
 * @pod:       with METADATA_OK and METADATA_POD; with METADATA_SANDBOX where it is known; else NULL
 * @container: with METADATA_OK: its name, and image. Else NULL
 * @state:     what its runtime says, where that was read: name and labels of a container of no pod
 *             (always with METADATA_PLAIN), image. NULL otherwise
 * @partial:   of @pod only name, namespace and UID are known, and perhaps labels; a server that is
 *             asked may yet tell of its annotations and of what made it
 */
struct metadata_names {
	const struct pod *pod;
	const struct pod_container *container;
	const struct container *state;
	bool partial;
};

/* 0; -EDESTADDRREQ where the mode names a server and none is known; -errno. */
int metadata_new(const struct metadata_opts *opts, struct metadata **ret);
void metadata_free(struct metadata *m);

/* Whether anybody is asked; whether that is one who knows of annotations. */
bool metadata_active(const struct metadata *m);
bool metadata_has_server(const struct metadata *m);

/**
 * metadata_find() - the names of a container, as far as they are known now
 * @container_id, @pod_uid: as in the cgroup's path; "" for none. Without the first those of a pod
 *
 * For a container that it has not heard of it reads what runtimes say of it, some files on the
 * node's disk, and so may know it at once: ask when a container is first seen, and then once a
 * second for as long as it lives. What is not known is looked for again, with longer and longer
 * pauses, for as long as it is asked for.
 *
 * Return: the outcome; @ret is set in each case.
 */
enum metadata_outcome metadata_find(struct metadata *m, const char *container_id,
				    const char *pod_uid, struct metadata_names *ret);

/* How it stands with a source. */
enum metadata_state {
	METADATA_WAITING, /* it has not answered yet; of a runtime: it has told of no container */
	METADATA_WORKS,
	METADATA_REFUSES, /* the token, the right to read pods; of runtimes: the node's files */
	METADATA_FAILS,	  /* it is not reached */
	METADATA_STRANGE, /* it answers, but not with pods */
};

/**
 * struct metadata_source - one that is asked; borrowed until the next trip through the loop
 * @name: "kubelet", "apiserver", "containerd"; "runtime" for all runtimes, while none has told
 * @word: what it said last, for people: foreign
 * @url:  of a server; else ""
 */
struct metadata_source {
	const char *name;
	enum metadata_state state;
	const char *word;
	const char *url;
};

/* Two servers, and runtimes; one more is left out. Reached: -. */
#define METADATA_SOURCES_MAX 8

/* Those that are asked: runtimes first. Returns their number. */
size_t metadata_sources(const struct metadata *m, struct metadata_source ret[METADATA_SOURCES_MAX]);
/* For people, one line: each source and what it says. */
void metadata_describe(const struct metadata *m, char *ret, size_t size);

/* A metric_collect_fn; @ctx is the metadata. */
void metadata_collect(void *ctx, struct metric_sink *sink);

const char *metadata_outcome_name(int outcome);

#endif
