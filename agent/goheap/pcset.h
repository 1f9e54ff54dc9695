/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_PCSET_H
#define PODPROF_GOHEAP_PCSET_H

/* Numbers for distinct return addresses, from 0 on, in order of first appearance. */

#include <stddef.h>
#include <stdint.h>

struct pcset {
	uint64_t *pcs; /* by number */
	size_t n;
	size_t cap;
	uint32_t *slots; /* number plus one; 0 is free; at most half full */
	size_t n_slots;	 /* a power of two */
};

/* {0} is an empty set. */
void pcset_deinit(struct pcset *set);
/* 0 or -ENOMEM. */
int pcset_number(struct pcset *set, uint64_t pc, uint32_t *ret);
/* Memory held. */
size_t pcset_bytes(const struct pcset *set);

#endif
