/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_APISERVER_H
#define PODPROF_METADATA_APISERVER_H

/* The pods of this node from the API server: a list, then a watch. The client needs the rights
 * "list" and "watch" on "pods" in the whole cluster. */

#include "metadata/podclient.h"

struct loop;

/* Called after each list and at the end of each watch. */
typedef void (*apiserver_replied_fn)(void *ctx, const struct podclient_reply *reply);

struct apiserver;
/* Requests the first list at once. @node: the name in the pods' spec.nodeName. *@ret: owned. 0;
 * -EINVAL for an invalid node name; -errno. */
int apiserver_new(struct loop *loop, const struct podclient_opts *opts, const char *node,
		  apiserver_replied_fn replied, void *ctx, struct apiserver **ret);
void apiserver_free(struct apiserver *server);
/* Starts over with a list, because the other server has changed the pods meanwhile. May be called
 * from the callback. */
void apiserver_relist(struct apiserver *server);

#endif
