/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_CONTENTION_H
#define PODPROF_GOPROFILE_CONTENTION_H

/* Mutex and block profiles: one read of one process as a value, and one series' values to an
 * encoded pprof, as the processes' own runtime/pprof would show them. Runs on the thread that owns
 * the symbolizer. */

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
	int64_t before_contentions; /* of the read before; 0 for a stack that is new */
	int64_t before_delay_ns;
	size_t first_pc; /* into stacks.pcs */
	size_t n_pcs;
};

/* Owns all it has. */
struct contentionsnap {
	bool measured; /* as contention_profile has it */
	struct contentionsnap_record *records;
	size_t n_records;
	struct stacksnap stacks;
};

/**
 * contentionsnap_new()
 * @since_start: the process began in this window: of a first read everything is the window's. Of
 *               any other first read nothing is.
 *
 * Return: 0, -ENOMEM, or what the resolver returned.
 */
int contentionsnap_new(const struct contention_profile *profile,
		       const struct stacksnap_space *space, bool since_start,
		       struct contentionsnap **ret);
void contentionsnap_free(struct contentionsnap *s);
/* Memory held. */
size_t contentionsnap_bytes(const struct contentionsnap *s);

/**
 * contention_report() - build and encode a mutex or block profile
 * @ret: gzip-compressed pprof is appended; its ceiling bounds the size
 *
 * Sample types contentions/count and delay/nanoseconds, period contentions/count 1. A delta leaves
 * out what has not changed. Return: 0; BUF_FULL; -errno.
 */
int contention_report(struct contentionsnap *const *snaps, size_t n_snaps,
		      struct symbolizer *symbolizer, const struct go_profile_report_opts *opts,
		      struct buf *ret, struct go_profile_report_stats *ret_stats);

#endif
