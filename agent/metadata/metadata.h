/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_METADATA_H
#define PODPROF_METADATA_METADATA_H

/* The names of containers: the interface of this folder. */

#include <stdbool.h>

#include "base/http.h"
#include "metadata/container.h"
#include "metadata/pod.h"

struct loop;
struct metadata;
struct metric_sink;

/* The sources to use. */
enum metadata_mode {
	METADATA_AUTO, /* the runtimes' state on the node; in a Kubernetes pod also the kubelet,
			  with the API server as a fallback */
	METADATA_KUBELET,
	METADATA_APISERVER,
	METADATA_RUNTIME,
	METADATA_NONE,
	METADATA_MODE_MAX,
};

/* A source has changed its state. @ok: it works; @why: a reason for users. */
typedef void (*metadata_source_fn)(void *ctx, const char *source, bool ok, const char *why);
/* A list has arrived and changed the known pods. */
typedef void (*metadata_listed_fn)(void *ctx);

/**
 * struct metadata_opts - all borrowed, and must outlive the metadata; NULL where allowed
 * @node:             this node's name, for the API server
 * @host_root:        path of the node's root directory, for the runtimes' state; NULL: not
 *                    available. Used only by metadata_new()
 * @kubelet_url:      "https://ADDRESS:10250"; NULL: the address is in $HOST_IP
 * @kubelet_verify:   for its certificate, with @ca_file
 * @apiserver_url:    NULL: the address is in $KUBERNETES_SERVICE_HOST and _PORT
 * @sandbox_after_ns: a container that its pod's server does not list for this time is the sandbox;
 *                    0: a minute
 * @watch_lost_ns:    after this time without an answer, podprof stops watching the API server in
 *                    place of a kubelet with large lists; 0: five minutes
 * @listed:           NULL: no callback
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
	METADATA_PLAIN,	  /* a container outside pods; the runtime knows it */
	METADATA_SANDBOX, /* the container holds its pod's namespaces and runs no user's program */
	METADATA_POD, /* the pod is known, but the container is not (yet), or was not requested */
	METADATA_UNKNOWN_ID,  /* no source has the id (yet) */
	METADATA_UNREACHABLE, /* no server has answered yet */
	METADATA_DENIED,    /* the server refuses; without a server, the node's files are refused */
	METADATA_NOT_ASKED, /* METADATA_NONE, or no source exists */
	METADATA_OUTCOME_MAX,
};

/**
 * struct metadata_names - the known names; borrowed until the next iteration of the loop
 * @pod:       for METADATA_OK and METADATA_POD, and METADATA_SANDBOX if known; else NULL
 * @container: for METADATA_OK: name and image; else NULL
 * @state:     the runtime's state, if read: name and labels of a container outside pods (always set
 *             for METADATA_PLAIN), image; else NULL
 * @partial:   of @pod only name, namespace and UID are known, and perhaps labels; a server may
 *             still add the annotations and the workload
 * @missing:   the search goes on: a source may still know more
 */
struct metadata_names {
	const struct pod *pod;
	const struct pod_container *container;
	const struct container *state;
	bool partial;
	bool missing;
};

/* The message of -EDESTADDRREQ below, and its remedy. */
#define METADATA_NO_ADDRESS	   "unknown address of the server of --metadata"
#define METADATA_NO_ADDRESS_REMEDY "set --kubelet-url or $HOST_IP, or run in a Kubernetes pod"

/* *@ret: owned. 0; -EDESTADDRREQ if the mode names a server without a known address; -errno. */
int metadata_new(const struct metadata_opts *opts, struct metadata **ret);
void metadata_free(struct metadata *m);

/* True if there is a source; true if there is a source with annotations (a server). */
bool metadata_active(const struct metadata *m);
bool metadata_has_server(const struct metadata *m);

/**
 * metadata_find() - the currently known names of a container
 * @container_id, @pod_uid: as in the cgroup path; "" for none. Without a container id, the names of
 *  the pod
 *
 * The first request for a container reads the runtimes' files on the node's disk, on the caller's
 * thread, so the names may be known at once. After 32 reads in a row, further reads wait for 50 ms.
 * Call when a container appears, and then once a second during its life. The search for unknown
 * names continues with growing pauses while requests arrive.
 *
 * Return: the outcome; @ret is always set.
 */
enum metadata_outcome metadata_find(struct metadata *m, const char *container_id,
				    const char *pod_uid, struct metadata_names *ret);

/* State of a source. */
enum metadata_state {
	METADATA_WAITING, /* no answer yet; of runtimes: no container found yet */
	METADATA_WORKS,
	METADATA_REFUSES, /* the source refuses the token or the right to read pods; of runtimes:
			     the node's files */
	METADATA_FAILS,	  /* not reachable */
	METADATA_STRANGE, /* the reply has no pods */
};

/**
 * struct metadata_source - a source in use; borrowed until the next iteration of the loop
 * @name: "kubelet", "apiserver", "containerd"; "runtime" for all runtimes, until one has found a
 *        container
 * @word: the last answer, for users: foreign text
 * @url:  of a server; else ""
 */
struct metadata_source {
	const char *name;
	enum metadata_state state;
	const char *word;
	const char *url;
};

/* Two servers, and runtimes. Reached: -. */
#define METADATA_SOURCES_MAX 8

/* Fills in the sources in use, runtimes first. Returns their number. */
size_t metadata_sources(const struct metadata *m, struct metadata_source ret[METADATA_SOURCES_MAX]);
/* One line for users: each source and its last answer. */
void metadata_describe(const struct metadata *m, char *ret, size_t size);

/* A metric_collect_fn; @ctx is the metadata. */
void metadata_collect(void *ctx, struct metric_sink *sink);

const char *metadata_outcome_name(int outcome);

#endif
