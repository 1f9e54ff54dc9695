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
#include "cpu/latestacks.h"
#include "procmap/lives.h"
#include "procmap/space.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/sideband.h"
#include "profile/stacks.h"
#include "unwindtable/unwinder.h"

struct cpu_sampler {
	struct cpu_sampler_opts opts;
	struct oncpu *oncpu;
	struct offcpu *offcpu;	   /* NULL: not wanted */
	struct sideband *sideband; /* NULL: refused by the kernel, or not our pids */
	struct space_cache *spaces;
	struct unwinder *unwinder; /* NULL: by frame pointers alone */
	struct late_stacks *late;  /* with it */
	struct loop_source *tick;
	struct loop_source *off_tick;
	struct loop_source *wake;
	struct loop_source *late_wake;
	struct log_limit tick_log;
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

/* Only the innermost pc of each part is where the task was; behind a system call's instruction it
 * is still in the function that made the call. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret)
{
	struct space *space = NULL;
	struct space_who who = {
		.pid = sample->pid,
		.start_ns = sample->start_boottime_ns,
		.exec_id = sample->exec_id,
	};
	int r = 0;

	if (!s->caught_up)
		catch_up(s);
	if (sample->n_user)
		r = space_cache_get(s->spaces, &who, &space);
	if (r)
		return r;
	if (s->unwinder && space)
		unwinder_sample(s->unwinder, sample, space);
	for (size_t i = 0; i < sample->n_kernel && ret->n < CPU_STACK_FRAMES_MAX; i++) {
		ret->return_address[ret->n] = i > 0;
		space_cache_kernel(s->spaces, sample->kernel[i], &ret->frames[ret->n++]);
	}
	for (size_t i = 0; i < sample->n_user && ret->n < CPU_STACK_FRAMES_MAX; i++) {
		struct frame frame;

		r = space_resolve(s->spaces, space, sample->user[i], &frame);
		if (r)
			return r;
		cpu_stack_push(ret, &frame, i > 0);
	}
	return 0;
}

/* ---------------------------------------------------------------- what happens to processes */

static void on_record(void *ctx, const struct sideband_record *record)
{
	static const enum lives_what whats[SIDEBAND_KIND_MAX] = {
		[SIDEBAND_FORK] = LIVES_BIRTH,
		[SIDEBAND_EXEC] = LIVES_EXEC,
		[SIDEBAND_MMAP] = LIVES_MAP,
		[SIDEBAND_EXIT] = LIVES_EXIT,
	};
	struct cpu_sampler *s = ctx;
	struct lives_event event = {
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
		space_cache_lost(s->spaces, record->since_ns); /* counted already */
		return;
	}
	space_cache_tell(s->spaces, &event);
	if (s->unwinder && record->kind == SIDEBAND_EXIT && record->tid == record->pid)
		unwinder_exit(s->unwinder, record->pid);
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
		log_warn("--proc-root is of another PID namespace, short-lived processes will have "
			 "no "
			 "names");
		return 0;
	}
	r = sideband_new(&opts, &s->sideband);
	if (r == -ENOMEM)
		return r;
	if (r) {
		log_warn("cannot follow processes, short-lived ones will have no names",
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
		log_warn("cannot read all samples, trying again", log_err(r),
			 log_uint("suppressed", suppressed));
}

/* Samples are about to be taken in. */
static void begin_samples(struct cpu_sampler *s, const struct stacks *stacks)
{
	space_cache_since(s->spaces, stacks_since_ns(stacks));
	s->caught_up = false;
}

/* Of a wait that was copied out the stack is in the copy, if that is there. */
static void on_wait(void *ctx, const struct sample *sample)
{
	struct cpu_sampler *s = ctx;

	if (sample->copy_id && s->late && late_stacks_back(s->late, sample)) {
		space_cache_since(s->spaces, stacks_since_ns(offcpu_stacks(s->offcpu)));
		return;
	}
	if (sample->copy_id)
		offcpu_walked(s->offcpu, sample);
	s->opts.off_fn(s->opts.ctx, sample);
}

static void on_off_tick(void *ctx)
{
	struct cpu_sampler *s = ctx;

	(void)take_events(s);
	begin_samples(s, offcpu_stacks(s->offcpu));
	note_unread(s, offcpu_tick(s->offcpu, on_wait, s));
	(void)loop_arm(s->off_tick, offcpu_interval_ns(s->offcpu), 0);
}

/* Copied stacks, and before them what happened until then. */
static void take_late(struct cpu_sampler *s)
{
	const uint64_t until_ns = take_events(s);

	if (s->late)
		note_unread(s, late_stacks_tick(s->late, until_ns));
}

static void on_tick(void *ctx)
{
	struct cpu_sampler *s = ctx;

	take_late(s);
	begin_samples(s, oncpu_stacks(s->oncpu));
	note_unread(s, oncpu_tick(s->oncpu, s->opts.fn, s->opts.ctx));
	if (s->unwinder)
		unwinder_tick(s->unwinder);
	(void)loop_arm(s->tick, oncpu_interval_ns(s->oncpu), 0);
}

/* The ring fills, between two ticks. */
static void on_late_wake(void *ctx, int fd, uint32_t events)
{
	struct cpu_sampler *s = ctx;

	(void)fd;
	(void)events;
	take_late(s);
}

static void on_late(void *ctx, enum copy_kind kind, const struct sample *sample)
{
	struct cpu_sampler *s = ctx;

	if (kind == COPY_OFFCPU) {
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

	if (s->late)
		late_stacks_ready(s->late, exe);
}

/* What a command that has just ended leaves: tables that its stacks wait for are made now. */
static void finish_late(struct cpu_sampler *s)
{
	const uint64_t end_ns = nsec_monotonic() + CPU_SAMPLER_LATE_NS;
	uint64_t now_ns;

	if (!s->late)
		return;
	(void)late_stacks_tick(s->late, UINT64_MAX);
	while (late_stacks_pending(s->late) && (now_ns = nsec_monotonic()) < end_ns)
		if (!unwinder_wait(s->unwinder, end_ns - now_ns))
			break;
	late_stacks_flush(s->late);
}

void cpu_sampler_finish(struct cpu_sampler *s)
{
	int r;

	(void)loop_disarm(s->tick);
	(void)take_events(s);
	begin_samples(s, oncpu_stacks(s->oncpu));
	r = oncpu_finish(s->oncpu, s->opts.fn, s->opts.ctx);
	if (!r && s->offcpu) {
		(void)loop_disarm(s->off_tick);
		begin_samples(s, offcpu_stacks(s->offcpu));
		r = offcpu_finish(s->offcpu, on_wait, s);
	}
	finish_late(s);
	if (r < 0)
		log_warn("cannot read the last samples, leaving them out", log_err(r));
}

void cpu_sampler_sweep(struct cpu_sampler *s)
{
	space_cache_sweep(s->spaces);
	if (s->unwinder)
		unwinder_sweep(s->unwinder);
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

static int start_unwinder(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct unwinder_opts opts = {
		.loop = s->opts.loop,
		.proc = s->opts.proc,
		.kernel = oncpu_unwind(s->oncpu),
		.table_bytes = s->opts.table_bytes ? s->opts.table_bytes : CPU_SAMPLER_TABLE_BYTES,
		.rows_dir = s->opts.rows_dir,
		.cache = s->opts.table_cache,
		.mode = s->opts.unwind,
		.ready = on_table,
		.ctx = s,
	};
	int r;

	if (s->opts.unwind == SETTINGS_UNWIND_FP)
		return 0;
	r = unwinder_new(&opts, &s->unwinder);
	if (r)
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "setting up the unwind tables failed (%s); --unwind=fp does without",
			 strerror(-r));
	return r;
}

static int start_late(struct cpu_sampler *s)
{
	const struct late_stacks_opts opts = {
		.maps = oncpu_copies(s->oncpu),
		.spaces = s->spaces,
		.unwinder = s->unwinder,
		.fn = on_late,
		.ctx = s,
	};
	int r = s->unwinder ? late_stacks_new(&opts, &s->late) : 0;

	if (r || !s->late)
		return r;
	return loop_add_fd(s->opts.loop, late_stacks_fd(s->late), EPOLLIN, on_late_wake, s,
			   &s->late_wake);
}

static int start_off_cpu(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	int r = offcpu_new(oncpu_object(s->oncpu), s->opts.off_cpu, OFFCPU_STACKS_MAX, ret_why,
			   &s->offcpu);

	if (!r)
		r = loop_add_timer(s->opts.loop, on_off_tick, s, &s->off_tick);
	return r ? r : loop_arm(s->off_tick, offcpu_interval_ns(s->offcpu), 0);
}

static int cpu_sampler_init(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct cpu_sampler_opts *o = &s->opts;
	const struct oncpu_opts oncpu_opts = {
		.rate_hz = o->rate_hz,
		.event = o->event,
		.period = o->period,
		.wanted = o->wanted,
		.kernel_stacks = o->kernel_stacks,
		.unwind = o->unwind,
		.copies = o->unwind != SETTINGS_UNWIND_FP,
		.offcpu = o->off_cpu > 0,
		.unsafe_kernel = o->unsafe_kernel,
		.interval_ns = o->interval_ns,
		.v1 = v1_of_controller(o->v1),
		.proc = o->proc,
		.sys = o->sys,
	};
	int r = space_cache_new(o->proc, &s->spaces);

	if (!r)
		space_cache_follow(s->spaces, catch_up, s);
	if (!r)
		r = start_events(s);
	if (!r)
		r = loop_add_timer(o->loop, on_tick, s, &s->tick);
	if (!r)
		r = oncpu_new(&oncpu_opts, ret_why, &s->oncpu);
	if (!r)
		r = start_unwinder(s, ret_why);
	if (!r)
		r = start_late(s);
	if (!r && o->off_cpu > 0)
		r = start_off_cpu(s, ret_why);
	if (!r)
		r = loop_arm(s->tick, oncpu_interval_ns(s->oncpu), 0);
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
	loop_remove(s->tick);
	loop_remove(s->off_tick);
	loop_remove(s->wake);
	loop_remove(s->late_wake);
	sideband_free(s->sideband);
	oncpu_stop(s->oncpu);
	offcpu_free(s->offcpu);
	late_stacks_free(s->late);
	s->late = NULL; /* tables that are being made still come */
	unwinder_free(s->unwinder);
	oncpu_free(s->oncpu);
	space_cache_free(s->spaces);
	free(s);
}

size_t cpu_sampler_pending(const struct cpu_sampler *s)
{
	return s->unwinder ? unwinder_pending(s->unwinder) : 0;
}

const struct oncpu *cpu_sampler_oncpu(const struct cpu_sampler *s)
{
	return s->oncpu;
}

size_t cpu_sampler_space_bytes(const struct cpu_sampler *s)
{
	return space_cache_bytes(s->spaces);
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
	space_cache_collect(s->spaces, sink);
	if (s->unwinder)
		unwinder_collect(s->unwinder, sink);
	if (s->late)
		late_stacks_collect(s->late, sink);
}
