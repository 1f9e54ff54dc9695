/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_GOROUTINES_H
#define PODPROF_GOPROFILE_GOROUTINES_H

/* Goroutine profiles: one read of a process as a value, and values as an encoded pprof. Runs
 * on the thread that owns the symbolizer. */

#include <stddef.h>
#include <stdint.h>

#include "goheap/goroutines.h"
#include "goprofile/heap.h"
#include "goprofile/stacksnap.h"

struct buf;
struct goruntime;
struct memory;
struct symbolizer;

struct goroutinesnap_record {
	enum goroutine_status status;
	uint16_t reason; /* index of reasons */
	size_t first_pc; /* into stacks.pcs */
	size_t n_pcs;
};

/**
 * struct goroutinesnap - owns its arrays
 * @n_system: the runtime's own goroutines, left out
 * @n_cut:    stacks without their roots
 */
struct goroutinesnap {
	struct goroutinesnap_record *records;
	size_t n_records;
	size_t cap;
	char **reasons;
	size_t n_reasons;
	size_t reasons_cap;
	struct stacksnap stacks;
	struct goroutines_stats stats;
	uint64_t n_system;
	uint64_t n_cut;
};

/* Returns as goroutines_read(), or an error of the resolver. The stack of a running goroutine is
 * its first function. Goroutines beyond @max_bytes count as left out. */
int goroutinesnap_new(const struct goruntime *rt, struct memory *m,
		      const struct stacksnap_space *space, size_t max_bytes,
		      struct goroutinesnap **ret);
void goroutinesnap_free(struct goroutinesnap *s);
/* Memory held. */
size_t goroutinesnap_bytes(const struct goroutinesnap *s);

/**
 * goroutine_report() - build and encode a goroutine profile
 * @ret: gzip-compressed pprof is appended; the ceiling of @ret bounds the size
 *
 * Sample type goroutine/count, period goroutine/count 1; labels "state" and, for waiting
 * goroutines, "wait_reason". Ignores the delta of @opts.
 *
 * Return: 0; BUF_FULL; -errno.
 */
int goroutine_report(struct goroutinesnap *const *snaps, size_t n_snaps,
		     struct symbolizer *symbolizer, const struct go_profile_report_opts *opts,
		     struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
