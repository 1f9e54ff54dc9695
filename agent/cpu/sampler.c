// SPDX-License-Identifier: Apache-2.0
#include "cpu/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "cpu/deferred_unwind.h"
#include "procmap/process_history.h"
#include "procmap/address_space.h"
#include "profile/drain.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/sideband.h"
#include "profile/stacks.h"
#include "runtimes/runtimes.h"
#include "unwindtable/unwind_publisher.h"

/* At the end: between two looks at the thread that opens files. */
#define CPU_SAMPLER_LOOK_NS (50 * NSEC_PER_MSEC)

struct cpu_sampler {
	struct cpu_sampler_opts opts;
	struct oncpu *oncpu;
	struct offcpu *offcpu;	   /* NULL: not wanted */
	struct sideband *sideband; /* NULL: refused by the kernel, or not our pids */
	struct address_space_cache *spaces;
	struct runtimes *runtimes;
	struct unwind_publisher *publisher; /* NULL: by frame pointers alone */
	struct deferred_unwind *deferred;   /* with it */
	struct drain *drain;
	struct loop_source *wake;
	struct loop_source *drained;
	struct loop_source *opened; /* files that stacks waited for */
	struct log_limit tick_log;
	uint64_t n_drains;
	bool caught_up; /* all is known of what came before the samples that are handed over */
};

void cpu_stack_deinit(struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		image_unref(stack->frames[i].image);
}

/* Takes the frame's reference. Frames of which nothing is known are one, at no address: stacks that
 * differ only there are the same to whoever reads them. */
static void cpu_stack_push(struct cpu_stack *stack, struct frame *frame, bool is_return)
{
	if (frame->image->kind == IMAGE_UNKNOWN) {
		frame->vaddr = 0;
		is_return = false;
		if (stack->n && stack->frames[stack->n - 1].image == frame->image) {
			image_unref(frame->image);
			return;
		}
	}
	stack->frames[stack->n] = *frame;
	stack->return_address[stack->n++] = is_return;
}

static void on_record(void *ctx, const struct sideband_record *record);

/* What happened before these samples were taken, all of it: whatever came of it is in the rings
 * behind it, so that records are in order though they are young. */
static void catch_up(void *ctx)
{
	struct cpu_sampler *s = ctx;

	s->caught_up = true;
	if (s->sideband)
		sideband_drain(s->sideband, nsec_boot(), on_record, s);
}

/* The place of one frame; @ret owns a reference. 0 or -ENOMEM. */
static int resolve(struct cpu_sampler *s, const struct address_space_who *who,
		   struct address_space *space, const struct frame_record *frame, struct frame *ret)
{
	switch (frame->kind) {
	case FRAME_NATIVE:
		return address_space_resolve(s->spaces, space, frame->words[0], ret);
	case FRAME_KERNEL:
		address_space_cache_kernel(s->spaces, frame->words[0], ret);
		return 0;
	default:
		return runtimes_resolve(s->runtimes, who, frame, ret);
	}
}

/* Only the innermost pc of each part is where the task was; behind a system call's instruction it
 * is still in the function that made the call. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret)
{
	struct address_space *space = NULL;
	struct address_space_who who = {
		.pid = sample->pid,
		.start_ns = sample->start_boottime_ns,
		.exec_id = sample->exec_id,
		.owner = sample_owner(sample),
	};
	struct frame_record record;
	struct frame frame;
	size_t at = 0;
	int r = 0;

	if (!s->caught_up)
		catch_up(s);
	if (sample->n_user)
		r = address_space_cache_get(s->spaces, &who, &space);
	if (r)
		return r;
	if (s->publisher && space)
		unwind_publisher_sample(s->publisher, sample, space);
	for (size_t i = 0; i < sample->n_kernel && ret->n < CPU_STACK_FRAMES_MAX; i++) {
		record = (struct frame_record){.kind = FRAME_KERNEL, .words = {sample->kernel[i]}};
		r = resolve(s, &who, space, &record, &frame);
		if (r)
			return r;
		cpu_stack_push(ret, &frame, i > 0);
	}
	while (ret->n < CPU_STACK_FRAMES_MAX && sample_user_next(sample, &at, &record)) {
		r = resolve(s, &who, space, &record, &frame);
		if (r)
			return r;
		cpu_stack_push(ret, &frame, record.kind == FRAME_NATIVE && at > 1);
	}
	return 0;
}

/* ---------------------------------------------------------------- what happens to processes */

static void on_record(void *ctx, const struct sideband_record *record)
{
	static const enum process_event_kind whats[SIDEBAND_KIND_MAX] = {
		[SIDEBAND_FORK] = PROCESS_EVENT_BIRTH,
		[SIDEBAND_EXEC] = PROCESS_EVENT_EXEC,
		[SIDEBAND_MMAP] = PROCESS_EVENT_MAP,
		[SIDEBAND_EXIT] = PROCESS_EVENT_EXIT,
	};
	struct cpu_sampler *s = ctx;
	struct process_event event = {
		.what = whats[record->kind],
		.pid = record->pid,
		.tid = record->tid,
		.ppid = record->ppid,
		.time_ns = record->time_ns,
		.map = {.start = record->start,
			.limit = record->start + record->length,
			.offset = record->off,
			.device = record->device,
			.inode = record->inode},
		.name = record->name,
	};

	if (record->kind == SIDEBAND_LOST) {
		address_space_cache_lost(s->spaces, record->since_ns); /* counted already */
		return;
	}
	address_space_cache_event(s->spaces, &event);
	if (s->publisher && record->kind == SIDEBAND_EXIT && record->tid == record->pid)
		unwind_publisher_exit(s->publisher, record->pid);
}

/* Some ring is half full, between two ticks. */
static void on_wake(void *ctx, int fd, uint32_t events)
{
	struct cpu_sampler *s = ctx;

	(void)fd;
	(void)events;
	sideband_drain(s->sideband, sideband_until(), on_record, s);
}

/* Returns until when (boot clock) it is known now what happened: for ever if nobody tells. */
static uint64_t take_events(struct cpu_sampler *s)
{
	uint64_t until_ns = sideband_until();

	if (!s->sideband)
		return UINT64_MAX;
	sideband_drain(s->sideband, until_ns, on_record, s);
	(void)sideband_follow(s->sideband);
	return until_ns;
}

/* Without it what has exited before it was looked at has no names; that is all. */
static int start_events(struct cpu_sampler *s)
{
	const struct sideband_opts opts = {.sys = s->opts.sys,
					   .ring_bytes = s->opts.event_ring_bytes};
	int r;

	/* the kernel tells pids as our own namespace has them */
	if (!pid_is_ours(s->opts.proc)) {
		log_warn("--proc-root belongs to another PID namespace, short-lived processes will "
			 "have no names");
		return 0;
	}
	r = sideband_new(&opts, &s->sideband);
	if (r == -ENOMEM)
		return r;
	if (r) {
		log_warn("cannot follow processes, short-lived processes will have no names",
			 log_err(r));
		return 0;
	}
	return loop_add_fd(s->opts.loop, sideband_fd(s->sideband), EPOLLIN, on_wake, s, &s->wake);
}

/* ---------------------------------------------------------------- samples */

static void note_unread(struct cpu_sampler *s, int r)
{
	uint64_t suppressed;

	if (r < 0 && log_limit_ok(&s->tick_log, &suppressed))
		log_warn("cannot read all samples, retrying", log_err(r),
			 log_uint("suppressed", suppressed));
}

/* Takes in the samples of one drain. False if there are none. */
static bool take_samples(struct cpu_sampler *s, struct stacks *stacks, sample_fn fn, void *ctx)
{
	if (!stacks_next(stacks))
		return false;
	address_space_cache_since(s->spaces, stacks_since_ns(stacks));
	s->caught_up = false;
	stacks_deliver(stacks, fn, ctx);
	return true;
}

/* Of a wait that was copied out the stack is in the copy, if that is there. */
static void on_wait(void *ctx, const struct sample *sample)
{
	struct cpu_sampler *s = ctx;

	if (sample->dump_id && s->deferred && deferred_unwind_back(s->deferred, sample)) {
		address_space_cache_since(s->spaces, stacks_since_ns(offcpu_stacks(s->offcpu)));
		return;
	}
	if (sample->dump_id)
		offcpu_walked(s->offcpu, sample);
	s->opts.off_fn(s->opts.ctx, sample);
}

/* Copied stacks, and before them what happened until then. */
static void take_deferred(struct cpu_sampler *s)
{
	const uint64_t until_ns = take_events(s);

	if (s->deferred)
		note_unread(s, deferred_unwind_tick(s->deferred, until_ns));
}

/* After each on-CPU drain, also one without samples: about once an interval. */
static void tick(struct cpu_sampler *s)
{
	s->n_drains++;
	note_unread(s, oncpu_follow(s->oncpu));
	if (s->publisher)
		unwind_publisher_tick(s->publisher);
}

/* One drain of each kind a turn: the loop has other things to do. */
static void on_drained(void *ctx, int fd, uint32_t events)
{
	struct cpu_sampler *s = ctx;
	bool more;
	uint64_t n;

	(void)events;
	(void)!read(fd, &n, sizeof(n));
	note_unread(s, drain_error(s->drain));
	take_deferred(s);
	more = take_samples(s, oncpu_stacks(s->oncpu), s->opts.fn, s->opts.ctx);
	if (more)
		tick(s);
	if (s->offcpu)
		more = take_samples(s, offcpu_stacks(s->offcpu), on_wait, s) || more;
	if (more)
		drain_again(s->drain);
}

static void on_deferred(void *ctx, enum stack_dump_kind kind, const struct sample *sample)
{
	struct cpu_sampler *s = ctx;

	if (kind == STACK_DUMP_OFFCPU) {
		offcpu_walked(s->offcpu, sample);
		s->opts.off_fn(s->opts.ctx, sample);
		return;
	}
	oncpu_walked(s->oncpu, sample);
	s->opts.fn(s->opts.ctx, sample);
}

static void on_table(void *ctx, uint16_t exe)
{
	struct cpu_sampler *s = ctx;

	if (s->deferred)
		deferred_unwind_ready(s->deferred, exe);
}

/* The callback of the thread's batches: the stacks are delivered from the loop. */
static void on_opened(void *ctx, uint64_t pid)
{
	struct cpu_sampler *s = ctx;

	if (!s->deferred)
		return;
	deferred_unwind_opened(s->deferred, pid);
	(void)loop_arm(s->opened, 1, 0);
}

static void on_opened_timer(void *ctx)
{
	struct cpu_sampler *s = ctx;

	if (s->deferred)
		deferred_unwind_retry(s->deferred);
}

static void wait_for_files(struct cpu_sampler *s, uint64_t end_ns)
{
	while (cpu_sampler_opening(s) && nsec_monotonic() < end_ns)
		address_space_cache_wait(s->spaces, CPU_SAMPLER_LOOK_NS);
}

/* What a command that has just ended leaves: files and tables that its stacks wait for are opened
 * and made now. */
static void finish_deferred(struct cpu_sampler *s)
{
	const uint64_t end_ns = nsec_monotonic() + CPU_SAMPLER_LATE_NS;
	uint64_t now_ns;

	if (s->deferred)
		(void)deferred_unwind_tick(s->deferred, UINT64_MAX);
	wait_for_files(s, end_ns);
	if (!s->deferred)
		return;
	deferred_unwind_retry(s->deferred);
	while (deferred_unwind_pending(s->deferred) && (now_ns = nsec_monotonic()) < end_ns) {
		bool opening = cpu_sampler_opening(s);

		wait_for_files(s, end_ns);
		deferred_unwind_retry(s->deferred);
		if (!unwind_publisher_wait(s->publisher, end_ns - now_ns) && !opening)
			break;
	}
	deferred_unwind_flush(s->deferred);
	wait_for_files(s, end_ns);
}

static void stop_drain(struct cpu_sampler *s)
{
	loop_remove(s->drained);
	s->drained = NULL;
	drain_free(s->drain);
	s->drain = NULL;
}

void cpu_sampler_finish(struct cpu_sampler *s)
{
	int r;

	stop_drain(s);
	oncpu_stop(s->oncpu);
	(void)take_events(s);
	r = stacks_fetch_rest(oncpu_stacks(s->oncpu));
	while (take_samples(s, oncpu_stacks(s->oncpu), s->opts.fn, s->opts.ctx))
		;
	if (!r && s->offcpu) {
		offcpu_stop(s->offcpu);
		r = stacks_fetch_rest(offcpu_stacks(s->offcpu));
		while (take_samples(s, offcpu_stacks(s->offcpu), on_wait, s))
			;
	}
	finish_deferred(s);
	if (r < 0)
		log_warn("cannot read the last samples, dropping them", log_err(r));
}

void cpu_sampler_sweep(struct cpu_sampler *s)
{
	address_space_cache_sweep(s->spaces);
	runtimes_sweep(s->runtimes);
	if (s->publisher)
		unwind_publisher_sweep(s->publisher);
}

/* The kernel side's name for the hierarchy that discovery walks. */
static enum settings_v1 v1_of_controller(enum controller controller)
{
	static const enum settings_v1 map[CONTROLLER_MAX] = {
		[CONTROLLER_NONE] = SETTINGS_V1_NONE,
		[CONTROLLER_MEMORY] = SETTINGS_V1_MEMORY,
		[CONTROLLER_CPU] = SETTINGS_V1_CPU,
		[CONTROLLER_CPUACCT] = SETTINGS_V1_CPUACCT,
		[CONTROLLER_PIDS] = SETTINGS_V1_PIDS,
		[CONTROLLER_CPUSET] = SETTINGS_V1_CPUSET,
		[CONTROLLER_BLKIO] = SETTINGS_V1_BLKIO,
		[CONTROLLER_DEVICES] = SETTINGS_V1_DEVICES,
		[CONTROLLER_FREEZER] = SETTINGS_V1_FREEZER,
		[CONTROLLER_PERF_EVENT] = SETTINGS_V1_PERF_EVENT,
		/* net_cls, net_prio and hugetlb: no container is in those alone */
	};

	return map[controller];
}

static int start_publisher(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct unwind_publisher_opts opts = {
		.loop = s->opts.loop,
		.proc = s->opts.proc,
		.kernel = oncpu_unwind(s->oncpu),
		.table_bytes = s->opts.table_bytes ? s->opts.table_bytes : CPU_SAMPLER_TABLE_BYTES,
		.runtimes = s->runtimes,
		.mode = s->opts.unwind,
		.ready = on_table,
		.ctx = s,
	};
	int r;

	if (s->opts.unwind == SETTINGS_UNWIND_FP)
		return 0;
	r = unwind_publisher_new(&opts, &s->publisher);
	if (r)
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "setting up the unwind tables failed (%s); --unwind=fp does without",
			 strerror(-r));
	return r;
}

static int start_deferred(struct cpu_sampler *s)
{
	const struct deferred_unwind_opts opts = {
		.maps = oncpu_stack_dumps(s->oncpu),
		.spaces = s->spaces,
		.publisher = s->publisher,
		.fn = on_deferred,
		.ctx = s,
	};

	return s->publisher ? deferred_unwind_new(&opts, &s->deferred) : 0;
}

static int start_drain(struct cpu_sampler *s)
{
	struct drain_opts opts = {.stacks = {oncpu_stacks(s->oncpu)}, .n = 1};
	int r;

	if (s->offcpu)
		opts.stacks[opts.n++] = offcpu_stacks(s->offcpu);
	if (s->deferred)
		opts.dumps = deferred_unwind_dumps(s->deferred);
	r = drain_new(&opts, &s->drain);
	if (!r)
		r = loop_add_fd(s->opts.loop, drain_fd(s->drain), EPOLLIN, on_drained, s,
				&s->drained);
	return r;
}

static void log_lacks(const struct bpfobj_lacks *lacks)
{
	if (lacks->dumps)
		log_warn("before Linux 6.13 a real-time kernel gives no stack dumps, stacks of new "
			 "processes may be cut");
	if (lacks->n_runtimes)
		log_warn("the kernel refuses the program of a language runtime, leaving it out",
			 log_uint("runtimes", lacks->n_runtimes),
			 log_str("why", lacks->runtime_why));
}

static int cpu_sampler_init(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct cpu_sampler_opts *o = &s->opts;
	const struct oncpu_opts oncpu_opts = {
		.rate_hz = o->rate_hz,
		.event = o->event,
		.period = o->period,
		.scope = o->scope,
		.kernel_stacks = o->kernel_stacks,
		.unwind = o->unwind,
		.stack_dumps = o->unwind != SETTINGS_UNWIND_FP,
		.offcpu = o->off_cpu > 0,
		.unsafe_kernel = o->unsafe_kernel,
		.interval_ns = o->interval_ns,
		.v1 = v1_of_controller(o->v1),
		.proc = o->proc,
		.sys = o->sys,
	};
	const struct runtimes_opts runtimes_opts = {
		.proc = o->proc,
		.table = o->runtimes,
		.n = o->n_runtimes,
	};
	const struct address_space_files files = {.loop = o->loop, .opened = on_opened, .ctx = s};
	int r = address_space_cache_new(o->proc, &s->spaces);

	if (!r)
		r = loop_add_timer(o->loop, on_opened_timer, s, &s->opened);
	if (!r)
		r = address_space_cache_open_behind(s->spaces, &files);
	if (!r)
		r = runtimes_new(&runtimes_opts, &s->runtimes);
	if (!r)
		address_space_cache_follow(s->spaces, catch_up, s);
	if (!r)
		r = start_events(s);
	if (!r)
		r = oncpu_new(&oncpu_opts, ret_why, &s->oncpu);
	if (!r)
		log_lacks(bpfobj_lacks(oncpu_object(s->oncpu)));
	if (!r)
		r = start_publisher(s, ret_why);
	if (!r)
		r = start_deferred(s);
	if (!r && o->off_cpu > 0)
		r = offcpu_new(oncpu_object(s->oncpu), o->off_cpu, OFFCPU_STACKS_MAX, ret_why,
			       &s->offcpu);
	if (!r)
		r = start_drain(s);
	return r;
}

int cpu_sampler_new(const struct cpu_sampler_opts *opts, struct bpfobj_why *ret_why,
		    struct cpu_sampler **ret)
{
	struct cpu_sampler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->tick_log.interval_ns = 60 * NSEC_PER_SEC;
	r = cpu_sampler_init(s, ret_why);
	if (r)
		cpu_sampler_free(s);
	else
		*ret = s;
	return r;
}

void cpu_sampler_free(struct cpu_sampler *s)
{
	if (!s)
		return;
	loop_remove(s->wake);
	loop_remove(s->opened);
	stop_drain(s);
	sideband_free(s->sideband);
	oncpu_stop(s->oncpu);
	offcpu_free(s->offcpu);
	deferred_unwind_free(s->deferred);
	s->deferred = NULL; /* tables that are being made still come */
	unwind_publisher_free(s->publisher);
	oncpu_free(s->oncpu);
	runtimes_free(s->runtimes);
	address_space_cache_free(s->spaces);
	free(s);
}

size_t cpu_sampler_pending(const struct cpu_sampler *s)
{
	return cpu_sampler_opening(s) + (s->publisher ? unwind_publisher_pending(s->publisher) : 0);
}

size_t cpu_sampler_opening(const struct cpu_sampler *s)
{
	return address_space_cache_opening(s->spaces);
}

void cpu_sampler_settle(struct cpu_sampler *s, struct cpu_stack *stack)
{
	wait_for_files(s, nsec_monotonic() + CPU_SAMPLER_LATE_NS);
	for (size_t i = 0; i < stack->n; i++) {
		struct frame settled = frame_settle(&stack->frames[i]);

		image_ref(settled.image);
		image_unref(stack->frames[i].image);
		stack->frames[i] = settled;
	}
}

uint64_t cpu_sampler_drains(const struct cpu_sampler *s)
{
	return s->n_drains;
}

const struct oncpu *cpu_sampler_oncpu(const struct cpu_sampler *s)
{
	return s->oncpu;
}

size_t cpu_sampler_address_space_bytes(const struct cpu_sampler *s)
{
	return address_space_cache_bytes(s->spaces);
}

void cpu_sampler_collect(void *ctx, struct metric_sink *sink)
{
	struct cpu_sampler *s = ctx;
	const struct stacks *kinds[2] = {oncpu_stacks(s->oncpu)};
	size_t n = 1;

	if (s->offcpu)
		kinds[n++] = offcpu_stacks(s->offcpu);
	stacks_collect(kinds, n, sink);
	oncpu_collect(s->oncpu, sink);
	if (s->sideband)
		sideband_collect(s->sideband, sink);
	address_space_cache_collect(s->spaces, sink);
	runtimes_collect(s->runtimes, sink);
	if (s->publisher)
		unwind_publisher_collect(s->publisher, sink);
	if (s->deferred)
		deferred_unwind_collect(s->deferred, sink);
}
