/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_LOOKUP_H
#define PODPROF_METADATA_LOOKUP_H

/* The containers that somebody has asked for: what their runtime says of them, and when to try
 * again for those that nobody knows. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/nsec.h"
#include "metadata/container.h"

/* Containers at a time, as many as entities have. Reached: known by what servers have told only. */
#define LOOKUPS_MAX	  8192
/* From one try to the next: at first, and at most. */
#define LOOKUP_FIRST_NS	  (250 * NSEC_PER_MSEC)
#define LOOKUP_LONGEST_NS (10 * NSEC_PER_SEC)
/* A container that was not asked for in this time has gone. */
#define LOOKUP_GONE_NS	  (10 * NSEC_PER_SEC)

/**
 * struct lookup - one container
 * @id, @pod_uid: as in the cgroup's path; "" for none
 * @state:        what its runtime says; NULL if nothing is found (yet)
 * @missing:      somebody may yet know more of it: it is tried again
 * @outcome:      of the last answer to whoever asked
 * @first_ns, @asked_ns: when it was asked for, first and last
 * @due_ns:       when it is tried again
 * @round:        of whoever asks: by which it is told who was there before whom
 */
struct lookup {
	const char *id;
	const char *pod_uid;
	struct container *state;
	bool missing;
	int outcome;
	uint64_t first_ns;
	uint64_t asked_ns;
	uint64_t due_ns;
	uint64_t round;

	uint64_t wait_ns;
	UT_hash_handle hh;
	char text[];
};

struct lookups {
	struct lookup *by_id;
};

enum lookup_outcome {
	LOOKUP_OK = 0,
	LOOKUP_NEW,  /* it was not asked for before */
	LOOKUP_FULL, /* LOOKUPS_MAX are there */
};

void lookups_deinit(struct lookups *lookups);

/* Somebody asks for it. 0, LOOKUP_NEW, LOOKUP_FULL, -ENOMEM: @ret is set on the first two. */
int lookups_ask(struct lookups *lookups, const char *id, const char *pod_uid, uint64_t now_ns,
		struct lookup **ret);
/* NULL if it was not asked for; borrowed. */
const struct lookup *lookups_find(const struct lookups *lookups, const char *id);
/* It was tried: the next time is later each time. */
void lookup_tried(struct lookup *lookup, uint64_t now_ns);
/* Whether it is to be tried now. */
bool lookup_due(const struct lookup *lookup, uint64_t now_ns);

/* Forget those that have gone. */
void lookups_sweep(struct lookups *lookups, uint64_t now_ns);

#endif
