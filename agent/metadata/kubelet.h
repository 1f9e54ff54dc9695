/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_KUBELET_H
#define PODPROF_METADATA_KUBELET_H

/* The pods of this node from the kubelet: GET /pods. The client needs the right "get" on
 * "nodes/pods" (on "nodes/proxy" before Kubernetes 1.33). */

#include <stdbool.h>
#include <stdint.h>

#include "metadata/podclient.h"

struct loop;

/* Called after each attempt to get a list. */
typedef void (*kubelet_listed_fn)(void *ctx, const struct podclient_reply *reply);

struct kubelet;
/* Requests the first list at once. *@ret: owned. 0 or -errno. */
int kubelet_new(struct loop *loop, const struct podclient_opts *opts, kubelet_listed_fn listed,
		void *ctx, struct kubelet **ret);
void kubelet_free(struct kubelet *kubelet);

/* Polling interval for lists of this size, while no lookup is pending. */
uint64_t kubelet_refresh_ns(uint64_t n_bytes);
/* True if lists of this size are polled often enough to show a change within 5 seconds. */
bool kubelet_keeps_up(uint64_t n_bytes);
/* A container is unknown: poll again soon. */
void kubelet_look(struct kubelet *kubelet);
/* @spare: another server supplies the pods meanwhile. Then polling backs off further and further
 *         while the kubelet gives no list. May be called from the callback. */
void kubelet_spare(struct kubelet *kubelet, bool spare);
/* true: stop polling, and cancel the request under way. false: poll again at once. Not from the
 * callback. */
void kubelet_rest(struct kubelet *kubelet, bool rest);

#endif
