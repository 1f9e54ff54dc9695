/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_METADATA_LOOKUP_H
#define PODPROF_METADATA_LOOKUP_H

/* The table of requested containers: their runtime's state, and the time of the next attempt for
 * unknown ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/nsec.h"
#include "metadata/container.h"

/* Containers at a time, as many as entities. Reached: only the names from servers. */
#define LOOKUPS_MAX	       8192
/* First and longest interval between attempts. */
#define LOOKUP_FIRST_NS	       (250 * NSEC_PER_MSEC)
#define LOOKUP_LONGEST_NS      (10 * NSEC_PER_SEC)
/* Longest interval between reads of the runtimes' state. This state is there before a container
 * runs, and a read that finds nothing tries 40 paths. */
#define LOOKUP_READ_LONGEST_NS (600 * NSEC_PER_SEC)
/* A container without a request for this long has gone. The labels of a settled node are looked at
 * every 5 to 9 s (naming.c). */
#define LOOKUP_GONE_NS	       (15 * NSEC_PER_SEC)

/**
 * struct lookup - one container
 * @id, @pod_uid: as in the cgroup path; "" for none
 * @state:        from the runtime; NULL if nothing is found (yet)
 * @missing:      a source may still know more: try again
 * @outcome:      the last answer
 * @first_ns, @asked_ns: monotonic; first and last request
 * @due_ns:       time of the next attempt
 * @read_ns:      time from which an attempt reads the runtime's state, too
 * @round:        the caller's count at the first request: orders containers by their appearance
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
	uint64_t read_ns;
	uint64_t round;

	uint64_t wait_ns, read_wait_ns;
	UT_hash_handle hh;
	char text[];
};

struct lookups {
	struct lookup *by_id;
};

enum lookup_outcome {
	LOOKUP_OK = 0,
	LOOKUP_NEW,  /* the first request for this container */
	LOOKUP_FULL, /* the table is full (LOOKUPS_MAX) */
};

void lookups_deinit(struct lookups *lookups);

/* Records a request. The first request with a pod's UID begins the attempts anew, and later ones
 * without one have it, too. 0, LOOKUP_NEW, LOOKUP_FULL, -ENOMEM. On 0 and LOOKUP_NEW, *@ret borrows
 * from the table. */
int lookups_ask(struct lookups *lookups, const char *id, const char *pod_uid, uint64_t now_ns,
		struct lookup **ret);
/* NULL: no request for this container. Borrowed. */
const struct lookup *lookups_find(const struct lookups *lookups, const char *id);
/* Records an attempt: the interval to the next one doubles. */
void lookup_tried(struct lookup *lookup, uint64_t now_ns);
/* True if an attempt is due. */
bool lookup_due(const struct lookup *lookup, uint64_t now_ns);
/* Records a read of the runtime's state: the interval to the next one doubles. */
void lookup_read(struct lookup *lookup, uint64_t now_ns);

/* Forgets containers without recent requests. */
void lookups_sweep(struct lookups *lookups, uint64_t now_ns);

#endif
