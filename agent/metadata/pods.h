/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_PODS_H
#define PODPROF_METADATA_PODS_H

/* The table of known pods, by container id and by UID. */

#include <stddef.h>
#include <stdint.h>

#include "metadata/pod.h"

/* Pods of one node: kubelets run 110 to 500. Reached: `PODS_TOO_MANY`. */
#define PODS_MAX       4096
/* Bytes of all pods: a real pod has 2 to 6 KB, but a single pod may have a megabyte. Reached:
 * `podprof_metadata_pods_dropped_total`. */
#define PODS_BYTES_MAX ((size_t)32 << 20)

struct pods;

enum pods_outcome {
	PODS_OK = 0,
	PODS_TOO_MANY, /* beyond PODS_MAX or PODS_BYTES_MAX */
};

int pods_new(struct pods **ret);
void pods_free(struct pods *pods);

/* Adds or replaces a pod; an unchanged pod changes nothing. Takes @pod, whatever the outcome. 0,
 * PODS_TOO_MANY, -ENOMEM. */
int pods_put(struct pods *pods, struct pod *pod);
/* The same, with the JSON text of the pod for pods_keep(). */
int pods_put_text(struct pods *pods, struct pod *pod, const char *json, size_t n);
/* True: a pod with this text is in the table, and counts as listed. False: the caller must parse
 * the text. */
bool pods_keep(struct pods *pods, const char *json, size_t n);
/* Does nothing for an unknown UID. */
void pods_remove(struct pods *pods, const char *uid);

/* Brackets a complete list. pods_end_list() removes the pods without a put or keep since its
 * pods_begin_list(), whose result is the number @list. An incomplete list must not be ended. Two
 * lists may be under way at a time. */
unsigned int pods_begin_list(struct pods *pods);
void pods_end_list(struct pods *pods, unsigned int list);

/* Both borrow until the table changes; NULL: unknown. A static pod is found by either of its UIDs.
 * A container claimed by two pods is not found. */
const struct pod *pods_by_container(const struct pods *pods, const char *id,
				    const struct pod_container **ret);
const struct pod *pods_by_uid(const struct pods *pods, const char *uid);

/* Changes with the table. */
uint64_t pods_version(const struct pods *pods);
size_t pods_count(const struct pods *pods);

#endif
