/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_REPORT_H
#define PODPROF_CPU_REPORT_H

/* From folded stacks, on-CPU or off-CPU, to an encoded pprof with names. Runs on the symbolizer's
 * thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolizer.h"

struct buf;
struct fold;
struct labels;
struct symbolizer;

/* Stacks, and the labels of each of their samples; @labels NULL: none. A stack with the name of its
 * thread also has the label PROFILE_THREAD, unless it is in @labels. */
struct cpu_report_part {
	const struct fold *fold;
	const struct labels *labels;
	bool off_cpu;
};

/* The unit of the stacks' values. */
enum cpu_report_kind {
	CPU_REPORT_TIME,    /* ns on a CPU */
	CPU_REPORT_EVENTS,  /* events of a kind */
	CPU_REPORT_OFF_CPU, /* ns off the CPUs; samples are task switches */
	CPU_REPORT_BOTH,    /* parts of CPU_REPORT_TIME, and of CPU_REPORT_OFF_CPU where @off_cpu is
			       set */
};

struct cpu_report_opts {
	enum cpu_report_kind kind;
	const char *event; /* of CPU_REPORT_EVENTS: the name of the sample type */
	uint64_t period;   /* value of a sample; CPU_REPORT_OFF_CPU: 1 */
	uint64_t start_ns; /* wall clock */
	uint64_t duration_ns;
	size_t max_samples; /* as in pprof_opts */
	size_t max_bytes;
	const char *doc_url; /* as in pprof_opts */
	const char *const *comments;
	size_t n_comments;
	uint64_t n_lost; /* samples in no fold's totals, of the kind's main type */
	uint64_t lost_value;
	/* Takes the file of an image with a frame without a name: the separate debug file if the
	 * symbolizer has one, else the image's. All are borrowed. NULL: nobody does */
	void (*unnamed)(void *ctx, uint64_t owner, const char *build_id, int fd);
	void *unnamed_ctx;
	uint64_t owner;	 /* of the stacks, for @unnamed */
	bool for_disk;	 /* as in pprof_opts */
	bool is_learned; /* the caller has called addresses_learn() for several reports together */
};

/* Counters of a report. */
struct cpu_report_stats {
	uint64_t n_samples;
	uint64_t n_left_out;			/* samples beyond a ceiling of the profile */
	uint64_t n_places;			/* distinct frames */
	uint64_t n_unnamed;			/* distinct frames without a function name */
	uint64_t n_missing[SYMBOL_MISSING_MAX]; /* the same by reason */
};

/**
 * cpu_report() - build and encode a CPU profile
 * @ret: the gzip-compressed pprof is appended; the buffer's ceiling bounds the size
 * @ret_stats: set on success
 *
 * Sample types are samples/count and cpu/nanoseconds, the period is cpu/nanoseconds. Events have
 * EVENT/count in place of cpu/nanoseconds. Off-CPU time has delay/nanoseconds and switches/count,
 * behind the other types in a combined profile. Addresses are ELF virtual addresses, and mappings
 * are the file's segments: the same code has the same address in every process of the series. A
 * function of a language runtime is a location without address, in one mapping per runtime.
 * A mapping has functions if all its frames have names. For images with the most samples without
 * names there are comments as described at pprof/unnamed.h, and another comment has the share of
 * complete stacks. Samples beyond a ceiling are one sample with the frame PPROF_REST_NAME, so that
 * sums are right.
 *
 * Return: 0; BUF_FULL; -errno.
 */
int cpu_report(const struct cpu_report_part *parts, size_t n_parts, struct symbolizer *symbolizer,
	       const struct cpu_report_opts *opts, struct buf *ret,
	       struct cpu_report_stats *ret_stats);

#endif
