/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOBSS_H
#define PODPROF_GOHEAP_GOBSS_H

/* Finds the head of a runtime's list of heap records if neither symbols nor code give the
 * address: by the shape of the memory that a variable points to. */

#include <stdint.h>

struct goruntime;
struct maps;
struct memory;

enum gobss_outcome {
	GOBSS_OK = 0,
	GOBSS_ABSENT,	 /* no word points to a record; also before the first record exists */
	GOBSS_AMBIGUOUS, /* several words do, or too many might */
	GOBSS_GONE,
	GOBSS_DENIED,
	GOBSS_OUTCOME_MAX,
};

/**
 * gobss_find() - search the runtime's variables for the head of the list
 * @maps: of the process, all of them
 * @ret:  run-time address of the variable
 *
 * Return: 0, an outcome, -errno.
 */
int gobss_find(const struct goruntime *rt, struct memory *m, const struct maps *maps,
	       uint64_t *ret);

#endif
