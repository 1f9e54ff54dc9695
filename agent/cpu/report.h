/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_REPORT_H
#define PODPROF_CPU_REPORT_H

/* Folded stacks, of samples on or off the CPUs, to an encoded pprof: where stacks meet names. Runs
 * on the thread that owns the symbolizer. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct fold;
struct labels;
struct symbolizer;

/* Stacks, and what is said of each of their samples; @labels NULL: nothing. */
struct cpu_report_part {
	const struct fold *fold;
	const struct labels *labels;
	bool off_cpu;
};

/* What the stacks' values are. */
enum cpu_report_kind {
	CPU_REPORT_TIME,    /* ns on a CPU */
	CPU_REPORT_EVENTS,  /* events of one kind */
	CPU_REPORT_OFF_CPU, /* ns off the CPUs; samples are task switches */
	CPU_REPORT_BOTH,    /* parts of CPU_REPORT_TIME, and of CPU_REPORT_OFF_CPU where @off_cpu is
			       set */
};

struct cpu_report_opts {
	enum cpu_report_kind kind;
	const char *event; /* of CPU_REPORT_EVENTS: the name of the sample type */
	uint64_t period;   /* what one sample stands for; CPU_REPORT_OFF_CPU: 1 */
	uint64_t start_ns; /* wall clock */
	uint64_t duration_ns;
	size_t max_samples; /* as in pprof_opts */
	size_t max_bytes;
	const char *const *comments;
	size_t n_comments;
};

/* What became of the frames, for the counters. */
struct cpu_report_stats {
	uint64_t n_samples;
	uint64_t n_left_out; /* samples that a ceiling of the profile kept out */
	uint64_t n_places;   /* distinct frames */
	uint64_t n_unnamed;  /* of them without a function name */
};

/**
 * cpu_report() - build and encode a CPU profile
 * @ret: gzip-compressed pprof is appended; its ceiling bounds the size
 * @ret_stats: set on success
 *
 * Sample types samples/count and cpu/nanoseconds, period cpu/nanoseconds; for events EVENT/count in
 * place of the latter; delay/nanoseconds and switches/count for time off the CPUs, behind the
 * others where both are in it. Addresses are ELF virtual addresses, in mappings that are the file's
 * segments, so that the same code has the same address in every process of the series. A function
 * of a language runtime is a location without address, in one mapping for the runtime.
 *
 * Return: 0; BUF_FULL; -errno.
 */
int cpu_report(const struct cpu_report_part *parts, size_t n_parts, struct symbolizer *symbolizer,
	       const struct cpu_report_opts *opts, struct buf *ret,
	       struct cpu_report_stats *ret_stats);

#endif
