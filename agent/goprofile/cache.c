// SPDX-License-Identifier: Apache-2.0
/*
 * A process that is no Go program keeps a place here too: so it is not looked at in every window.
 */
#include "goprofile/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/nsec.h"
#include "base/root.h"
#include "goheap/goheap.h"
#include "goheap/goimages.h"
#include "goprofile/process.h"
#include "procmap/address_space.h"
#include "goprofile/contention.h"
#include "goprofile/heap.h"
#include "goprofile/heapsnap.h"
#include "symbolize/symbolizer.h"

/* Processes with a reader. One more is not read, counted as "processes_over_limit". Reached:
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`. */
#define GO_PROFILE_CACHE_PROCESSES_MAX 16384

struct cached_process {
	struct go_process process;
	unsigned int round;
	UT_hash_handle hh; /* by process.pid */
};

struct go_profile_cache {
	const struct root *proc;
	bool no_contention;
	size_t max_bytes;
	size_t bytes; /* of all readers' records */
	unsigned int round;
	struct cached_process *by_pid;
	struct goimages *images;
	struct address_space_cache *spaces; /* images of the Go programs alone */
	struct symbolizer *symbolizer;
};

static void reader_free(struct go_profile_cache *all, struct cached_process *reader)
{
	HASH_DEL(all->by_pid, reader);
	go_process_deinit(&reader->process);
	free(reader);
}

static int reader_add(struct go_profile_cache *all, const struct pid_id *pid,
		      struct cached_process **ret)
{
	struct cached_process *reader = calloc(1, sizeof(*reader));
	bool hash_oom = false;

	if (!reader)
		return -ENOMEM;
	go_process_init(&reader->process, pid);
	HASH_ADD(hh, all->by_pid, process.pid, sizeof(reader->process.pid), reader);
	if (hash_oom) {
		free(reader);
		return -ENOMEM;
	}
	*ret = reader;
	return 0;
}

/* 0, 1 when there are too many, -errno. */
static int reader_get(struct go_profile_cache *all, const struct pid_id *pid,
		      struct cached_process **ret)
{
	struct cached_process *reader;
	int r = 0;

	HASH_FIND(hh, all->by_pid, pid, sizeof(*pid), reader);
	if (!reader && HASH_COUNT(all->by_pid) >= GO_PROFILE_CACHE_PROCESSES_MAX)
		return 1;
	if (!reader)
		r = reader_add(all, pid, &reader);
	if (r)
		return r;
	reader->round = all->round;
	*ret = reader;
	return 0;
}

/* Bytes of all records of a process are taken out of the sum while it is changed. */
static void discount(struct go_profile_cache *all, const struct go_process *p)
{
	for (size_t i = 0; i < p->n_runtimes; i++)
		all->bytes -= p->runtimes[i].bytes;
}

static void count(struct go_profile_cache *all, struct go_process *p)
{
	for (size_t i = 0; i < p->n_runtimes; i++) {
		struct go_process_runtime *runtime = &p->runtimes[i];

		runtime->bytes = runtime->heap ? goheap_bytes(runtime->heap) : 0;
		all->bytes += runtime->bytes;
	}
}

/* ---------------------------------------------------------------- one runtime */

/* Where the pcs of one process are. */
struct snap_space {
	const struct goheap *heap;
	struct address_space_cache *spaces;
	const struct pid_id *pid;
};

static int on_resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct snap_space *s = ctx;

	if (goheap_resolve(s->heap, pc, ret))
		return 0;
	return address_space_cache_resolve(s->spaces, s->pid, pc, ret);
}

/* Whether the process began in the window: then all that it has allocated is the window's. */
static bool began_since(uint64_t window_start_ns, const struct pid_id *pid)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t age_ns = nsec_boot() - pid->start_ticks * tick_ns;

	return nsec_wall() - age_ns >= window_start_ns;
}

static int found_snap(struct go_profile_cache *all, const struct go_process *p,
		      const struct go_process_runtime *runtime,
		      const struct goheap_profile *profile, uint64_t window_start_ns,
		      struct go_profile_found *found)
{
	struct snap_space space = {runtime->heap, all->spaces, &p->pid};
	const struct heapsnap_opts opts = {
		.space = {on_resolve, &space},
		.forced = found->state == GORUNTIME_FORCED,
		.since_start = began_since(window_start_ns, &p->pid),
	};

	return heapsnap_new(profile, &opts, &found->snap);
}

/* What the program does not record is no profile, and neither is what cannot be read: the state is
 * that of the heap. */
static int found_contention(struct go_profile_cache *all, const struct go_process *p,
			    const struct go_process_runtime *runtime, uint64_t window_start_ns,
			    struct go_profile_found *found)
{
	struct snap_space at = {runtime->heap, all->spaces, &p->pid};
	const struct stacksnap_space space = {on_resolve, &at};
	int r = 0;

	for (int i = 0; r >= 0 && !all->no_contention && i < CONTENTION_KIND_MAX; i++) {
		struct contention_profile profile;

		r = goheap_contention(runtime->heap, (enum contention_kind)i, &profile);
		if (!r)
			r = contentionsnap_new(&profile, &space,
					       began_since(window_start_ns, &p->pid),
					       &found->contention[i]);
	}
	return r < 0 ? r : 0;
}

static void found_describe(struct go_profile_found *found, struct go_process_runtime *runtime)
{
	const struct goruntime *rt = goheap_runtime(runtime->heap);

	found->number = runtime->number;
	found->state = goheap_state(runtime->heap);
	found->news = found->state != runtime->told;
	runtime->told = found->state;
	found->forced = goheap_force_outcome(runtime->heap);
	found->reading.state = goruntime_state_name(found->state);
	if (rt)
		snprintf(found->go_version, sizeof(found->go_version), "%s", rt->file.version);
}

/* What the allocator has counted itself. It is there whether the profile is or not. */
static void found_exact(struct go_profile_found *found, struct go_process_runtime *runtime)
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

static int found_gauges(struct go_profile_found *found, const struct go_process_runtime *runtime)
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

static void found_totals(struct go_profile_found *found, const struct go_process_runtime *runtime,
			 const struct goheap_profile *profile)
{
	struct goheap_totals totals;

	goheap_totals(profile, &totals);
	goalloc_set(&found->reading, GOALLOC_INUSE_BYTES, (uint64_t)totals.inuse.bytes);
	goalloc_set(&found->reading, GOALLOC_INUSE_OBJECTS, (uint64_t)totals.inuse.objects);
	if (runtime->exact)
		return;
	goalloc_set(&found->reading, GOALLOC_ALLOC_BYTES, (uint64_t)totals.alloc.bytes);
	goalloc_set(&found->reading, GOALLOC_ALLOC_OBJECTS, (uint64_t)totals.alloc.objects);
}

/* Bytes that the records of one more runtime may take. */
static size_t room(const struct go_profile_cache *all)
{
	return all->max_bytes > all->bytes ? all->max_bytes - all->bytes : 1;
}

static int runtime_read(struct go_profile_cache *all, struct go_process *p,
			struct go_process_runtime *runtime, bool force, uint64_t window_start_ns,
			struct go_profile_found *found)
{
	struct goheap_profile profile;
	int state, r = 0;

	goheap_set_force(runtime->heap, force && go_process_may_force(p));
	goheap_set_max_bytes(runtime->heap, room(all));
	state = goheap_read(runtime->heap, &profile);
	if (goheap_was_forced(runtime->heap))
		r = go_process_forced(p, runtime);
	found_describe(found, runtime);
	found_exact(found, runtime);
	if (!r)
		r = found_gauges(found, runtime);
	if (!r)
		r = found_contention(all, p, runtime, window_start_ns, found);
	if (r || state < 0 || (state != GORUNTIME_OK && state != GORUNTIME_FORCED))
		return r ? r : state < 0 ? state : 0;
	found_totals(found, runtime, &profile);
	return found_snap(all, p, runtime, &profile, window_start_ns, found);
}

/* ---------------------------------------------------------------- one process */

void go_profile_target_deinit(struct go_profile_target *target)
{
	for (size_t i = 0; i < target->n_found; i++) {
		heapsnap_free(target->found[i].snap);
		for (size_t k = 0; k < CONTENTION_KIND_MAX; k++)
			contentionsnap_free(target->found[i].contention[k]);
	}
	free(target->found);
	target->found = NULL;
	target->n_found = 0;
}

static int target_alloc(struct go_profile_target *target, size_t n)
{
	go_profile_target_deinit(target);
	target->found = calloc(n, sizeof(*target->found));
	return target->found ? 0 : -ENOMEM;
}

/* Of a process that we may not look at nothing more is known. */
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

/* All runtimes. One that fails does not keep the others from being read. */
static int target_read(struct go_profile_cache *all, struct go_profile_target *target,
		       struct go_process *p, uint64_t window_start_ns)
{
	int r = target_alloc(target, p->n_runtimes), first = r;

	for (size_t i = 0; target->found && i < p->n_runtimes; i++) {
		struct go_process_runtime *runtime = &p->runtimes[i];

		if (!runtime->heap)
			continue;
		r = runtime_read(all, p, runtime, target->force, window_start_ns,
				 &target->found[target->n_found++]);
		first = first ? first : r;
	}
	return first;
}

/* Over the ceiling of all together: what this process had is forgotten, and read as if for the
 * first time in the next round, with what room there is then. */
static void shed(struct go_profile_cache *all, struct go_process *p, bool *ret_full)
{
	if (all->bytes <= all->max_bytes)
		return;
	discount(all, p);
	for (size_t i = 0; i < p->n_runtimes; i++)
		go_process_shed(p, &p->runtimes[i]);
	count(all, p);
	*ret_full = true;
}

static int process_look(struct go_profile_cache *all, struct go_process *p)
{
	const struct go_process_opts opts = {
		.proc = all->proc,
		.images = all->images,
		.max_bytes = room(all),
		.round = all->round,
	};

	return go_process_look(p, &opts);
}

static int process_read(struct go_profile_cache *all, struct go_profile_target *target,
			struct go_process *p, uint64_t window_start_ns)
{
	int r = process_look(all, p);

	target->full |= p->is_cut;
	if (!r && p->state == GORUNTIME_DENIED)
		return target_denied(target, p);
	if (!r && p->n_runtimes)
		r = target_read(all, target, p, window_start_ns);
	return r;
}

int go_profile_cache_read(struct go_profile_cache *all, uint64_t window_start_ns,
			  struct go_profile_target *target)
{
	struct cached_process *reader;
	struct go_process *p;
	int r = reader_get(all, &target->pid, &reader);

	if (r > 0) {
		target->full = true;
		return 0;
	}
	if (r)
		return r;
	p = &reader->process;
	discount(all, p);
	r = process_read(all, target, p, window_start_ns);
	if (go_process_left(p)) {
		go_profile_target_deinit(target);
		r = process_read(all, target, p, window_start_ns);
		/* twice: it has ended, and what is left of it is nobody's */
		if (go_process_left(p))
			go_profile_target_deinit(target);
	}
	target->state = p->state;
	count(all, p);
	shed(all, p, &target->full);
	return r;
}

int go_profile_cache_encode(struct go_profile_cache *all, struct heapsnap **snaps, size_t n,
			    const struct go_profile_report_opts *opts, struct buf *ret,
			    struct go_profile_report_stats *ret_stats)
{
	int r = heap_report(snaps, n, all->symbolizer, opts, ret, ret_stats);

	symbolizer_release(all->symbolizer);
	return r;
}

int go_profile_cache_encode_contention(struct go_profile_cache *all, struct contentionsnap **snaps,
				       size_t n, const struct go_profile_report_opts *opts,
				       struct buf *ret, struct go_profile_report_stats *ret_stats)
{
	int r = contention_report(snaps, n, all->symbolizer, opts, ret, ret_stats);

	symbolizer_release(all->symbolizer);
	return r;
}

struct go_profile_memory go_profile_cache_end_round(struct go_profile_cache *all)
{
	struct cached_process *reader, *next;

	HASH_ITER(hh, all->by_pid, reader, next) {
		if (reader->round == all->round)
			continue;
		discount(all, &reader->process);
		reader_free(all, reader);
	}
	all->round++;
	address_space_cache_sweep(all->spaces);
	goimages_sweep(all->images);
	return (struct go_profile_memory){
		.symbol_bytes = symbolizer_bytes(all->symbolizer),
		.address_space_bytes = address_space_cache_bytes(all->spaces),
		.record_bytes = all->bytes,
		.file_bytes = goimages_bytes(all->images),
	};
}

int go_profile_cache_new(const struct go_profile_cache_opts *opts, struct go_profile_cache **ret)
{
	struct symbolizer_opts symbols = {.proc = opts->proc, .cache_bytes = opts->symbol_bytes};
	struct go_profile_cache *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return -ENOMEM;
	all->proc = opts->proc;
	all->no_contention = opts->no_contention;
	all->max_bytes = opts->heap_bytes;
	r = address_space_cache_new(opts->proc, &all->spaces);
	if (!r)
		r = goimages_new(&all->images);
	if (!r)
		r = symbolizer_new(&symbols, &all->symbolizer);
	if (r)
		go_profile_cache_free(all);
	else
		*ret = all;
	return r;
}

void go_profile_cache_free(struct go_profile_cache *all)
{
	struct cached_process *reader, *next;

	if (!all)
		return;
	HASH_ITER(hh, all->by_pid, reader, next)
		reader_free(all, reader);
	symbolizer_free(all->symbolizer);
	goimages_free(all->images);
	address_space_cache_free(all->spaces);
	free(all);
}
