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
#include "cpu/deferred_unwind.h"
#include "cpu/waiting_samples.h"
#include "cpu/young_processes.h"
#include "discovery/discovery.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/process_history.h"
#include "profile/cpu_hotplug.h"
#include "profile/drain.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/runtime_loader.h"
#include "profile/sideband.h"
#include "profile/stacks.h"
#include "runtimes/runtimes.h"
#include "unwindtable/unwind_publisher.h"

/* Interval of polling the threads that read lists and open files, at the end. */
#define CPU_SAMPLER_LOOK_NS	(50 * NSEC_PER_MSEC)
/* Process events of a turn of the loop, about 1 us each; and turns with events alone, after which
 * samples are taken in any case. */
#define CPU_SAMPLER_EVENTS	4096
#define CPU_SAMPLER_EVENT_TURNS 20
/* Samples of a turn, stack dumps of a turn, and samples that waited: for so long, and one more. A
 * sample of a process with thousands of mappings takes a millisecond while the process maps files.
 */
#define CPU_SAMPLER_SLICE_NS	(5 * NSEC_PER_MSEC)
/* Period of the look for processes that have ended: a fourth of the time for which their events
 * stay. */
#define CPU_SAMPLER_EXPIRE_NS	(5 * NSEC_PER_SEC)
/* Sweeps from one look for ended processes in /proc to the next, while events tell of all. */
#define CPU_SAMPLER_CHECK	16

struct cpu_sampler {
	struct cpu_sampler_opts opts;
	struct oncpu *oncpu;
	struct offcpu *offcpu; /* NULL: not requested */
	struct sideband
		*sideband; /* NULL: refused by the kernel, or /proc is of another PID namespace */
	struct address_space_cache *spaces;
	struct runtimes *runtimes;
	struct runtime_loader *loader;
	struct unwind_publisher *publisher; /* NULL: by frame pointers alone */
	struct deferred_unwind *deferred;   /* with it */
	struct waiting_samples *waiting;
	struct sample_time taken; /* the samples that are delivered */
	uint64_t taken_ns[2];	  /* on-CPU, off-CPU: when the drain's first were taken; 0: none */
	struct drain *drain;
	struct loop_source *drained;
	struct loop_source *opened; /* files, tables and names that stacks waited for */
	int hotplug_fd;		    /* -1: the kernel does not tell, so each tick looks */
	struct loop_source *hotplug;
	struct loop_source *follow;
	struct log_limit tick_log;
	uint64_t n_drains;
	unsigned int event_turns; /* without samples, so far */
	uint64_t expired_ns;	  /* boot clock: last look for ended processes */
	unsigned int n_sweeps;
	bool lost;	       /* events since the last check of ended processes */
	bool runtimes_sampled; /* frames of a runtime in the last drain: their names are in memory
				  of the process, which may end */
	struct young_processes young; /* with a runtime without excerpts */
	bool caught_up; /* of the next samples; all earlier events are in the history */
};

void cpu_stack_deinit(struct cpu_stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		image_unref(stack->frames[i].image);
}

/* Takes the frame's reference. All unknown frames get the address 0, so that stacks with different
 * unknown addresses are equal. */
static void cpu_stack_push(struct cpu_stack *stack, struct frame *frame, bool is_return)
{
	if (frame->image->kind == IMAGE_RUNTIME && !frame->image->function.name[0]) {
		image_unref(frame->image);
		return;
	}
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

/* Read all events before these samples. The samples are read first, so every earlier event is in
 * the rings or queues, and events younger than SIDEBAND_ARRIVAL_NS need not be held back. */
static void catch_up(void *ctx)
{
	struct cpu_sampler *s = ctx;

	s->caught_up = true;
	if (s->sideband)
		sideband_drain(s->sideband, nsec_boot(), SIZE_MAX, on_record, s);
}

/* The address of native code, or of a runtime's that is no function; 0: another frame. */
static uint64_t address_of(const struct frame_record *frame, bool is_return)
{
	if (frame->kind == FRAME_NATIVE)
		return frame->words[0] - is_return;
	return frame_is_code(frame) ? frame->words[1] : 0;
}

/* A runtime's code that is no function has a name of its own in a perf map or jitdump, if there is
 * one. */
static int resolve_code(struct cpu_sampler *s, const struct address_space_who *who,
			struct address_space *space, const struct frame_record *frame,
			struct frame *ret)
{
	int r = address_space_resolve(s->spaces, space, frame->words[1], ret);

	if (r || image_perf_map(ret->image) >= 0 || image_jitdump(ret->image) >= 0)
		return r;
	image_unref(ret->image);
	return runtimes_resolve(s->runtimes, who, frame, ret);
}

/* The place of a frame; @ret owns a reference. 0 or -ENOMEM. */
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
		if (frame_is_code(frame))
			return resolve_code(s, who, space, frame, ret);
		return runtimes_resolve(s->runtimes, who, frame, ret);
	}
}

static struct address_space_who who_of(const struct cpu_sampler *s, const struct sample *sample)
{
	return (struct address_space_who){
		.pid = sample->pid,
		.start_ns = sample->start_boottime_ns,
		.exec_id = sample->exec_id,
		.owner =
			discovery_owner(s->opts.discovery, sample->cgroup_id, sample->cgroup_v1_id),
	};
}

/* Only the innermost pc of each half is the place of execution, the others are return addresses. A
 * system call ends at the next instruction, which belongs to the same function. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret)
{
	struct address_space *space = NULL;
	const struct address_space_who who = who_of(s, sample);
	struct frame_record record;
	struct frame frame;
	size_t at = 0;
	int r = 0;

	memcpy(ret->thread, sample->thread, sizeof(ret->thread));
	memcpy(ret->task, sample->task, sizeof(ret->task));
	ret->is_truncated = sample->end != SAMPLE_END_COMPLETE && sample->end != SAMPLE_END_NO_USER;
	ret->is_lost = sample_is_lost(sample);
	if (!s->caught_up)
		catch_up(s);
	if (sample->n_user)
		r = address_space_cache_get(s->spaces, &who, &space);
	if (r)
		return r;
	if (space && sample_lost_caller(sample))
		(void)address_space_seek_memory(s->spaces, space); /* for the next samples */
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
		s->lost = true;
		address_space_cache_lost(s->spaces, record->since_ns); /* counted already */
		return;
	}
	if (record->kind == SIDEBAND_EXIT)
		young_processes_end(&s->young, record->pid);
	address_space_cache_event(s->spaces, &event);
	if (s->publisher && record->kind == SIDEBAND_EXIT)
		unwind_publisher_exit(s->publisher, record->pid);
}

/* Takes up to @max events. False if there are more. *@ret_until_ns: the time (boot clock) up to
 * which all events are known then; without events UINT64_MAX. */
static bool take_events(struct cpu_sampler *s, size_t max, uint64_t *ret_until_ns)
{
	*ret_until_ns = s->sideband ? sideband_until() : UINT64_MAX;
	return !s->sideband || sideband_drain(s->sideband, *ret_until_ns, max, on_record, s) < max;
}

/* Without events, a process that ends before the first reading of its mappings has no names. Not an
 * error. */
static int start_events(struct cpu_sampler *s)
{
	const struct sideband_opts opts = {.sys = s->opts.sys,
					   .queue_bytes = s->opts.event_queue_bytes};
	int r;

	/* events have the pids of the agent's own namespace */
	if (!pid_is_ours(s->opts.proc)) {
		log_warn("--proc-root belongs to another PID namespace, short-lived processes will "
			 "have no names");
		return 0;
	}
	r = sideband_new(&opts, &s->sideband);
	if (r == -ENOMEM)
		return r;
	if (r)
		log_warn("cannot follow processes, short-lived processes will have no names",
			 log_err(r));
	return 0;
}

/* ---------------------------------------------------------------- samples */

static void note_unread(struct cpu_sampler *s, int r)
{
	uint64_t suppressed;

	if (r < 0 && log_limit_ok(&s->tick_log, &suppressed))
		log_warn("cannot read all samples, retrying", log_err(r),
			 log_uint("suppressed", suppressed));
}

/* Looks at all CPUs, with an interrupt of each: only when CPUs may have changed. */
static void follow(void *ctx)
{
	struct cpu_sampler *s = ctx;

	note_unread(s, oncpu_follow(s->oncpu));
	if (s->sideband)
		(void)sideband_follow(s->sideband);
}

/* The second look finds the events of CPUs that went and came back before the first. */
static void on_hotplug(void *ctx, int fd, uint32_t events)
{
	struct cpu_sampler *s = ctx;

	(void)events;
	if (!cpu_hotplug_read(fd))
		return;
	follow(s);
	(void)loop_arm(s->follow, NSEC_PER_SEC, 0);
}

static int start_hotplug(struct cpu_sampler *s)
{
	int r = loop_add_timer(s->opts.loop, follow, s, &s->follow);

	s->hotplug_fd = cpu_hotplug_open();
	if (!r && s->hotplug_fd >= 0)
		r = loop_add_fd(s->opts.loop, s->hotplug_fd, EPOLLIN, on_hotplug, s, &s->hotplug);
	return r;
}

/* Whether a thread reads names of the sample's frames, or will. */
static bool lacks_names(const struct cpu_sampler *s, const struct sample *sample,
			const struct address_space_who *who)
{
	struct frame_record frame;
	bool lacks = false;
	size_t at = 0;

	while (sample_user_next(sample, &at, &frame))
		if (frame.kind != FRAME_NATIVE) /* all, for a batch */
			lacks = runtimes_wants(s->runtimes, who, &frame) || lacks;
	return lacks;
}

/* Whether a thread reads the mappings that the sample needs, or names of its frames. */
static bool must_wait(struct cpu_sampler *s, const struct sample *sample,
		      const struct address_space_who *who)
{
	struct address_space *space;
	struct frame_record frame;
	size_t at = 0;
	bool reading;

	if (!sample->n_user)
		return false;
	if (!s->caught_up)
		catch_up(s);
	if (address_space_cache_get(s->spaces, who, &space))
		return false; /* fails again where it is counted */
	reading = address_space_reading(space);
	while (sample_user_next(sample, &at, &frame)) {
		const uint64_t pc = address_of(&frame, at > 1);

		reading = reading || (pc && address_space_seek(s->spaces, space, pc));
	}
	return lacks_names(s, sample, who) || reading;
}

static void deliver(struct cpu_sampler *s, const struct sample *sample, bool off_cpu)
{
	(off_cpu ? s->opts.off_fn : s->opts.fn)(s->opts.ctx, sample);
}

/* Delivers a sample now, or when the mappings of its process are known. */
static void pass_on(struct cpu_sampler *s, const struct sample *sample, bool off_cpu)
{
	const struct address_space_who who = who_of(s, sample);

	s->runtimes_sampled |= sample->n_runtime > 0;
	if (!must_wait(s, sample, &who) ||
	    !waiting_samples_add(s->waiting, sample, who.owner, off_cpu, &s->taken))
		deliver(s, sample, off_cpu);
}

static bool on_waiting(void *ctx, const struct sample *sample, bool off_cpu,
		       const struct sample_time *taken, bool force)
{
	struct cpu_sampler *s = ctx;
	const struct address_space_who who = who_of(s, sample);

	address_space_cache_between(s->spaces, taken->since_ns, taken->until_ns);
	if (!force && must_wait(s, sample, &who))
		return false;
	deliver(s, sample, off_cpu);
	return true;
}

enum taken { TAKEN_NONE, TAKEN_SOME, TAKEN_ALL };

/* Takes samples of a drain, until @end_ns (monotonic) and at least one. */
static enum taken take_samples(struct cpu_sampler *s, struct stacks *stacks, uint64_t end_ns,
			       sample_fn fn)
{
	const bool off_cpu = stacks != oncpu_stacks(s->oncpu);
	uint64_t *taken_ns = &s->taken_ns[off_cpu];
	uint64_t until_ns;

	if (!stacks_next(stacks))
		return TAKEN_NONE;
	if (!*taken_ns) {
		*taken_ns = nsec_boot();
		s->runtimes_sampled = s->runtimes_sampled && off_cpu;
	}
	until_ns = stacks_until_ns(stacks);
	s->taken = (struct sample_time){stacks_since_ns(stacks), *taken_ns};
	address_space_cache_between(s->spaces, s->taken.since_ns, s->taken.until_ns);
	s->caught_up = false;
	if (stacks_deliver_until(stacks, end_ns, fn, s)) {
		runtimes_flush(s->runtimes);
		return TAKEN_SOME;
	}
	*taken_ns = 0;
	runtimes_flush(s->runtimes);
	if (s->opts.drained)
		s->opts.drained(s->opts.ctx, off_cpu, until_ns);
	return TAKEN_ALL;
}

static void on_sample(void *ctx, const struct sample *sample)
{
	pass_on(ctx, sample, false);
}

/* The stack of a wait with a dump comes from the dump, if it has arrived. */
static void on_wait(void *ctx, const struct sample *sample)
{
	struct cpu_sampler *s = ctx;

	if (sample->dump_id && s->deferred && deferred_unwind_back(s->deferred, sample)) {
		address_space_cache_between(s->spaces, s->taken.since_ns, s->taken.until_ns);
		return;
	}
	if (sample->dump_id)
		offcpu_walked(s->offcpu, sample);
	pass_on(s, sample, true);
}

/* Take the events before stack dumps and samples. False: there are more than for one turn, and the
 * samples wait for the next one. */
static bool take_earlier(struct cpu_sampler *s, uint64_t *ret_until_ns)
{
	const bool last = s->event_turns == CPU_SAMPLER_EVENT_TURNS;

	s->event_turns++;
	if (!take_events(s, last ? SIZE_MAX : CPU_SAMPLER_EVENTS, ret_until_ns))
		return false;
	s->event_turns = 0;
	return true;
}

/* Whether dumps are left for the next turn. */
static bool walk_deferred(struct cpu_sampler *s, uint64_t until_ns)
{
	int r = s->deferred ? deferred_unwind_tick(s->deferred, until_ns,
						   nsec_monotonic() + CPU_SAMPLER_SLICE_NS)
			    : 0;

	note_unread(s, r);
	return r == DEFERRED_UNWIND_MORE;
}

/* Without the walk of a runtime its frames have no names. Without tables stacks are cut, so on a
 * starved node these come first. */
static void load_runtimes(struct cpu_sampler *s)
{
	runtime_loader_tick(s->loader, s->publisher && unwind_publisher_pending(s->publisher),
			    nsec_monotonic());
}

/* After each on-CPU drain, also one without samples: about once an interval. */
static void tick(struct cpu_sampler *s)
{
	s->n_drains++;
	if (s->hotplug_fd < 0 || !oncpu_whole(s->oncpu) ||
	    (s->sideband && !sideband_whole(s->sideband)))
		follow(s);
	if (s->publisher)
		unwind_publisher_tick(s->publisher);
	load_runtimes(s);
}

static bool has_samples(const struct cpu_sampler *s)
{
	return stacks_next_since_ns(oncpu_stacks(s->oncpu)) != UINT64_MAX ||
	       (s->offcpu && stacks_next_since_ns(offcpu_stacks(s->offcpu)) != UINT64_MAX);
}

/* Time of the oldest sample that the loop has not taken; now if it has taken all. */
static uint64_t oldest_ns(const struct cpu_sampler *s)
{
	uint64_t oldest = nsec_boot(), since = stacks_next_since_ns(oncpu_stacks(s->oncpu));

	if (since < oldest)
		oldest = since;
	since = s->offcpu ? stacks_next_since_ns(offcpu_stacks(s->offcpu)) : UINT64_MAX;
	return since < oldest ? since : oldest;
}

/* The events of an ended process take as much memory as those of a running one: on a node with many
 * short processes a window is too long. */
static void expire(struct cpu_sampler *s)
{
	const uint64_t since_ns = oldest_ns(s);

	if (since_ns < s->expired_ns + CPU_SAMPLER_EXPIRE_NS)
		return;
	s->expired_ns = since_ns;
	address_space_cache_expire(s->spaces, since_ns);
}

/* A slice of one drain of each kind a turn: the loop has other things to do. */
static void on_drained(void *ctx, int fd, uint32_t events)
{
	struct cpu_sampler *s = ctx;
	uint64_t n, until_ns;
	bool more;

	(void)events;
	(void)!read(fd, &n, sizeof(n));
	note_unread(s, drain_error(s->drain));
	if (!take_earlier(s, &until_ns)) {
		drain_again(s->drain);
		return;
	}
	expire(s);
	more = walk_deferred(s, until_ns);
	if (waiting_samples_n(s->waiting)) /* some may have waited too long */
		(void)loop_arm(s->opened, 1, 0);
	if (take_samples(s, oncpu_stacks(s->oncpu), nsec_monotonic() + CPU_SAMPLER_SLICE_NS,
			 on_sample) == TAKEN_ALL)
		tick(s);
	if (s->offcpu)
		(void)take_samples(s, offcpu_stacks(s->offcpu),
				   nsec_monotonic() + CPU_SAMPLER_SLICE_NS, on_wait);
	runtimes_flush(s->runtimes); /* for stack dumps, too */
	drain_set_soon(s->drain, young_processes_since_ns(&s->young, nsec_monotonic()));
	more |= has_samples(s);
	if (more)
		drain_again(s->drain);
	drain_set_busy(s->drain, more || s->runtimes_sampled || cpu_sampler_pending(s) ||
					 (s->deferred && deferred_unwind_pending(s->deferred)));
}

/* Its mappings are known. */
static void on_deferred(void *ctx, enum stack_dump_kind kind, const struct sample *sample,
			uint64_t time_ns)
{
	const struct sample_time taken = {time_ns, time_ns};
	struct cpu_sampler *s = ctx;
	const struct address_space_who who = who_of(s, sample);
	const bool off_cpu = kind == STACK_DUMP_OFFCPU;

	if (off_cpu)
		offcpu_walked(s->offcpu, sample);
	else
		oncpu_walked(s->oncpu, sample);
	if (!lacks_names(s, sample, &who) ||
	    !waiting_samples_add(s->waiting, sample, who.owner, off_cpu, &taken))
		deliver(s, sample, off_cpu);
}

static void on_table(void *ctx, uint16_t exe, uint32_t round)
{
	struct cpu_sampler *s = ctx;

	load_runtimes(s);
	if (!s->deferred)
		return;
	deferred_unwind_ready(s->deferred, exe, round);
	(void)loop_arm(s->opened, 1, 0);
}

/* Called after each batch of the threads: the loop delivers the stacks. */
static void on_opened(void *ctx, uint64_t pid)
{
	struct cpu_sampler *s = ctx;

	waiting_samples_changed(s->waiting, pid);
	if (s->deferred)
		deferred_unwind_opened(s->deferred, pid);
	(void)loop_arm(s->opened, 1, 0);
}

/* A reader's answers: an interpreter in a process, names of its functions. */
static void on_runtime(void *ctx, uint32_t runtime, const struct address_space_who *who)
{
	struct cpu_sampler *s = ctx;
	struct address_space *space;

	if (s->drain && !runtimes_has_excerpts(s->runtimes, runtime)) {
		const uint64_t now_ns = nsec_monotonic();

		young_processes_add(&s->young, who->pid.pid, who->owner, now_ns);
		drain_set_soon(s->drain, young_processes_since_ns(&s->young, now_ns));
	}
	if (s->publisher && !address_space_cache_get(s->spaces, who, &space))
		unwind_publisher_runtime(s->publisher, runtime, who, space);
}

static void on_named(void *ctx, uint64_t pid)
{
	struct cpu_sampler *s = ctx;

	waiting_samples_changed(s->waiting, pid);
	(void)loop_arm(s->opened, 1, 0);
}

static void on_opened_timer(void *ctx)
{
	struct cpu_sampler *s = ctx;
	bool more =
		waiting_samples_retry(s->waiting, false, nsec_monotonic() + CPU_SAMPLER_SLICE_NS);

	if (s->deferred)
		more |= deferred_unwind_retry(s->deferred, nsec_monotonic() + CPU_SAMPLER_SLICE_NS);
	runtimes_flush(s->runtimes);
	if (more)
		(void)loop_arm(s->opened, 1, 0);
}

static void wait_for_files(struct cpu_sampler *s, uint64_t end_ns)
{
	while (cpu_sampler_opening(s) && nsec_monotonic() < end_ns)
		address_space_cache_wait(s->spaces, CPU_SAMPLER_LOOK_NS);
}

/* The last samples whose processes' mappings are not known yet, and then their files. */
static void wait_for_mappings(struct cpu_sampler *s, uint64_t end_ns)
{
	while (waiting_samples_n(s->waiting) &&
	       (cpu_sampler_opening(s) || runtimes_pending(s->runtimes)) &&
	       nsec_monotonic() < end_ns) {
		if (cpu_sampler_opening(s))
			address_space_cache_wait(s->spaces, CPU_SAMPLER_LOOK_NS);
		if (runtimes_pending(s->runtimes))
			runtimes_wait(s->runtimes, CPU_SAMPLER_LOOK_NS);
		(void)waiting_samples_retry(s->waiting, false, UINT64_MAX);
		runtimes_flush(s->runtimes);
	}
	(void)waiting_samples_retry(s->waiting, true, UINT64_MAX);
	wait_for_files(s, end_ns);
}

/* At the end of a recorded command: read the mappings, open the files and make the tables for which
 * its stacks wait. */
static void finish_deferred(struct cpu_sampler *s)
{
	const uint64_t end_ns = nsec_monotonic() + CPU_SAMPLER_LATE_NS;
	uint64_t now_ns;

	if (s->deferred)
		(void)deferred_unwind_tick(s->deferred, UINT64_MAX, UINT64_MAX);
	wait_for_mappings(s, end_ns);
	if (!s->deferred)
		return;
	(void)deferred_unwind_retry(s->deferred, UINT64_MAX);
	while (deferred_unwind_pending(s->deferred) && (now_ns = nsec_monotonic()) < end_ns) {
		bool opening = cpu_sampler_opening(s);

		wait_for_files(s, end_ns);
		(void)deferred_unwind_retry(s->deferred, UINT64_MAX);
		if (!unwind_publisher_wait(s->publisher, end_ns - now_ns) && !opening)
			break;
	}
	deferred_unwind_flush(s->deferred);
	runtimes_flush(s->runtimes);
	wait_for_mappings(s, end_ns);
}

static void stop_drain(struct cpu_sampler *s)
{
	loop_remove(s->drained);
	s->drained = NULL;
	drain_free(s->drain);
	s->drain = NULL;
}

void cpu_sampler_drain(struct cpu_sampler *s)
{
	if (s->drain)
		drain_now(s->drain);
}

void cpu_sampler_finish(struct cpu_sampler *s)
{
	uint64_t until_ns;
	int r;

	stop_drain(s);
	runtime_loader_end(s->loader);
	oncpu_stop(s->oncpu);
	(void)take_events(s, SIZE_MAX, &until_ns);
	r = stacks_fetch_rest(oncpu_stacks(s->oncpu));
	while (take_samples(s, oncpu_stacks(s->oncpu), UINT64_MAX, on_sample))
		;
	if (!r && s->offcpu) {
		offcpu_stop(s->offcpu);
		r = stacks_fetch_rest(offcpu_stacks(s->offcpu));
		while (take_samples(s, offcpu_stacks(s->offcpu), UINT64_MAX, on_wait))
			;
	}
	finish_deferred(s);
	if (r < 0)
		log_warn("cannot read the last samples, dropping them", log_err(r));
}

void cpu_sampler_sweep(struct cpu_sampler *s)
{
	const bool check = !s->sideband || s->lost || ++s->n_sweeps % CPU_SAMPLER_CHECK == 0;

	s->lost = false;
	address_space_cache_sweep(s->spaces, oldest_ns(s));
	runtimes_sweep(s->runtimes);
	if (s->publisher)
		unwind_publisher_sweep(s->publisher, check);
}

void cpu_sampler_child(struct cpu_sampler *s, const struct pid_id *child)
{
	if (s->sideband)
		address_space_cache_child(s->spaces, child);
}

/* The BPF setting for the version 1 hierarchy of discovery. */
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
		/* no container is in one of these alone */
	};

	return map[controller];
}

static void on_runtime_wanted(void *ctx, uint32_t runtime)
{
	struct cpu_sampler *s = ctx;

	runtime_loader_want(s->loader, runtime, nsec_monotonic());
	load_runtimes(s);
}

static int start_publisher(struct cpu_sampler *s, struct bpfobj_why *ret_why)
{
	const struct unwind_publisher_opts opts = {
		.loop = s->opts.loop,
		.proc = s->opts.proc,
		.kernel = oncpu_unwind(s->oncpu),
		.table_bytes = s->opts.table_bytes ? s->opts.table_bytes : CPU_SAMPLER_TABLE_BYTES,
		.all_tables = s->opts.all_tables,
		.runtimes = s->runtimes,
		.wanted = on_runtime_wanted,
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
		.discovery = s->opts.discovery,
		.fn = on_deferred,
		.ctx = s,
	};

	return s->publisher ? deferred_unwind_new(&opts, &s->deferred) : 0;
}

static int start_drain(struct cpu_sampler *s)
{
	struct drain_opts opts = {
		.stacks = {oncpu_stacks(s->oncpu)},
		.n = 1,
		.sideband = s->sideband,
		.idle_ns = s->opts.idle_ns,
	};
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
		.thread_names = o->thread_names,
		.task_names = o->task_names,
		.stack_dumps = o->unwind != SETTINGS_UNWIND_FP,
		.offcpu = o->off_cpu > 0,
		.unsafe_kernel = o->unsafe_kernel,
		.interval_ns = o->interval_ns,
		.v1 = v1_of_controller(o->v1),
		.proc = o->proc,
		.sys = o->sys,
	};
	const struct runtimes_opts runtimes_opts = {
		.host = {.proc = o->proc,
			 .loop = o->loop,
			 .task_names = o->task_names,
			 .expected = on_runtime_wanted,
			 .found = on_runtime,
			 .named = on_named,
			 .ctx = s},
		.table = o->runtimes,
		.n = o->n_runtimes,
	};
	const struct address_space_files files = {.loop = o->loop, .opened = on_opened, .ctx = s};
	int r = address_space_cache_new(o->proc, &s->spaces);

	if (!r)
		r = waiting_samples_new(on_waiting, s, &s->waiting);
	if (!r)
		r = loop_add_timer(o->loop, on_opened_timer, s, &s->opened);
	if (!r)
		r = address_space_cache_open_behind(s->spaces, &files);
	if (!r)
		r = runtimes_new(&runtimes_opts, &s->runtimes);
	if (!r)
		r = start_events(s);
	if (!r && s->sideband)
		address_space_cache_follow(s->spaces, catch_up, s);
	if (!r)
		r = oncpu_new(&oncpu_opts, ret_why, &s->oncpu);
	if (!r && bpfobj_lacks_dumps(oncpu_object(s->oncpu)))
		log_warn("before Linux 6.13 a real-time kernel gives no stack dumps, stacks of new "
			 "processes may be cut");
	if (!r)
		r = runtime_loader_new(o->loop, oncpu_object(s->oncpu), o->urgent_runtimes,
				       &s->loader);
	if (!r)
		r = start_publisher(s, ret_why);
	if (!r)
		r = start_deferred(s);
	if (!r && o->off_cpu > 0)
		r = offcpu_new(oncpu_object(s->oncpu), o->off_cpu, OFFCPU_STACKS_MAX, ret_why,
			       &s->offcpu);
	if (!r)
		r = start_hotplug(s);
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
	s->hotplug_fd = -1;
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
	loop_remove(s->opened);
	loop_remove(s->hotplug);
	loop_remove(s->follow);
	close_fdp(&s->hotplug_fd);
	stop_drain(s);
	sideband_free(s->sideband);
	oncpu_stop(s->oncpu);
	offcpu_free(s->offcpu);
	deferred_unwind_free(s->deferred);
	s->deferred = NULL; /* tables under construction still arrive here */
	unwind_publisher_free(s->publisher);
	runtime_loader_free(s->loader);
	oncpu_free(s->oncpu);
	runtimes_free(s->runtimes);
	address_space_cache_free(s->spaces);
	waiting_samples_free(s->waiting);
	free(s);
}

size_t cpu_sampler_pending(const struct cpu_sampler *s)
{
	return cpu_sampler_opening(s) + runtime_loader_pending(s->loader) +
	       (s->publisher ? unwind_publisher_pending(s->publisher) : 0);
}

size_t cpu_sampler_loading(const struct cpu_sampler *s)
{
	return runtime_loader_pending(s->loader);
}

size_t cpu_sampler_reading(const struct cpu_sampler *s)
{
	return runtimes_pending(s->runtimes);
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

const struct address_space_cache *cpu_sampler_address_spaces(const struct cpu_sampler *s)
{
	return s->spaces;
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
	runtime_loader_collect(s->loader, sink);
	if (s->sideband)
		sideband_collect(s->sideband, sink);
	address_space_cache_collect(s->spaces, sink);
	waiting_samples_collect(s->waiting, sink);
	runtimes_collect(s->runtimes, sink);
	if (s->publisher)
		unwind_publisher_collect(s->publisher, sink);
	if (s->deferred)
		deferred_unwind_collect(s->deferred, sink);
}
