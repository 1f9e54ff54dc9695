/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_DEFERRED_UNWIND_H
#define PODPROF_CPU_DEFERRED_UNWIND_H

/*
 * The walk over stack dumps (profile/stack_dump.h) in the agent. BPF dumps a stack if the process
 * is still unknown to BPF or an image lacks its unwind table. The dump waits for the process's
 * files and for the tables, and then becomes an ordinary sample.
 *
 * BPF dumps the stack of an off-CPU wait at its start. The walked frames are kept until the thread
 * returns. Then the waiting time arrives as a sample with the dump's id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/sample.h"
#include "profile/stack_dump.h"

struct address_space_cache;
struct deferred_unwind;
struct discovery;
struct metric_sink;
struct unwind_publisher;

/* Bytes of waiting stack dumps: about 2,000 dumps of 8 KiB, the samples of two CPUs in 10 s.
 * Reached: `podprof_deferred_stacks_total{outcome="full"}`: the process with the most bytes loses
 * its oldest dumps, up to half, which are walked with the tables of that moment. */
#define DEFERRED_UNWIND_BYTES_MAX   ((size_t)16 << 20)
/* Bytes of walked stacks of off-CPU threads: about 8,000 stacks. Reached:
 * `podprof_deferred_stacks_total{outcome="off_cpu"}`: the oldest stacks are dropped, and those
 * samples keep the frame pointer walk. */
#define DEFERRED_UNWIND_OFF_CPU_MAX ((size_t)4 << 20)
/* The longest wait for a table. Then the stack is walked with the present tables, counted as
 * "expired". The table of a file of 30 MB takes 15 s on a busy node, with the CPU request of the
 * Helm chart. The process history keeps ended processes 5 s longer (PROCESS_HISTORY_KEEP_NS). */
#define DEFERRED_UNWIND_WAIT_NS	    (15 * NSEC_PER_SEC)

/**
 * struct deferred_unwind_opts - borrowed until deferred_unwind_free()
 * @discovery: finds the owners of samples
 * @fn: receives the samples, with their kind and the time (boot clock) of the dump
 */
struct deferred_unwind_opts {
	struct bpfobj_stack_dumps maps;
	struct address_space_cache *spaces;
	struct unwind_publisher *publisher;
	struct discovery *discovery;
	void (*fn)(void *ctx, enum stack_dump_kind kind, const struct sample *sample,
		   uint64_t time_ns);
	void *ctx;
};

int deferred_unwind_new(const struct deferred_unwind_opts *opts, struct deferred_unwind **ret);
void deferred_unwind_free(struct deferred_unwind *du);

/* The dumps, for the drain thread's stack_dumps_fetch(). */
struct stack_dumps *deferred_unwind_dumps(const struct deferred_unwind *du);
/* Read the ring, and walk and deliver the complete stacks from before @until_ns (boot clock). The
 * sideband records for later dumps may still be missing. It walks until @end_ns (monotonic), and at
 * least one dump. 0; DEFERRED_UNWIND_MORE: some are left to be walked; -errno. */
int deferred_unwind_tick(struct deferred_unwind *du, uint64_t until_ns, uint64_t end_ns);
enum deferred_unwind_result { DEFERRED_UNWIND_OK = 0, DEFERRED_UNWIND_MORE };
/* A thread has returned: @sample is the wait, with a dump_id. True: the wait is delivered with the
 * dump's stack, now or later. False: the dump is unknown or dropped. */
bool deferred_unwind_back(struct deferred_unwind *du, const struct sample *sample);
/* The table of @exe is ready, or will never exist; @exe 0: several tables. With @round not 0: early
 * rules of @exe are known up to this round, for the stacks that wait for these. Marks the stacks
 * for deferred_unwind_retry(). */
void deferred_unwind_ready(struct deferred_unwind *du, uint16_t exe, uint32_t round);
/* Files of @pid are open, or will not be: marks the waiting stacks of @pid for
 * deferred_unwind_retry(). */
void deferred_unwind_opened(struct deferred_unwind *du, uint64_t pid);
/* Walks the marked stacks until @end_ns (monotonic), and at least one. True: some are left. */
bool deferred_unwind_retry(struct deferred_unwind *du, uint64_t end_ns);
/* At the end: walk and deliver all waiting stacks with the present tables. Stacks of threads that
 * have not returned are dropped, counted as "off_cpu". */
void deferred_unwind_flush(struct deferred_unwind *du);

/* Number of waiting stack dumps, without the dumps of threads that have not returned yet. */
size_t deferred_unwind_pending(const struct deferred_unwind *du);
/* A metric_collect_fn: podprof_deferred_stacks, podprof_deferred_stacks_pending, and
 * podprof_stack_dumps. */
void deferred_unwind_collect(void *ctx, struct metric_sink *sink);

#endif
