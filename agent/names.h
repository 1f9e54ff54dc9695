/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMES_H
#define PODPROF_NAMES_H

/* Gives discovery's containers the names that Kubernetes has for them, and keeps asking while some
 * have none. */

#include "metadata/metadata.h"

struct discovery;
struct loop;
struct metric_sink;
struct names;
struct owner;

/**
 * struct names_opts - everything is borrowed and must outlive it
 * @metadata: whom to ask; its loop, callbacks and context are set here
 * @source:   as in struct metadata_opts
 */
struct names_opts {
	struct loop *loop;
	struct discovery *discovery;
	struct metadata_opts metadata;
	metadata_source_fn source;
	void *ctx;
};

/* 0; -EDESTADDRREQ where metadata.mode names a server and none is known; -errno. */
int names_new(const struct names_opts *opts, struct names **ret);
void names_free(struct names *names);

/* What its pod's annotation podprof.io/NAME says, with '_' for '-' in @setting. NULL: it says
 * nothing. *@ret_known is false while that is because nothing is known of the pod yet, though it
 * may become known. Borrowed until the next trip through the loop. */
const char *names_setting(const struct names *names, const struct owner *owner, const char *setting,
			  bool *ret_known);

/* A metric_collect_fn; @ctx is the names. */
void names_collect(void *ctx, struct metric_sink *sink);

#endif
