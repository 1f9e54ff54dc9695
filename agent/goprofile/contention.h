/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_CONTENTION_H
#define PODPROF_GOPROFILE_CONTENTION_H

/* Mutex and block profiles: one read of a process as a value, and the values of a series as
 * an encoded pprof, equal to the output of the processes' own runtime/pprof. Runs on the thread
 * that owns the symbolizer. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprofile/heap.h"
#include "goprofile/stacksnap.h"

struct buf;
struct contention_profile;
struct symbolizer;

struct contentionsnap_record {
	int64_t contentions;
	int64_t delay_ns;
	int64_t before_contentions; /* of the read before; 0 for a new stack */
	int64_t before_delay_ns;
	size_t first_pc; /* into stacks.pcs */
	size_t n_pcs;
};

/* Owns its arrays. */
struct contentionsnap {
	bool measured; /* as in contention_profile */
	struct contentionsnap_record *records;
	size_t n_records;
	struct stacksnap stacks;
};

/**
 * contentionsnap_new() - copy one read
 * @since_start: the process began in this window, so all counts of a first read belong to the
 *               window. Otherwise no counts of a first read do.
 *
 * Return: 0, -ENOMEM, or an error of the resolver.
 */
int contentionsnap_new(const struct contention_profile *profile,
		       const struct stacksnap_space *space, bool since_start,
		       struct contentionsnap **ret);
void contentionsnap_free(struct contentionsnap *s);
/* Memory held. */
size_t contentionsnap_bytes(const struct contentionsnap *s);

/**
 * contention_report() - build and encode a mutex or block profile
 * @ret: gzip-compressed pprof is appended; the ceiling of @ret bounds the size
 *
 * Sample types contentions/count and delay/nanoseconds, period contentions/count 1. A delta omits
 * unchanged records.
 *
 * Return: 0; BUF_FULL; -errno.
 */
int contention_report(struct contentionsnap *const *snaps, size_t n_snaps,
		      struct symbolizer *symbolizer, const struct go_profile_report_opts *opts,
		      struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
