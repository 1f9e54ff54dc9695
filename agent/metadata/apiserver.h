/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_APISERVER_H
#define PODPROF_METADATA_APISERVER_H

/* The pods of this node as the API server lists them and tells of changes: the rights "list" and
 * "watch" on "pods" of all the cluster. */

#include "metadata/podclient.h"

struct loop;

/* After each list, and whenever a watch has ended. */
typedef void (*apiserver_replied_fn)(void *ctx, const struct podclient_reply *reply);

struct apiserver;
/* Asks for the first list at once. @node: the name that pods have as spec.nodeName. -EINVAL if that
 * cannot be a node's name. */
int apiserver_new(struct loop *loop, const struct podclient_opts *opts, const char *node,
		  apiserver_replied_fn replied, void *ctx, struct apiserver **ret);
void apiserver_free(struct apiserver *server);
/* Another has told of the pods: begin with a list. May be called from the callback. */
void apiserver_relist(struct apiserver *server);

#endif
