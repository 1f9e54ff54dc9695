// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-CPU samples. A clock on each CPU interrupts the running thread at the sampling rate. The
 * program takes the stack and adds one to its count. Equal stacks share one map entry, so that a
 * busy loop costs user space as much as a single sample.
 */
#include "lib/cgroup_sampling.bpf.h"
#include "lib/excerpt_python.bpf.h"
#include "lib/pid_filter.bpf.h"
#include "lib/stack.bpf.h"
#include "lib/stack_dump.bpf.h"

char oncpu_license[] SEC("license") = "Dual BSD/GPL";

volatile __u32 oncpu_generation = 0;

struct stacks_small oncpu_small_0 SEC(".maps");
struct stacks_small oncpu_small_1 SEC(".maps");
struct stacks_large oncpu_large_0 SEC(".maps");
struct stacks_large oncpu_large_1 SEC(".maps");
struct stacks_deep oncpu_deep_0 SEC(".maps");
struct stacks_deep oncpu_deep_1 SEC(".maps");
struct stacks_lost oncpu_lost_0 SEC(".maps");
struct stacks_lost oncpu_lost_1 SEC(".maps");
struct stack_stats oncpu_stats SEC(".maps");
/* The kernel runs one perf_event program at a time on a CPU (bpf_prog_active), so the sample under
 * way has this to itself. */
struct stack_scratch oncpu_scratch SEC(".maps");
struct stack_rooms oncpu_rooms SEC(".maps");
struct stack_objects oncpu_objects SEC(".maps");
struct stack_trails oncpu_trails SEC(".maps");
struct stack_dump_scratch oncpu_dump_scratch SEC(".maps");

/* oncpu_walk or oncpu_walk_part, the walks of each runtime, and oncpu_dump; filled by user space.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SETTINGS_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} oncpu_programs SEC(".maps");

static __always_inline int oncpu_done(__u32 stat)
{
	stack_count(&oncpu_stats, stat);
	stack_running(&oncpu_stats, 0);
	return 0;
}

/* User registers into s->regs: the event's own if it interrupted user code, else the registers
 * saved at the task's entry into the kernel. False for a task without user registers. */
static __always_inline int oncpu_regs(struct regs_event *ctx, struct task_struct *task,
				      struct stack *s)
{
	if (task_is_kernel(task))
		return 0;
	if (!regs_user_mode(&ctx->regs))
		return stack_saved_regs(task, s);
	s->regs = ctx->regs;
	return 1;
}

/* @c: of the walk of a runtime with tasks, else NULL: known to the compiler. */
static __always_inline __u32 oncpu_add(struct stack *s, const struct walk_ctx *c)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!stack_finish(s, 1, s->weight))
		return SAMPLE_STAT_NO_FRAMES;
	stack_thread(task, s);
	if (c)
		stack_task(s, c);
	if (oncpu_generation & 1)
		return stack_add(&oncpu_small_1, &oncpu_large_1, &oncpu_deep_1, &oncpu_lost_1, task,
				 s);
	return stack_add(&oncpu_small_0, &oncpu_large_0, &oncpu_deep_0, &oncpu_lost_0, task, s);
}

/* Everything but the user half's callers. */
SEC("perf_event")
int oncpu_sample(struct regs_event *ctx)
{
	struct task_struct *task = task_current();
	__u32 zero = 0, stat;
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);

	stack_running(&oncpu_stats, 1);
	if (!s)
		return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
	if (!(bpf_get_current_pid_tgid() >> 32))
		return oncpu_done(SAMPLE_STAT_IDLE);
	stack_cgroups(task, s);
	stat = cgroup_sampling_take(s);
	if (stat != SAMPLE_STAT_MAX)
		return oncpu_done(stat);
	stack_begin(task, s);
	if (!s->key.tgid)
		return oncpu_done(SAMPLE_STAT_OUTSIDE);
	if (!pid_filter_match(&s->key))
		return oncpu_done(SAMPLE_STAT_FILTERED);
	if (!regs_user_mode(&ctx->regs))
		stack_kernel(ctx, s, 0);
	if (oncpu_regs(ctx, task, s))
		stack_user(s);
	if (stack_dump_before(s))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP);
	if (stack_dump_names(s))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP_PYTHON);
	/* Falls through to the native walk if the runtime's is not loaded. */
	if (s->walk.runtime)
		bpf_tail_call(ctx, &oncpu_programs, s->walk.runtime);
	bpf_tail_call(ctx, &oncpu_programs, SETTINGS_WALK);
	return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
}

static __always_inline struct stack_dump_record *oncpu_dump_record(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&oncpu_dump_scratch, &zero);
}

/* Copy the stack for the agent into the record, or the next part of it. STACK_DUMP_TAKEN: it is
 * filled. The registers again: the walk may have left those of a signal frame. */
static __always_inline __u32 oncpu_dump_fill(struct regs_event *ctx, struct stack_dump_record *c,
					     struct stack *s, struct window *win)
{
	struct task_struct *task = task_current();
	__u32 stat;

	if (s->dumped) {
		stat = stack_dump_continue(c);
	} else {
		if (!oncpu_regs(ctx, task, s))
			return STACK_DUMP_UNREADABLE;
		stack_comm(task, s);
		stat = stack_dump_begin(c, s, STACK_DUMP_ONCPU);
	}
	return stat == STACK_DUMP_TAKEN ? stack_dump_fill(c, win, s) : stat;
}

/* Copy the stack for the agent. True on success. */
static __always_inline int oncpu_dump_out(struct regs_event *ctx, struct stack *s,
					  struct window *win)
{
	struct stack_dump_record *c = oncpu_dump_record();

	return c && stack_dump_out(c, s, oncpu_dump_fill(ctx, c, s, win));
}

/* After the last part of a dump: if it has failed, the kernel walks the stack. */
static __always_inline int oncpu_dumped(struct regs_event *ctx, struct stack *s, int is_out)
{
	if (is_out)
		return oncpu_done(SAMPLE_STAT_DUMPED);
	if (s->walk.end == WALK_ON)
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_WALK);
	return oncpu_done(oncpu_add(s, NULL));
}

/* Copy the stack for a walk by the agent. Calls itself for the next part of a deep one. */
SEC("perf_event")
int oncpu_dump(struct regs_event *ctx)
{
	struct stack_room *room = stack_room(&oncpu_rooms);
	struct stack_dump_record *c = oncpu_dump_record();
	__u32 zero = 0, stat;
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	int is_out;

	if (!s || !room || !c)
		return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
	stat = oncpu_dump_fill(ctx, c, s, &room->window);
	if (stat == STACK_DUMP_TAKEN && !s->dumped && excerpt_wanted(c, s))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP_PYTHON);
	if (stat == STACK_DUMP_TAKEN)
		stack_dump_set_more(c, s);
	is_out = stack_dump_out(c, s, stat);
	if (is_out && c->head.more)
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP);
	return oncpu_dumped(ctx, s, is_out);
}

/* Continues oncpu_dump with an excerpt of Python's frames, or makes one before the walk. */
SEC("perf_event")
int oncpu_dump_python(struct regs_event *ctx)
{
	struct stack_room *room = stack_room(&oncpu_rooms);
	struct stack_dump_record *c = oncpu_dump_record();
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	int is_out;

	if (!s || !room || !c)
		return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
	if (excerpt_goes_on(c, s, room))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP_PYTHON);
	if (excerpt_end(c, s, &is_out))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP_PYTHON);
	if (excerpt_walk_follows(s))
		bpf_tail_call(ctx, &oncpu_programs, FRAME_RUNTIME_PYTHON);
	return oncpu_dumped(ctx, s, is_out);
}

/* The walk. No tail call is here: some kernels do not allow it beside the loop's function. */
static __always_inline int oncpu_walk_by(struct regs_event *ctx, __u32 runtime,
					 long (*walk_some)(__u32 i, void *ctx))
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	struct stack_room *room = stack_room(&oncpu_rooms);
	struct trail *trail = stack_trail(&oncpu_trails);
	struct walk_ctx c;

	if (!s || !room || !trail || !stack_walk_begin(&c, s, room, &oncpu_objects, runtime))
		return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
	c.trail = trail;
	stack_walk_all(&c, walk_some);
	if (stack_dump_after(s) && oncpu_dump_out(ctx, s, &room->window))
		return oncpu_done(SAMPLE_STAT_DUMPED);
	return oncpu_done(oncpu_add(s, stack_has_tasks(runtime) ? &c : NULL));
}

/* A part of the walk, for kernels without bpf_loop(). The last part stores the sample. @slot: the
 * program's own slot. */
static __always_inline int oncpu_part_by(struct regs_event *ctx, __u32 slot,
					 const struct walk_runtime *runtime)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	struct stack_room *room = stack_room(&oncpu_rooms);
	struct walk_ctx c;

	if (!s || !room || !stack_walk_begin(&c, s, room, &oncpu_objects, slot))
		return oncpu_done(SAMPLE_STAT_LOST_INTERNAL);
	if (stack_walk_part(&c, runtime))
		bpf_tail_call(ctx, &oncpu_programs, slot);
	if (stack_dump_after(s))
		bpf_tail_call(ctx, &oncpu_programs, SETTINGS_DUMP);
	return oncpu_done(oncpu_add(s, stack_has_tasks(slot) ? &c : NULL));
}

SEC("perf_event")
int oncpu_walk(struct regs_event *ctx)
{
	return oncpu_walk_by(ctx, FRAME_RUNTIME_NONE, stack_walk_native);
}

SEC("perf_event")
int oncpu_walk_part(struct regs_event *ctx)
{
	return oncpu_part_by(ctx, SETTINGS_WALK, NULL);
}

/* The same for processes with a runtime. */
#define ONCPU_RUNTIME(NAME, name)                                                   \
	SEC("perf_event")                                                           \
	int oncpu_walk_##name(struct regs_event *ctx)                               \
	{                                                                           \
		return oncpu_walk_by(ctx, FRAME_RUNTIME_##NAME, stack_walk_##name); \
	}                                                                           \
	SEC("perf_event")                                                           \
	int oncpu_part_##name(struct regs_event *ctx)                               \
	{                                                                           \
		return oncpu_part_by(ctx, FRAME_RUNTIME_##NAME, &name##_walk);      \
	}
FRAME_RUNTIMES(ONCPU_RUNTIME)
