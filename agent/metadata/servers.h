/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_SERVERS_H
#define PODPROF_METADATA_SERVERS_H

/* The servers that know a node's pods: which of them is asked, and what they have told. */

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

/* What is known of them altogether. */
enum servers_state {
	SERVERS_NONE,	     /* nobody is asked */
	SERVERS_ANSWERED,    /* there was a list */
	SERVERS_DENIED,	     /* there was none, and there will not be */
	SERVERS_UNREACHABLE, /* there was none yet */
};

struct servers;
/* By the mode, and by what the environment says. As metadata_new(). */
int servers_new(const struct metadata_opts *opts, struct servers **ret);
void servers_free(struct servers *servers);

const struct pods *servers_pods(const struct servers *servers);
enum servers_state servers_state(const struct servers *servers);
/* The last answer was a good one. */
bool servers_fresh(const struct servers *servers);
/* There is a container that is not known: ask again soon. */
void servers_look(struct servers *servers);

/* How the last request ended, an enum podclient_outcome; -1 before the first one has. */
int servers_outcome(const struct servers *servers, enum server server);
/* Its address; "" if that is not known. */
const char *servers_url(const struct servers *servers, enum server server);
/* Name and last word of one that is asked; NULL for one that is not. */
const char *servers_word(const struct servers *servers, enum server server);
const char *server_name(enum server server);

/* A metric_collect_fn; @ctx is the servers. */
void servers_collect(void *ctx, struct metric_sink *sink);

#endif
