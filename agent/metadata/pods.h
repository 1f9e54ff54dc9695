/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODS_H
#define PODPROF_METADATA_PODS_H

/* The pods that are known, found by container id and by UID. */

#include <stddef.h>
#include <stdint.h>

#include "metadata/pod.h"

/* Pods of one node: kubelets are run with 110 to 500. Reached: `PODS_TOO_MANY`. */
#define PODS_MAX       4096
/* Bytes of all of them together: real ones have 2 to 6 KB each, but one may have a megabyte.
 * Reached: `podprof_metadata_pods_dropped_total`. */
#define PODS_BYTES_MAX ((size_t)32 << 20)

struct pods;

enum pods_outcome {
	PODS_OK = 0,
	PODS_TOO_MANY, /* it would be more than PODS_MAX, or PODS_BYTES_MAX */
};

int pods_new(struct pods **ret);
void pods_free(struct pods *pods);

/* A pod that is new, has changed or is as it was (then nothing changes). @pod is taken, whatever
 * the outcome. 0, PODS_TOO_MANY, -ENOMEM. */
int pods_put(struct pods *pods, struct pod *pod);
/* The same with the text that it was read from. */
int pods_put_text(struct pods *pods, struct pod *pod, const char *json, size_t n);
/* The pod that was put with this text, if there is one, is as it was. False: there is none, read
 * it. */
bool pods_keep(struct pods *pods, const char *json, size_t n);
/* Nothing if there is none. */
void pods_remove(struct pods *pods, const char *uid);

/* A list of all: what is put or kept after pods_begin_list() stays at the pods_end_list() of the
 * number that it returns, all others go. A list that was cut short is not ended. Two may be under
 * way at a time. */
unsigned int pods_begin_list(struct pods *pods);
void pods_end_list(struct pods *pods, unsigned int list);

/* Both borrow until the table changes; NULL if there is none. Of a static pod either UID finds it.
 * Where two pods claim one container, none has it. */
const struct pod *pods_by_container(const struct pods *pods, const char *id,
				    const struct pod_container **ret);
const struct pod *pods_by_uid(const struct pods *pods, const char *uid);

/* Changes with the table. */
uint64_t pods_version(const struct pods *pods);
size_t pods_count(const struct pods *pods);
size_t pods_bytes(const struct pods *pods);

#endif
