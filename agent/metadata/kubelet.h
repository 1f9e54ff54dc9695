/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_KUBELET_H
#define PODPROF_METADATA_KUBELET_H

/* The pods of this node as its kubelet lists them: GET /pods, the right "get" on "nodes/pods" (on
 * "nodes/proxy" before Kubernetes 1.33). */

#include <stdbool.h>
#include <stdint.h>

#include "metadata/podclient.h"

struct loop;

/* After each list, whatever became of it. */
typedef void (*kubelet_listed_fn)(void *ctx, const struct podclient_reply *reply);

struct kubelet;
/* Asks for the first list at once. */
int kubelet_new(struct loop *loop, const struct podclient_opts *opts, kubelet_listed_fn listed,
		void *ctx, struct kubelet **ret);
void kubelet_free(struct kubelet *kubelet);

/* From the end of a list of so many bytes to the next, while nobody looks for a container. */
uint64_t kubelet_refresh_ns(uint64_t n_bytes);
/* Whether lists of so many bytes are asked for often enough that a change is seen in 5 seconds. */
bool kubelet_keeps_up(uint64_t n_bytes);
/* There is a container that is not known: look again soon. */
void kubelet_look(struct kubelet *kubelet);
/* Whether another server tells of pods meanwhile: then it is asked less and less often while it
 * gives no list. May be called from the callback. */
void kubelet_spare(struct kubelet *kubelet, bool spare);
/* Not asked at all, and not heard to the end; or again, at once. Not from the callback. */
void kubelet_rest(struct kubelet *kubelet, bool rest);

#endif
