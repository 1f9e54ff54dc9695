// SPDX-License-Identifier: Apache-2.0
/*
 * A process that is no Go program keeps a reader too: an empty one, so that its executable is
 * opened once and not in every window. An exec keeps pid and start time, so the executable's
 * identity is looked at each time.
 */
#include "heapreaders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/nsec.h"
#include "base/root.h"
#include "goheap/goheap.h"
#include "procmap/space.h"
#include "report/heap.h"
#include "report/heapsnap.h"
#include "symbolize/symbolizer.h"

/* Processes with a reader. One more is not read, counted as "full". */
#define HEAP_READERS_MAX 16384

struct heap_reader {
	struct pid_id pid;
	struct pid_exe exe;
	struct goheap *heap;
	size_t bytes;  /* of its records, as counted in heap_readers.bytes */
	bool reopened; /* since the last round: it runs another program */
	bool exact;    /* its allocator's own counters have been read: no estimate from then on */
	bool forced; /* sampling was turned on in this process: never again, whatever it executes */
	unsigned int round;
	UT_hash_handle hh;
};

struct heap_readers {
	const struct root *proc;
	bool force;
	size_t max_bytes;
	size_t bytes; /* of all readers' records */
	unsigned int round;
	struct heap_reader *by_pid;
	struct space_cache *spaces; /* images of the Go programs alone */
	struct symbolizer *symbolizer;
};

static void reader_free(struct heap_readers *all, struct heap_reader *reader)
{
	all->bytes -= reader->bytes;
	HASH_DEL(all->by_pid, reader);
	goheap_free(reader->heap);
	free(reader);
}

static int reader_add(struct heap_readers *all, const struct pid_id *pid, struct heap_reader **ret)
{
	struct heap_reader *reader = calloc(1, sizeof(*reader));
	bool hash_oom = false;

	if (!reader)
		return -ENOMEM;
	reader->pid = *pid;
	HASH_ADD(hh, all->by_pid, pid, sizeof(reader->pid), reader);
	if (hash_oom) {
		free(reader);
		return -ENOMEM;
	}
	*ret = reader;
	return 0;
}

static void reader_account(struct heap_readers *all, struct heap_reader *reader)
{
	size_t bytes = reader->heap ? goheap_bytes(reader->heap) : 0;

	all->bytes = all->bytes - reader->bytes + bytes;
	reader->bytes = bytes;
}

/* The process runs this program now: look at it afresh. */
static int reader_open(struct heap_readers *all, struct heap_reader *reader, struct pid_exe exe)
{
	const struct goheap_opts opts = {
		.proc = all->proc,
		.id = reader->pid,
		.force = all->force,
		.was_forced = reader->forced,
		.max_bytes = all->max_bytes > all->bytes ? all->max_bytes - all->bytes : 1,
	};
	int r;

	reader->reopened = reader->exe.inode != 0 &&
			   (exe.inode != reader->exe.inode || exe.device != reader->exe.device);
	goheap_free(reader->heap);
	reader->heap = NULL;
	reader->exact = false;
	reader->exe = exe;
	r = goheap_new(&opts, &reader->heap);
	reader_account(all, reader);
	return r;
}

/* 0, 1 when there are too many, -errno. */
static int reader_get(struct heap_readers *all, const struct pid_id *pid, struct heap_reader **ret)
{
	struct pid_exe exe = pid_read_exe(all->proc, pid->pid);
	struct heap_reader *reader;
	int r;

	HASH_FIND(hh, all->by_pid, pid, sizeof(*pid), reader);
	if (!reader) {
		if (HASH_COUNT(all->by_pid) >= HEAP_READERS_MAX)
			return 1;
		r = reader_add(all, pid, &reader);
		if (r)
			return r;
	}
	reader->round = all->round;
	*ret = reader;
	if (reader->heap && exe.inode == reader->exe.inode && exe.device == reader->exe.device)
		return 0;
	return reader_open(all, reader, exe);
}

static void target_describe(struct heap_target *target, const struct goheap *heap)
{
	const struct goruntime *runtime = goheap_runtime(heap);

	/* of a process that has gone before anybody looked nothing is known, nor that it was Go */
	target->is_go = runtime || goheap_state(heap) == GORUNTIME_DENIED;
	if (runtime)
		snprintf(target->go_version, sizeof(target->go_version), "%s",
			 runtime->file.version);
	target->reading.state = goruntime_state_name(goheap_state(heap));
}

/* Where the pcs of one process are. */
struct snap_space {
	struct space_cache *spaces;
	const struct pid_id *pid;
};

static int on_resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct snap_space *s = ctx;

	return space_cache_resolve(s->spaces, s->pid, pc, ret);
}

/* Whether the process began in the window: then all that it has allocated is the window's. */
static bool began_since(uint64_t window_start_ns, const struct pid_id *pid)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t age_ns = nsec_boot() - pid->start_ticks * tick_ns;

	return age_ns <= nsec_wall() - window_start_ns;
}

static int target_snap(struct heap_readers *all, struct heap_target *target,
		       const struct heap_reader *reader, const struct goheap_profile *profile,
		       uint64_t window_start_ns)
{
	struct snap_space space = {all->spaces, &target->pid};
	const struct heapsnap_opts opts = {
		.space = {on_resolve, &space},
		.forced = reader->forced,
		.since_start = began_since(window_start_ns, &target->pid),
	};

	return heapsnap_new(profile, &opts, &target->snap);
}

/* What the allocator has counted itself. It is there whether the profile is or not. */
static void target_exact(struct heap_target *target, struct heap_reader *reader)
{
	struct goalloc_reading *to = &target->reading;
	struct gototals totals;
	uint64_t cycles;

	if (goheap_cycles(reader->heap, &cycles) == 0)
		goalloc_set(to, GOALLOC_GC_CYCLES, cycles);
	if (goheap_exact(reader->heap, &totals) == GOTOTALS_OK) {
		reader->exact = true;
		goalloc_set(to, GOALLOC_ALLOC_BYTES, totals.alloc_bytes);
		goalloc_set(to, GOALLOC_ALLOC_OBJECTS, totals.alloc_objects);
		goalloc_set(to, GOALLOC_HEAP_BYTES, totals.alloc_bytes - totals.free_bytes);
		goalloc_set(to, GOALLOC_HEAP_OBJECTS, totals.alloc_objects - totals.free_objects);
	}
	to->source = reader->exact ? "runtime" : "profile";
}

static void target_totals(struct heap_target *target, const struct heap_reader *reader,
			  const struct goheap_profile *profile)
{
	struct goheap_totals totals;

	goheap_totals(profile, &totals);
	goalloc_set(&target->reading, GOALLOC_INUSE_BYTES, (uint64_t)totals.inuse.bytes);
	goalloc_set(&target->reading, GOALLOC_INUSE_OBJECTS, (uint64_t)totals.inuse.objects);
	if (reader->exact)
		return;
	goalloc_set(&target->reading, GOALLOC_ALLOC_BYTES, (uint64_t)totals.alloc.bytes);
	goalloc_set(&target->reading, GOALLOC_ALLOC_OBJECTS, (uint64_t)totals.alloc.objects);
}

/* Over the ceiling of all together: what this process had is forgotten, and read as if for the
 * first time in the next round, with what room there is then. */
static void reader_shed(struct heap_readers *all, struct heap_reader *reader, bool *ret_full)
{
	if (all->bytes <= all->max_bytes)
		return;
	goheap_free(reader->heap);
	reader->heap = NULL;
	reader_account(all, reader);
	*ret_full = true;
}

static int target_read(struct heap_readers *all, struct heap_target *target,
		       struct heap_reader *reader, uint64_t window_start_ns)
{
	struct goheap_profile profile;
	int state = goheap_read(reader->heap, &profile), r;

	reader_account(all, reader);
	reader->forced |= goheap_was_forced(reader->heap);
	target_describe(target, reader->heap);
	target->reading.restarted = reader->reopened;
	reader->reopened = false;
	target_exact(target, reader);
	if (state != GORUNTIME_OK && state != GORUNTIME_FORCED)
		return state < 0 ? state : 0;
	target_totals(target, reader, &profile);
	r = target_snap(all, target, reader, &profile, window_start_ns);
	reader_shed(all, reader, &target->full);
	return r;
}

int heap_readers_read(struct heap_readers *all, uint64_t window_start_ns,
		      struct heap_target *target)
{
	struct heap_reader *reader;
	int r = reader_get(all, &target->pid, &reader);

	if (r > 0) {
		target->full = true;
		return 0;
	}
	if (r)
		return r;
	if (goheap_state(reader->heap) == GORUNTIME_NO_RUNTIME)
		return 0;
	return target_read(all, target, reader, window_start_ns);
}

int heap_readers_encode(struct heap_readers *all, struct heapsnap **snaps, size_t n,
			const struct heap_report_opts *opts, struct buf *ret,
			struct heap_report_stats *ret_stats)
{
	int r = heap_report(snaps, n, all->symbolizer, opts, ret, ret_stats);

	symbolizer_release(all->symbolizer);
	return r;
}

struct heap_caches heap_readers_end_round(struct heap_readers *all)
{
	struct heap_reader *reader, *next;

	HASH_ITER(hh, all->by_pid, reader, next)
		if (reader->round != all->round)
			reader_free(all, reader);
	all->round++;
	space_cache_sweep(all->spaces);
	return (struct heap_caches){
		.symbol_bytes = symbolizer_bytes(all->symbolizer),
		.space_bytes = space_cache_bytes(all->spaces),
		.record_bytes = all->bytes,
	};
}

int heap_readers_new(const struct heap_readers_opts *opts, struct heap_readers **ret)
{
	struct symbolizer_opts symbols = {.proc = opts->proc, .cache_bytes = opts->symbol_bytes};
	struct heap_readers *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->proc = opts->proc;
	all->force = opts->force;
	all->max_bytes = opts->heap_bytes;
	r = space_cache_new(opts->proc, &all->spaces);
	if (!r)
		r = symbolizer_new(&symbols, &all->symbolizer);
	if (r)
		heap_readers_free(all);
	else
		*ret = all;
	return r;
}

void heap_readers_free(struct heap_readers *all)
{
	struct heap_reader *reader, *next;

	if (!all)
		return;
	HASH_ITER(hh, all->by_pid, reader, next)
		reader_free(all, reader);
	symbolizer_free(all->symbolizer);
	space_cache_free(all->spaces);
	free(all);
}
