/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_HEAPSNAP_H
#define PODPROF_GOPROFILE_HEAPSNAP_H

/*
 * One read of a process's heap, as a value. The value outlives the reader and the process, and
 * another thread may name the addresses (heap.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprofile/stacksnap.h"

struct goheap_profile;

struct heapsnap_opts {
	struct stacksnap_space space;
	bool forced; /* podprof has turned sampling on in this process */
	/* The process began in this window, so all allocations of a first read belong to the
	 * window. Otherwise no allocations of a first read do, because the time of the allocations
	 * is unknown. */
	bool since_start;
};

/* Counts are of samples. */
struct heapsnap_record {
	uint64_t size;
	uint64_t allocs; /* published */
	uint64_t inuse;	 /* published */
	uint64_t fresh;	 /* all allocations up to this read */
	uint64_t before; /* all allocations up to the read before */
	size_t first_pc; /* into stacks.pcs */
	size_t n_pcs;
};

/**
 * struct heapsnap - owns its arrays
 * @blank_label: as in goheap_profile
 */
struct heapsnap {
	int64_t rate;
	bool blank_label;
	bool forced;
	struct heapsnap_record *records;
	size_t n_records;
	struct stacksnap stacks;
};

/* 0, -ENOMEM, or an error of the resolver. */
int heapsnap_new(const struct goheap_profile *profile, const struct heapsnap_opts *opts,
		 struct heapsnap **ret);
void heapsnap_free(struct heapsnap *s);
/* Memory held. */
size_t heapsnap_bytes(const struct heapsnap *s);

#endif
