/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_SERVERS_H
#define PODPROF_METADATA_SERVERS_H

/* The servers of a node's pods: selects the server to use and keeps the pods. */

#include <stdbool.h>
#include <stddef.h>

#include "metadata/metadata.h"
#include "metadata/podclient.h"

struct pods;

enum server {
	SERVER_KUBELET,
	SERVER_APISERVER,
	SERVER_MAX,
};

/* State of all servers together. */
enum servers_state {
	SERVERS_NONE,	     /* no server is used */
	SERVERS_ANSWERED,    /* a list has arrived */
	SERVERS_DENIED,	     /* no list, and the server refuses */
	SERVERS_UNREACHABLE, /* no list yet */
};

struct servers;
/* Starts the servers of the mode and the environment. *@ret: owned. Errors as metadata_new(). */
int servers_new(const struct metadata_opts *opts, struct servers **ret);
void servers_free(struct servers *servers);

const struct pods *servers_pods(const struct servers *servers);
enum servers_state servers_state(const struct servers *servers);
/* True if the last request succeeded. */
bool servers_fresh(const struct servers *servers);
/* A container is unknown: ask again soon. */
void servers_look(struct servers *servers);

/* The enum podclient_outcome of the last request; -1 before the first reply. */
int servers_outcome(const struct servers *servers, enum server server);
/* The server's address; "" if unknown. */
const char *servers_url(const struct servers *servers, enum server server);
/* The last answer of a server in use; NULL for a server not in use. */
const char *servers_word(const struct servers *servers, enum server server);
const char *server_name(enum server server);

/* A metric_collect_fn; @ctx is the servers. */
void servers_collect(void *ctx, struct metric_sink *sink);

#endif
