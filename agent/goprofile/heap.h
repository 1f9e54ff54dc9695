/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_HEAP_H
#define PODPROF_GOPROFILE_HEAP_H

/* Encodes a series' Go heaps as pprof, equal to the output of the processes' own
 * runtime/pprof. Runs on the thread that owns the symbolizer. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct heapsnap;
struct symbolizer;

struct go_profile_report_opts {
	/* true: allocations since the read before, without zero samples, for receivers that add
	 * up windows. false: all allocations since the start, for files. In-use values are the same
	 * in both. */
	bool delta;
	uint64_t time_ns;     /* wall clock; for a delta the window's start */
	uint64_t duration_ns; /* for a delta */
	/* Snapshots beyond the first @n_plus are subtracted, for the difference of two reads. 0:
	 * all are added. Samples without a difference are left out. */
	size_t n_plus;
	const char *default_type; /* as in pprof_opts */
	const char *doc_url;	  /* likewise */
	size_t max_samples;	  /* as in pprof_opts */
	size_t max_bytes;
};

/* The outcomes of the records, for the counters. */
struct go_profile_report_stats {
	uint64_t n_records;
	uint64_t n_empty;    /* left out of a delta */
	uint64_t n_left_out; /* left out by a ceiling of the profile */
	uint64_t n_places;   /* distinct return addresses */
	uint64_t n_unnamed;  /* distinct return addresses without a function name */
};

/**
 * heap_report() - build and encode a heap profile
 * @snaps: of the processes of a series
 * @ret:   gzip-compressed pprof is appended; the ceiling of @ret bounds the size
 * @ret_stats: set on success
 *
 * Sample types alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes;
 * period space/bytes, the sampling rate of the first process; the objects' size as label "bytes".
 * Values are unsampled. Addresses are as in cpu_report().
 *
 * Return: 0; BUF_FULL; -errno.
 */
int heap_report(struct heapsnap *const *snaps, size_t n_snaps, struct symbolizer *symbolizer,
		const struct go_profile_report_opts *opts, struct buf *ret,
		struct go_profile_report_stats *ret_stats);

#endif
