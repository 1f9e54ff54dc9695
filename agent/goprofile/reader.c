// SPDX-License-Identifier: Apache-2.0
/*
 * In rounds each process has an entry here, with the readers of its runtimes. Processes other than
 * Go have an entry, too, so that not every window examines such processes. Without rounds, the
 * readers of a process are freed after the read, and only snapshots count towards the ceiling.
 */
#include "goprofile/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/nsec.h"
#include "base/root.h"
#include "goheap/gocore.h"
#include "goheap/goimages.h"
#include "goheap/goruntimes.h"
#include "goprofile/contention.h"
#include "goprofile/goroutines.h"
#include "goprofile/heap.h"
#include "goprofile/heapsnap.h"
#include "goprofile/process.h"
#include "procmap/address_space.h"
#include "procmap/memory.h"
#include "symbolize/symbolizer.h"

/* Processes with an entry. Reached:
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`. */
#define GO_PROFILE_READER_PROCESSES_MAX 16384

struct cached_process {
	struct go_process process;
	unsigned int round;
	UT_hash_handle hh; /* by process.pid */
};

/* Bytes of the snapshots of a container, as a multiple of the ceiling on kept data. The snapshot of
 * a process is smaller than its records. But records just below the ceiling exceed it together with
 * their snapshot. Then the records of each process are freed after the read, and the snapshots of
 * all processes wait for the last read. Snapshots beyond this limit are dropped. */
#define SNAPSHOTS_FACTOR 2

/* Bytes read of the processes of a container in a round, as a multiple of the ceiling on kept data;
 * a call counts as CALL_BYTES. Records within the ceiling take one or two of these, and the other
 * reads of a process 60 KiB. But lists that turn out to be forged, or too long, are read again in
 * each round, in each process. Beyond, the other processes are not read. */
#define READS_FACTOR 32
#define CALL_BYTES   4096u

struct go_profile_reader {
	struct go_profile_reader_opts opts;
	struct root proc; /* own: an abandoned thread keeps its reader */
	size_t bytes;	  /* used part of opts.record_bytes */
	/* in rounds, since go_profile_reader_begin() */
	size_t snap_bytes;
	uint64_t read_bytes;
	unsigned int round;
	struct cached_process *by_pid;
	struct goimages *images;
	struct address_space_cache *spaces; /* images of Go programs only */
	struct symbolizer *symbolizer;
};

static void cached_free(struct go_profile_reader *reader, struct cached_process *cached)
{
	HASH_DEL(reader->by_pid, cached);
	go_process_deinit(&cached->process);
	free(cached);
}

static int cached_add(struct go_profile_reader *reader, const struct go_profile_target *target,
		      struct cached_process **ret)
{
	struct cached_process *cached = calloc(1, sizeof(*cached));
	bool hash_oom = false;

	if (!cached)
		return -ENOMEM;
	go_process_init(&cached->process, &target->pid);
	if (target->first_number)
		cached->process.n_numbers = target->first_number - 1;
	HASH_ADD(hh, reader->by_pid, process.pid, sizeof(cached->process.pid), cached);
	if (hash_oom) {
		free(cached);
		return -ENOMEM;
	}
	*ret = cached;
	return 0;
}

/* 0, 1 if there are too many, -errno. */
static int cached_get(struct go_profile_reader *reader, const struct go_profile_target *target,
		      struct go_process **ret)
{
	struct cached_process *cached;
	int r = 0;

	HASH_FIND(hh, reader->by_pid, &target->pid, sizeof(target->pid), cached);
	if (!cached && HASH_COUNT(reader->by_pid) >= GO_PROFILE_READER_PROCESSES_MAX)
		return 1;
	if (!cached)
		r = cached_add(reader, target, &cached);
	if (r)
		return r;
	cached->round = reader->round;
	*ret = &cached->process;
	return 0;
}

/* Subtract the bytes of a process from the sum before changes. */
static void discount(struct go_profile_reader *reader, const struct go_process *p)
{
	for (size_t i = 0; i < p->n_runtimes; i++)
		reader->bytes -= p->runtimes[i].bytes;
}

static void count(struct go_profile_reader *reader, struct go_process *p)
{
	for (size_t i = 0; i < p->n_runtimes; i++) {
		struct go_process_runtime *runtime = &p->runtimes[i];

		runtime->bytes = runtime->heap ? goheap_bytes(runtime->heap) : 0;
		reader->bytes += runtime->bytes;
	}
}

/* Bytes available for the records of another runtime. */
static size_t room(const struct go_profile_reader *reader)
{
	size_t max = reader->opts.record_bytes;

	return max > reader->bytes ? max - reader->bytes : 1;
}

/* ---------------------------------------------------------------- one snapshot */

/* State of the read of a runtime. @core: the runtime belongs to this core and not to a process. */
struct reading {
	struct go_profile_reader *reader;
	struct go_process *process;
	struct gocore *core;
	struct goheap *heap;
	struct stacksnap_space space;
	bool since_start;
};

static int resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct reading *reading = ctx;

	if (reading->core)
		return gocore_resolve(reading->core, pc, ret);
	if (goheap_resolve(reading->heap, pc, ret))
		return 0;
	return address_space_cache_resolve(reading->reader->spaces, &reading->process->pid, pc,
					   ret);
}

static int read_heap(struct reading *reading, struct go_profile_found *found)
{
	struct heapsnap_opts opts = {.space = reading->space, .since_start = reading->since_start};
	struct goheap_profile profile;
	struct heapsnap *snap;
	int state = goheap_read(reading->heap, &profile), r;

	if (state != GORUNTIME_OK && state != GORUNTIME_FORCED)
		return state;
	goheap_totals(&profile, &found->totals);
	opts.forced = state == GORUNTIME_FORCED;
	r = heapsnap_new(&profile, &opts, &snap);
	if (r)
		return r;
	found->snaps[GO_PROFILE_HEAP] = snap;
	return state;
}

static int read_contention(struct reading *reading, enum go_profile_kind kind,
			   struct go_profile_found *found)
{
	struct contention_profile profile;
	struct contentionsnap *snap;
	int r = goheap_contention(reading->heap, kind, &profile);

	if (!r)
		r = contentionsnap_new(&profile, &reading->space, reading->since_start, &snap);
	if (!r)
		found->snaps[kind] = snap;
	return r;
}

static int read_goroutines(struct reading *reading, struct go_profile_found *found)
{
	struct memory *memory = goheap_memory(reading->heap);
	struct goroutinesnap *snap;
	int r;

	if (!memory)
		return (int)goheap_state(reading->heap);
	r = goroutinesnap_new(goheap_runtime(reading->heap), memory, &reading->space,
			      room(reading->reader), &snap);
	if (!r)
		found->snaps[GO_PROFILE_GOROUTINE] = snap;
	return r;
}

static int kind_read(struct reading *reading, enum go_profile_kind kind,
		     struct go_profile_found *found)
{
	switch (kind) {
	case GO_PROFILE_HEAP:
		return read_heap(reading, found);
	case GO_PROFILE_GOROUTINE:
		return read_goroutines(reading, found);
	default:
		return read_contention(reading, kind, found);
	}
}

static size_t snap_bytes(enum go_profile_kind kind, const void *snap)
{
	switch (kind) {
	case GO_PROFILE_HEAP:
		return heapsnap_bytes(snap);
	case GO_PROFILE_GOROUTINE:
		return goroutinesnap_bytes(snap);
	default:
		return contentionsnap_bytes(snap);
	}
}

void go_profile_found_drop(struct go_profile_found *found, enum go_profile_kind kind)
{
	switch (kind) {
	case GO_PROFILE_HEAP:
		heapsnap_free(found->snaps[kind]);
		break;
	case GO_PROFILE_GOROUTINE:
		goroutinesnap_free(found->snaps[kind]);
		break;
	default:
		contentionsnap_free(found->snaps[kind]);
	}
	found->snaps[kind] = NULL;
}

/* A goruntime_state or -errno. The mappings that name the records are read after the records: if
 * the process has left the program by then, the mappings are another program's. */
static int snap_read(struct reading *reading, enum go_profile_kind kind,
		     struct go_profile_found *found)
{
	int state = kind_read(reading, kind, found);
	int r = found->snaps[kind] ? goheap_check(reading->heap) : 0;

	if (!r)
		return state;
	go_profile_found_drop(found, kind);
	return r;
}

/* Count a new snapshot, or drop it for lack of room. False if it was dropped. */
static bool snap_keep(struct go_profile_reader *reader, enum go_profile_kind kind,
		      struct go_profile_found *found)
{
	size_t n = snap_bytes(kind, found->snaps[kind]);

	if (!reader->opts.rounds) {
		reader->bytes += n;
		return true;
	}
	if (reader->snap_bytes + n > SNAPSHOTS_FACTOR * reader->opts.record_bytes) {
		go_profile_found_drop(found, kind);
		return false;
	}
	reader->snap_bytes += n;
	return true;
}

/* ---------------------------------------------------------------- one runtime */

/* Read the allocator's own counters, which exist with or without a profile. */
static void read_exact(struct go_profile_found *found, struct go_process_runtime *runtime)
{
	struct goalloc_reading *to = &found->reading;
	struct gototals totals;
	uint64_t cycles;

	if (goheap_cycles(runtime->heap, &cycles) == 0)
		goalloc_set(to, GOALLOC_GC_CYCLES, cycles);
	if (goheap_exact(runtime->heap, &totals) == GOTOTALS_OK) {
		runtime->exact = true;
		goalloc_set(to, GOALLOC_ALLOC_BYTES, totals.alloc_bytes);
		goalloc_set(to, GOALLOC_ALLOC_OBJECTS, totals.alloc_objects);
		goalloc_set(to, GOALLOC_HEAP_BYTES, totals.alloc_bytes - totals.free_bytes);
		goalloc_set(to, GOALLOC_HEAP_OBJECTS, totals.alloc_objects - totals.free_objects);
	}
	to->source = runtime->exact ? "runtime" : "profile";
}

static int read_gauges(struct go_profile_found *found, const struct go_process_runtime *runtime)
{
	struct goalloc_reading *to = &found->reading;
	struct goheap_gauges gauges;
	int r = goheap_gauges(runtime->heap, &gauges);

	if (r)
		return r;
	if (gauges.has_pacer) {
		goalloc_set(to, GOALLOC_NEXT_GC_BYTES, gauges.pacer.next_gc);
		goalloc_set(to, GOALLOC_LIVE_BYTES, gauges.pacer.marked);
	}
	if (gauges.has_pacer && gauges.pacer.has_memory) {
		goalloc_set(to, GOALLOC_SPANS_BYTES, gauges.pacer.inuse);
		goalloc_set(to, GOALLOC_SYS_BYTES, gauges.pacer.sys);
		goalloc_set(to, GOALLOC_RELEASED_BYTES, gauges.pacer.released);
	}
	if (gauges.has_goroutines)
		goalloc_set(to, GOALLOC_GOROUTINES, gauges.goroutines);
	return 0;
}

static void take_totals(struct go_profile_found *found, const struct go_process_runtime *runtime)
{
	const struct goheap_totals *totals = &found->totals;

	goalloc_set(&found->reading, GOALLOC_INUSE_BYTES, (uint64_t)totals->inuse.bytes);
	goalloc_set(&found->reading, GOALLOC_INUSE_OBJECTS, (uint64_t)totals->inuse.objects);
	if (runtime->exact)
		return;
	goalloc_set(&found->reading, GOALLOC_ALLOC_BYTES, (uint64_t)totals->alloc.bytes);
	goalloc_set(&found->reading, GOALLOC_ALLOC_OBJECTS, (uint64_t)totals->alloc.objects);
}

/* As take_known() of process.c tells the runtimes of a process apart. */
static uint64_t mark_of(const struct go_process_runtime *runtime)
{
	const uint64_t file = hash_words(runtime->id.device, runtime->id.inode);
	const uint64_t mark = hash_words(file, runtime->bias);

	return mark ? mark : 1;
}

static int read_counters(struct go_profile_found *found, struct go_process_runtime *runtime)
{
	int r;

	found->reading.mark = mark_of(runtime);
	found->reading.state = goruntime_state_name(found->state);
	read_exact(found, runtime);
	r = read_gauges(found, runtime);
	if (found->snaps[GO_PROFILE_HEAP])
		take_totals(found, runtime);
	return r;
}

static void describe(struct go_profile_found *found, struct go_process_runtime *runtime, int state)
{
	const struct goruntime *rt = goheap_runtime(runtime->heap);

	found->number = runtime->number;
	found->state = (enum goruntime_state)state;
	found->news = found->state != runtime->told;
	runtime->told = found->state;
	found->forced = goheap_force_outcome(runtime->heap);
	if (rt)
		snprintf(found->go_version, sizeof(found->go_version), "%s", rt->file.version);
}

static uint64_t cost(const struct memory *m)
{
	return m ? m->n_bytes + m->n_calls * CALL_BYTES : 0;
}

/* Read all kinds. Sets *@ret_full if there was no room for one. The state is that of the first
 * kind. Kinds that the program does not record, or that cannot be read, have no profile. */
static int runtime_read(struct reading *reading, struct go_process_runtime *runtime, bool force,
			struct go_profile_found *found, bool *ret_full)
{
	struct go_profile_reader *reader = reading->reader;
	const struct memory *memory = goheap_memory(runtime->heap);
	int state = GORUNTIME_STATE_MAX, r = 0, err;

	reader->read_bytes -= cost(memory);
	reading->heap = runtime->heap;
	reading->space = (struct stacksnap_space){resolve, reading};
	goheap_set_force(runtime->heap, force && go_process_may_force(reading->process));
	goheap_set_max_bytes(runtime->heap, room(reader));
	for (int i = 0; r >= 0 && i < GO_PROFILE_KIND_MAX; i++) {
		enum go_profile_kind kind = (enum go_profile_kind)i;

		if (!(reader->opts.kinds & 1u << kind))
			continue;
		r = snap_read(reading, kind, found);
		if (state == GORUNTIME_STATE_MAX)
			state = r < 0 ? (int)goheap_state(runtime->heap) : r;
		if (found->snaps[kind] && !snap_keep(reader, kind, found))
			*ret_full = true;
	}
	describe(found, runtime, state);
	err = goheap_was_forced(runtime->heap) ? go_process_forced(reading->process, runtime) : 0;
	if (!err && reader->opts.rounds)
		err = read_counters(found, runtime);
	reader->read_bytes += cost(memory);
	return r < 0 ? r : err;
}

/* ---------------------------------------------------------------- one process */

void go_profile_target_deinit(struct go_profile_target *target)
{
	for (size_t i = 0; i < target->n_found; i++)
		for (int kind = 0; kind < GO_PROFILE_KIND_MAX; kind++)
			go_profile_found_drop(&target->found[i], (enum go_profile_kind)kind);
	free(target->found);
	target->found = NULL;
	target->n_found = 0;
}

static int target_alloc(struct go_profile_target *target, size_t n)
{
	go_profile_target_deinit(target);
	target->found = calloc(n + 1, sizeof(*target->found));
	return target->found ? 0 : -ENOMEM;
}

/* Report a process that podprof may not read. */
static int target_denied(struct go_profile_target *target, struct go_process *p)
{
	int r = target_alloc(target, 1);

	if (r)
		return r;
	target->found[0].news = !p->told;
	p->told = true;
	target->found[0].state = GORUNTIME_DENIED;
	target->found[0].forced = FORCE_OUTCOME_MAX;
	target->found[0].reading.state = goruntime_state_name(GORUNTIME_DENIED);
	target->found[0].reading.source = "profile";
	target->n_found = 1;
	return 0;
}

/* Read all runtimes, also after a failure of one. */
static int target_read(struct reading *reading, struct go_profile_target *target)
{
	struct go_process *p = reading->process;
	int r = target_alloc(target, p->n_runtimes), first = r;

	for (size_t i = 0; target->found && i < p->n_runtimes; i++) {
		struct go_process_runtime *runtime = &p->runtimes[i];

		if (!runtime->heap)
			continue;
		r = runtime_read(reading, runtime, target->force, &target->found[target->n_found++],
				 &target->full);
		first = first ? first : r;
		/* free its records for the next runtime; keep a reader of an ended process for
		 * go_process_left() */
		if (!reading->reader->opts.rounds && goheap_state(runtime->heap) != GORUNTIME_GONE)
			go_process_shed(p, runtime);
	}
	return first;
}

/* Over the ceiling of all processes together: forget the records of this process. The next round
 * reads the process as if for the first time, within the room available then. */
static void shed(struct go_profile_reader *reader, struct go_process *p, bool *ret_full)
{
	if (reader->bytes <= reader->opts.record_bytes)
		return;
	discount(reader, p);
	for (size_t i = 0; i < p->n_runtimes; i++)
		go_process_shed(p, &p->runtimes[i]);
	count(reader, p);
	*ret_full = true;
}

static int process_read(struct reading *reading, struct go_profile_target *target)
{
	const struct go_process_opts opts = {
		.proc = reading->reader->opts.proc,
		.images = reading->reader->images,
		.max_bytes = room(reading->reader),
		.round = reading->reader->round,
	};
	struct go_process *p = reading->process;
	int r;

	/* the mappings may be another program's by now */
	address_space_cache_doubt(reading->reader->spaces, &p->pid);
	r = go_process_look(p, &opts);

	target->full |= p->is_cut;
	if (!r && p->state == GORUNTIME_DENIED)
		return target_denied(target, p);
	if (!r && p->n_runtimes)
		r = target_read(reading, target);
	return r;
}

void go_profile_reader_begin(struct go_profile_reader *reader)
{
	goimages_begin(reader->images);
	reader->snap_bytes = 0;
	reader->read_bytes = 0;
}

/* Whether another process of the container may be read. */
static bool may_read(const struct go_profile_reader *reader)
{
	return !reader->opts.rounds ||
	       (reader->read_bytes / READS_FACTOR <= reader->opts.record_bytes &&
		!goimages_full(reader->images));
}

int go_profile_reader_read(struct go_profile_reader *reader, uint64_t window_start_ns,
			   struct go_profile_target *target)
{
	struct reading reading = {.reader = reader};
	struct go_process once, *p = &once;
	int r = 0;

	go_process_init(&once, &target->pid);
	if (!may_read(reader))
		r = 1;
	else if (reader->opts.rounds)
		r = cached_get(reader, target, &p);
	if (r > 0) {
		target->full = true;
		return 0;
	}
	if (r)
		return r;
	reading.process = p;
	/* All allocations of such a process belong to the window. */
	reading.since_start = pid_began_since(&target->pid, window_start_ns);
	discount(reader, p);
	r = process_read(&reading, target);
	if (go_process_left(p)) {
		go_profile_target_deinit(target);
		r = process_read(&reading, target);
		/* gone again: the process has ended, and the results belong to no process */
		if (go_process_left(p))
			go_profile_target_deinit(target);
	}
	target->state = p->state;
	if (reader->opts.rounds) {
		count(reader, p);
		shed(reader, p, &target->full);
	}
	go_process_deinit(&once);
	return r;
}

int go_profile_reader_read_core(struct go_profile_reader *reader, struct gocore *core,
				struct go_profile_target *target)
{
	_cleanup_(freep) struct goruntimes *runtimes = calloc(1, sizeof(*runtimes));
	struct go_process nobody = {.pid = target->pid};
	struct reading reading = {.reader = reader, .process = &nobody, .core = core};
	int r = runtimes ? gocore_runtimes(core, runtimes) : -ENOMEM;

	target->state = GORUNTIME_NO_RUNTIME;
	if (r >= 0)
		r = target_alloc(target, runtimes->n);
	for (size_t i = 0; r >= 0 && i < runtimes->n; i++) {
		const struct goruntime *rt = &runtimes->items[i];
		struct go_profile_found *found = &target->found[target->n_found++];
		struct go_process_runtime runtime = {.told = GORUNTIME_STATE_MAX};

		if (rt->state != GORUNTIME_OK) {
			found->state = rt->state;
			snprintf(found->go_version, sizeof(found->go_version), "%s",
				 rt->file.version);
			continue;
		}
		r = goheap_new_of_memory(rt, gocore_memory(core), room(reader), &runtime.heap);
		if (!r)
			r = runtime_read(&reading, &runtime, false, found, &target->full);
		goheap_free(runtime.heap);
	}
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- all of them */

/* @n: above 0 */
static int report(struct go_profile_reader *reader, enum go_profile_kind kind, void **snaps,
		  size_t n, const struct go_profile_report_opts *opts, struct buf *ret,
		  struct go_profile_report_stats *ret_stats)
{
	int r;

	if (kind == GO_PROFILE_HEAP)
		r = heap_report((struct heapsnap *const *)snaps, n, reader->symbolizer, opts, ret,
				ret_stats);
	else if (kind == GO_PROFILE_GOROUTINE)
		r = goroutine_report((struct goroutinesnap *const *)snaps, n, reader->symbolizer,
				     opts, ret, ret_stats);
	else
		r = contention_report((struct contentionsnap *const *)snaps, n, reader->symbolizer,
				      opts, ret, ret_stats);
	symbolizer_release(reader->symbolizer);
	return r;
}

static size_t count_found(const struct go_profile_target *targets, size_t n_targets)
{
	size_t n = 0;

	for (size_t i = 0; i < n_targets; i++)
		n += targets[i].n_found;
	return n;
}

int go_profile_reader_encode(struct go_profile_reader *reader, enum go_profile_kind kind,
			     const struct go_profile_target *targets, size_t n_targets,
			     const struct go_profile_report_opts *opts, struct buf *ret,
			     struct go_profile_report_stats *ret_stats)
{
	_cleanup_(freep) void **snaps = calloc(count_found(targets, n_targets) + 1, sizeof(*snaps));
	size_t n = 0;

	if (!snaps)
		return -ENOMEM;
	for (size_t i = 0; i < n_targets; i++)
		for (size_t k = 0; k < targets[i].n_found; k++)
			if (targets[i].found[k].snaps[kind])
				snaps[n++] = targets[i].found[k].snaps[kind];
	if (n)
		return report(reader, kind, snaps, n, opts, ret, ret_stats);
	*ret_stats = (struct go_profile_report_stats){0};
	return 0;
}

/* Whether both reads are of the same runtimes. */
static bool is_pair(const struct go_profile_target *before, const struct go_profile_target *after)
{
	if (before->n_found != after->n_found)
		return false;
	for (size_t k = 0; k < after->n_found; k++)
		if (before->found[k].number != after->found[k].number)
			return false;
	return true;
}

/* The snapshots of @targets whose process has one in @after; returns how many. */
static size_t pick(enum go_profile_kind kind, const struct go_profile_target *targets,
		   const struct go_profile_target *before, const struct go_profile_target *after,
		   size_t n_targets, void **to)
{
	size_t n = 0;

	for (size_t i = 0; i < n_targets; i++) {
		if (!is_pair(&before[i], &after[i]))
			continue;
		for (size_t k = 0; k < after[i].n_found; k++)
			if (after[i].found[k].snaps[kind] && targets[i].found[k].snaps[kind])
				to[n++] = targets[i].found[k].snaps[kind];
	}
	return n;
}

/* The later snapshots come first: stacks without room are then left out of both. */
int go_profile_reader_encode_difference(struct go_profile_reader *reader, enum go_profile_kind kind,
					const struct go_profile_target *before,
					const struct go_profile_target *after, size_t n_targets,
					const struct go_profile_report_opts *opts, struct buf *ret,
					struct go_profile_report_stats *ret_stats)
{
	_cleanup_(freep) void **snaps = calloc(
		count_found(before, n_targets) + count_found(after, n_targets) + 1, sizeof(*snaps));
	struct go_profile_report_opts both = *opts;
	size_t n;

	if (!snaps)
		return -ENOMEM;
	both.delta = false;
	both.n_plus = pick(kind, after, before, after, n_targets, snaps);
	n = both.n_plus + pick(kind, before, before, after, n_targets, snaps + both.n_plus);
	if (n)
		return report(reader, kind, snaps, n, &both, ret, ret_stats);
	*ret_stats = (struct go_profile_report_stats){0};
	return 0;
}

struct go_profile_memory go_profile_reader_end_round(struct go_profile_reader *reader)
{
	struct cached_process *cached, *next;

	HASH_ITER(hh, reader->by_pid, cached, next) {
		if (cached->round == reader->round)
			continue;
		discount(reader, &cached->process);
		cached_free(reader, cached);
	}
	reader->round++;
	go_profile_reader_begin(reader);
	address_space_cache_sweep(reader->spaces, nsec_boot());
	goimages_sweep(reader->images);
	return (struct go_profile_memory){
		.symbol_bytes = symbolizer_bytes(reader->symbolizer),
		.address_space_bytes = address_space_cache_bytes(reader->spaces),
		.record_bytes = reader->bytes,
		.file_bytes = goimages_bytes(reader->images),
	};
}

int go_profile_reader_new(const struct go_profile_reader_opts *opts, struct go_profile_reader **ret)
{
	struct go_profile_reader *reader = calloc(1, sizeof(*reader));
	struct symbolizer_opts symbols = {.cache_bytes = opts->symbol_bytes};
	int r;

	if (!reader)
		return -ENOMEM;
	reader->opts = *opts;
	reader->proc = (struct root)ROOT_INIT;
	reader->opts.proc = symbols.proc = &reader->proc;
	r = root_dup(opts->proc, &reader->proc);
	if (!r)
		r = address_space_cache_new(&reader->proc, &reader->spaces);
	if (!r)
		r = goimages_new(&reader->images);
	if (!r)
		r = symbolizer_new(&symbols, &reader->symbolizer);
	if (r)
		go_profile_reader_free(reader);
	else
		*ret = reader;
	return r;
}

void go_profile_reader_free(struct go_profile_reader *reader)
{
	struct cached_process *cached, *next;

	if (!reader)
		return;
	HASH_ITER(hh, reader->by_pid, cached, next)
		cached_free(reader, cached);
	symbolizer_free(reader->symbolizer);
	goimages_free(reader->images);
	address_space_cache_free(reader->spaces);
	root_deinit(&reader->proc);
	free(reader);
}
