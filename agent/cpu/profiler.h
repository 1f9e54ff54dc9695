/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_PROFILER_H
#define PODPROF_CPU_PROFILER_H

/*
 * The pipeline of on-CPU and off-CPU samples. The drain thread copies samples from the kernel. The
 * loop finds entity and places in images, and folds by series. At the end of a window a worker
 * names the places and encodes a profile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/export.h"
#include "profile/bpfobj.h"

struct cpu_sampler;
struct cpu_share;
struct discovery;
struct debuginfod;
struct loop;
struct metric_sink;
struct pull_source;
struct root;
struct series;
struct cpu_profiler;

/* Borrowed until cpu_profiler_free(). */
struct cpu_profiler_opts {
	struct loop *loop;
	const struct root *proc;
	const struct root *sys;
	struct discovery *discovery;
	unsigned int rate_hz;
	double off_cpu; /* as in cpu_sampler_opts */
	bool kernel_stacks;
	bool thread_names;	       /* samples have the label PROFILE_THREAD */
	bool task_names;	       /* ... and PROFILE_TASK */
	struct debuginfod *debuginfod; /* NULL: no servers with debug files */
	bool dwarf;		       /* lines and inlined functions of native code */
	enum settings_unwind unwind;
	bool unsafe_kernel;	      /* as in oncpu_opts */
	size_t symbol_bytes;	      /* ceiling of cached symbol tables */
	size_t table_bytes;	      /* ceiling for unwind tables in the kernel */
	struct profile_limits limits; /* of a profile; {0}: profile_limits_max */
	bool for_disk;		      /* as in pprof_opts */
	const char *doc_url;	      /* likewise; borrowed */
	bool pull;		      /* make profiles on demand, too (cpu/http.h) */
	struct cpu_share *pull_share; /* as in cpu_http_opts */
	/* As in cpu_report_opts, with @ctx; called on the thread of reports. */
	void (*unnamed)(void *ctx, uint64_t owner, const char *build_id, int fd);
	/* Takes a finished profile; called on the loop. */
	void (*out)(void *ctx, struct profile *profile);
	void *ctx;
};

/* 0, or -errno with *@ret_why set. */
int cpu_profiler_new(const struct cpu_profiler_opts *opts, struct bpfobj_why *ret_why,
		     struct cpu_profiler **ret);
/* Waits for the running report. Waiting reports are dropped and counted, a window that still waits
 * for names is dropped. */
void cpu_profiler_free(struct cpu_profiler *p);

/* End the window: the folded stacks become profiles of this span (wall clock). The reports start
 * when the metadata of all entities is known, or after ENTITY_PENDING_NS (@wait_ns of
 * cpu_profiler_finish()), and when all files are open, or after three seconds; at the latest at the
 * end of the next window. */
void cpu_profiler_end_window(struct cpu_profiler *p, uint64_t start_ns, uint64_t duration_ns);
/* Stop sampling and take the remaining samples; the caller then ends the last window. @wait_ns: the
 * longest wait of this window for metadata of pending entities. */
void cpu_profiler_finish(struct cpu_profiler *p, uint64_t wait_ns);
/* Reports take the names of functions known so far, also the running one, and so end soon. */
void cpu_profiler_stop_symbols(struct cpu_profiler *p);
/* Number of unfinished reports. */
size_t cpu_profiler_pending(const struct cpu_profiler *p);

/* The series of an entity; NULL: none. */
const struct series *cpu_profiler_series(const struct cpu_profiler *p, const char *entity);
/* Memory of the caches: symbol tables as of the last report, and mappings. */
struct cpu_profiler_caches {
	size_t symbol_bytes;
	size_t address_space_bytes;
};
struct cpu_profiler_caches cpu_profiler_caches(const struct cpu_profiler *p);
/* The profiler's sampler; borrowed. */
const struct cpu_sampler *cpu_profiler_sampler(const struct cpu_profiler *p);
/* Profiles on demand; NULL: not asked for. Borrowed. */
const struct pull_source *cpu_profiler_pull_source(const struct cpu_profiler *p);
/* A metric_collect_fn. */
void cpu_profiler_collect(void *ctx, struct metric_sink *sink);

#endif
