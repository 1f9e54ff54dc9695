/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PENDING_H
#define PODPROF_EXPORT_PENDING_H

/* Profiles on the way to a disk, the oldest first. */

#include <stddef.h>
#include <stdint.h>

struct queued_profile;

/* Owns a reference of @p. A user with more to say embeds it as the first member. */
struct pending {
	struct pending *next;
	struct queued_profile *p;
};

struct pending_list {
	struct pending *first;
	struct pending **last;
	size_t n;
	uint64_t bytes; /* of memory */
};

void pending_init(struct pending_list *list);
/* Takes @pending. */
void pending_push(struct pending_list *list, struct pending *pending);
/* NULL if the list is empty. */
struct pending *pending_pop(struct pending_list *list);
/* Also the struct around it. */
void pending_free(struct pending *pending);
/* For the job of a blocked thread: see queued_profile_orphan(). */
void pending_orphan(struct pending_list *list);

#endif
