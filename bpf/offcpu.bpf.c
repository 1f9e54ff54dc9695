// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Off-CPU samples: the time and place of threads' waits. At a task switch, the event sampler
 * chooses the leaving thread or not, before the length of the wait is known. The program keeps a
 * chosen thread's stack and the time until the thread runs again, on any CPU. Then the program adds
 * the time to the stack.
 *
 * The choice (lib/event_sampler.bpf.h) keeps to a budget of stacks and gives the weight of a chosen
 * switch. A switch not chosen, all but a few in a hundred, costs one subtraction.
 *
 * For a process not known yet, or an image with a table to come, the program also makes a stack
 * dump for the agent (lib/stack_dump.bpf.h), because the first wait of a thread may be long.
 *
 * Not counted: a preempted or yielding thread (still runnable), the idle task, a thread's last
 * switch. A thread still off the CPU is not counted yet.
 */
#include "lib/stack.bpf.h"
#include "lib/event_sampler.bpf.h"
#include "lib/stack_dump.bpf.h"
#include "lib/excerpt_python.bpf.h"
#include "lib/cgroup_sampling.bpf.h"
#include "lib/pid_filter.bpf.h"
#include "shared/offcpu.h"

volatile __u32 offcpu_generation = 0;
volatile struct offcpu_plan offcpu_plan = {};

struct stacks_small offcpu_small_0 SEC(".maps");
struct stacks_small offcpu_small_1 SEC(".maps");
struct stacks_large offcpu_large_0 SEC(".maps");
struct stacks_large offcpu_large_1 SEC(".maps");
struct stacks_deep offcpu_deep_0 SEC(".maps");
struct stacks_deep offcpu_deep_1 SEC(".maps");
struct stacks_lost offcpu_lost_0 SEC(".maps");
struct stacks_lost offcpu_lost_1 SEC(".maps");
struct stack_stats offcpu_stats SEC(".maps");
/* Interrupts are off at a task switch. */
struct stack_scratch offcpu_scratch SEC(".maps");
struct stack_rooms offcpu_rooms SEC(".maps");
struct stack_objects offcpu_objects SEC(".maps");
struct stack_dump_scratch offcpu_dump_scratch SEC(".maps");

/* offcpu_walk or offcpu_walk_part, the walks of each runtime, and offcpu_dump; filled by user
 * space. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SETTINGS_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} offcpu_programs SEC(".maps");

/* Innermost kernel frames of the sampler: this program, and the tracepoint's caller of programs. */
#define OFFCPU_OWN_FRAMES 2

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_sampler);
} offcpu_samplers SEC(".maps");

/* Threads that are off the CPU, by thread id: key and value of the taken struct stack, with the
 * time in head.total and the weight in head.count. In size classes, like stacks. */
#define OFF_CPU_BYTES(n)                                                                          \
	(__builtin_offsetof(struct stack, value.frames) - __builtin_offsetof(struct stack, key) + \
	 (n) * sizeof(__u64))

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, OFF_CPU_BYTES(SAMPLE_SMALL_FRAMES));
} off_cpu_small SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, OFF_CPU_BYTES(SAMPLE_LARGE_FRAMES));
} off_cpu_large SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, OFF_CPU_BYTES(SAMPLE_DEEP_FRAMES));
} off_cpu_deep SEC(".maps");

/* Number of threads off the CPU, by the low bits of their ids. Nearly always 0, and then the
 * returning thread needs no lookup. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} off_cpu_counts SEC(".maps");

static __always_inline __u64 *off_cpu_count(__u32 tid)
{
	__u32 slot = tid % OFF_CPU_SLOTS;

	return bpf_map_lookup_elem(&off_cpu_counts, &slot);
}

static __always_inline struct stack *offcpu_stack(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&offcpu_scratch, &zero);
}

/* ---------------------------------------------------------------- coming back */

/* Copy the stack of @tid that @map keeps into @s. */
static __always_inline int offcpu_recall_from(void *map, __u32 bytes, __u32 tid, struct stack *s)
{
	void *off_cpu = bpf_map_lookup_elem(map, &tid);

	if (!off_cpu)
		return 0;
	bpf_probe_read_kernel(&s->key, bytes, off_cpu);
	bpf_map_delete_elem(map, &tid);
	return 1;
}

static __always_inline int offcpu_recall(__u32 tid, struct stack *s)
{
	return offcpu_recall_from(&off_cpu_small, OFF_CPU_BYTES(SAMPLE_SMALL_FRAMES), tid, s) ||
	       offcpu_recall_from(&off_cpu_large, OFF_CPU_BYTES(SAMPLE_LARGE_FRAMES), tid, s) ||
	       offcpu_recall_from(&off_cpu_deep, OFF_CPU_BYTES(SAMPLE_DEEP_FRAMES), tid, s);
}

static __always_inline void offcpu_arrive(__u32 tid)
{
	__u64 *count = off_cpu_count(tid);
	struct sample_head *head;
	struct stack *s;
	__u32 stat;

	if (!count || !*count)
		return;
	s = offcpu_stack();
	if (!s || !offcpu_recall(tid, s))
		return;
	__sync_fetch_and_add(count, -1);
	head = &s->value.head;
	head->total = (bpf_ktime_get_ns() - head->total) * head->count;
	stack_running(&offcpu_stats, 1);
	if (offcpu_generation & 1)
		stat = stack_add(&offcpu_small_1, &offcpu_large_1, &offcpu_deep_1, &offcpu_lost_1,
				 NULL, s);
	else
		stat = stack_add(&offcpu_small_0, &offcpu_large_0, &offcpu_deep_0, &offcpu_lost_0,
				 NULL, s);
	if ((s->key.flags & SAMPLE_FLAG_DUMPED) && stat < SAMPLE_END_MAX)
		stat = SAMPLE_STAT_DUMPED;
	stack_count(&offcpu_stats, stat);
	stack_running(&offcpu_stats, 0);
}

/* ---------------------------------------------------------------- leaving */

EVENT_SAMPLER_INLINE __u64 event_sampler_now_ns(void)
{
	return bpf_ktime_get_ns();
}

EVENT_SAMPLER_INLINE __u32 event_sampler_random(void)
{
	return bpf_get_prandom_u32();
}

/* The weight of this switch if the sampler chooses it, else 0. */
static __always_inline __u64 offcpu_choose(void)
{
	__u32 zero = 0;
	struct event_sampler *sampler = bpf_map_lookup_elem(&offcpu_samplers, &zero);

	return sampler ? event_sampler_next(sampler, &offcpu_plan) : 0;
}

/* The chosen switch is not taken. */
static __always_inline void offcpu_refund(void)
{
	__u32 zero = 0;
	struct event_sampler *sampler = bpf_map_lookup_elem(&offcpu_samplers, &zero);

	if (sampler)
		event_sampler_refund(sampler, &offcpu_plan);
}

/* Keep the stack until @tid comes back. */
static __always_inline void offcpu_keep(struct stack *s, __u32 tid)
{
	__u32 n = stack_n_words(s);
	__u64 *count = off_cpu_count(tid);
	int r = -E2BIG;

	if (!count)
		return;
	s->value.head.total = bpf_ktime_get_ns();
	/* A full map leaves its stacks to the next class. */
	if (n <= SAMPLE_SMALL_FRAMES)
		r = (int)bpf_map_update_elem(&off_cpu_small, &tid, &s->key, BPF_ANY);
	if (r && n <= SAMPLE_LARGE_FRAMES)
		r = (int)bpf_map_update_elem(&off_cpu_large, &tid, &s->key, BPF_ANY);
	if (r)
		r = (int)bpf_map_update_elem(&off_cpu_deep, &tid, &s->key, BPF_ANY);
	if (r)
		stack_count(&offcpu_stats, SAMPLE_STAT_LOST_FULL);
	else
		__sync_fetch_and_add(count, 1);
}

static __always_inline int offcpu_done(__u32 stat)
{
	stack_count(&offcpu_stats, stat);
	return 0;
}

/* Arguments: 1 if the leaving task was preempted, the leaving task, the coming task. */
SEC("tp_btf/sched_switch")
int offcpu_switch(__u64 *args)
{
	struct task_struct *prev = (struct task_struct *)args[1];
	struct task_struct *next = (struct task_struct *)args[2];
	struct stack *s;
	__u64 weight;
	__u32 stat;

	offcpu_arrive((__u32)next->pid);
	if (args[0] || !prev->pid || !task_waits(prev))
		return 0;
	/* Before the choice: unselected processes must not use the budget of the others. */
	if (pid_filter_excludes(prev))
		return 0;
	weight = offcpu_choose();
	if (!weight)
		return 0;
	s = offcpu_stack();
	if (!s)
		return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
	stack_cgroups(prev, s);
	stat = cgroup_sampling_take(s);
	if (stat != SAMPLE_STAT_MAX) {
		offcpu_refund();
		return offcpu_done(stat);
	}
	stack_begin(prev, s);
	stack_comm(prev, s);
	if (!s->key.tgid)
		return offcpu_done(SAMPLE_STAT_OUTSIDE);
	if (!pid_filter_match(&s->key))
		return offcpu_done(SAMPLE_STAT_FILTERED);
	s->value.head.count = cgroup_sampling_stands_for(s, weight);
	stack_kernel(args, s, OFFCPU_OWN_FRAMES);
	if (!task_is_kernel(prev) && stack_saved_regs(prev, s))
		stack_user(s);
	if (stack_dump_before(s))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP);
	if (stack_dump_names(s))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP_PYTHON);
	if (s->walk.runtime)
		bpf_tail_call(args, &offcpu_programs, s->walk.runtime);
	bpf_tail_call(args, &offcpu_programs, SETTINGS_WALK);
	return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
}

/* @c: of the walk of a runtime with tasks, else NULL: known to the compiler. */
static __always_inline int offcpu_walked(struct stack *s, const struct walk_ctx *c, __u64 *args)
{
	struct task_struct *prev = (struct task_struct *)args[1];

	if (!stack_finish(s, s->value.head.count, 0))
		return offcpu_done(SAMPLE_STAT_NO_FRAMES);
	stack_thread(prev, s);
	if (c)
		stack_task(s, c);
	if (s->dump_id) {
		s->key.flags |= SAMPLE_FLAG_DUMPED;
		s->key.stack_hash = s->dump_id;
	}
	offcpu_keep(s, (__u32)prev->pid);
	return 0;
}

/* Never 0, and different each time: two equal ids would be one wait. */
static __always_inline __u64 offcpu_dump_id(void)
{
	return ((__u64)bpf_get_prandom_u32() << 32 | (__u32)bpf_ktime_get_ns()) | 1;
}

static __always_inline struct stack_dump_record *offcpu_dump_record(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&offcpu_dump_scratch, &zero);
}

/* As oncpu_dump_fill(). */
static __always_inline __u32 offcpu_dump_fill(struct task_struct *prev, struct stack_dump_record *c,
					      struct stack *s, struct window *win)
{
	__u32 stat;

	if (s->dumped) {
		stat = stack_dump_continue(c);
	} else {
		s->dump_id = offcpu_dump_id();
		if (!stack_saved_regs(prev, s))
			return STACK_DUMP_UNREADABLE;
		stat = stack_dump_begin(c, s, STACK_DUMP_OFFCPU);
	}
	return stat == STACK_DUMP_TAKEN ? stack_dump_fill(c, win, s) : stat;
}

static __always_inline void offcpu_dump_out(struct task_struct *prev, struct stack *s,
					    struct window *win)
{
	struct stack_dump_record *c = offcpu_dump_record();

	if (!c || !stack_dump_out(c, s, offcpu_dump_fill(prev, c, s, win)))
		s->dump_id = 0;
}

/* After the last part of a dump: the kernel walks the stack too, by frame pointers, as the fallback
 * for a lost dump. */
static __always_inline int offcpu_dumped(__u64 *args, struct stack *s, int is_out)
{
	if (!is_out)
		s->dump_id = 0;
	if (s->walk.end == WALK_ON)
		bpf_tail_call(args, &offcpu_programs, SETTINGS_WALK);
	return offcpu_walked(s, NULL, args);
}

/* As oncpu_dump(). */
SEC("tp_btf/sched_switch")
int offcpu_dump(__u64 *args)
{
	struct task_struct *prev = (struct task_struct *)args[1];
	struct stack_room *room = stack_room(&offcpu_rooms);
	struct stack_dump_record *c = offcpu_dump_record();
	struct stack *s = offcpu_stack();
	__u32 stat;
	int is_out;

	if (!s || !room || !c)
		return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
	stat = offcpu_dump_fill(prev, c, s, &room->window);
	if (stat == STACK_DUMP_TAKEN && !s->dumped && excerpt_wanted(c, s))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP_PYTHON);
	if (stat == STACK_DUMP_TAKEN)
		stack_dump_set_more(c, s);
	is_out = stack_dump_out(c, s, stat);
	if (is_out && c->head.more)
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP);
	return offcpu_dumped(args, s, is_out);
}

/* Continues offcpu_dump with an excerpt of Python's frames, or makes one before the walk. */
SEC("tp_btf/sched_switch")
int offcpu_dump_python(__u64 *args)
{
	struct stack_room *room = stack_room(&offcpu_rooms);
	struct stack_dump_record *c = offcpu_dump_record();
	struct stack *s = offcpu_stack();
	int is_out;

	if (!s || !room || !c)
		return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
	if (excerpt_goes_on(c, s, room))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP_PYTHON);
	if (excerpt_end(c, s, &is_out))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP_PYTHON);
	if (excerpt_walk_follows(s))
		bpf_tail_call(args, &offcpu_programs, FRAME_RUNTIME_PYTHON);
	return offcpu_dumped(args, s, is_out);
}

/* The walk. */
static __always_inline int offcpu_walk_by(__u64 *args, __u32 runtime,
					  long (*walk_some)(__u32 i, void *ctx))
{
	struct stack_room *room = stack_room(&offcpu_rooms);
	struct stack *s = offcpu_stack();
	struct walk_ctx c;

	if (!s || !room || !stack_walk_begin(&c, s, room, &offcpu_objects, runtime))
		return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
	stack_walk_all(&c, walk_some);
	if (stack_dump_after(s))
		offcpu_dump_out((struct task_struct *)args[1], s, &room->window);
	return offcpu_walked(s, stack_has_tasks(runtime) ? &c : NULL, args);
}

/* A part of the walk, for kernels without bpf_loop(). The last part keeps the stack. @slot: the
 * program's own slot. */
static __always_inline int offcpu_part_by(__u64 *args, __u32 slot,
					  const struct walk_runtime *runtime)
{
	struct stack_room *room = stack_room(&offcpu_rooms);
	struct stack *s = offcpu_stack();
	struct walk_ctx c;

	if (!s || !room || !stack_walk_begin(&c, s, room, &offcpu_objects, slot))
		return offcpu_done(SAMPLE_STAT_LOST_INTERNAL);
	if (stack_walk_part(&c, runtime))
		bpf_tail_call(args, &offcpu_programs, slot);
	if (stack_dump_after(s))
		bpf_tail_call(args, &offcpu_programs, SETTINGS_DUMP);
	return offcpu_walked(s, stack_has_tasks(slot) ? &c : NULL, args);
}

SEC("tp_btf/sched_switch")
int offcpu_walk(__u64 *args)
{
	return offcpu_walk_by(args, FRAME_RUNTIME_NONE, stack_walk_native);
}

SEC("tp_btf/sched_switch")
int offcpu_walk_part(__u64 *args)
{
	return offcpu_part_by(args, SETTINGS_WALK, NULL);
}

/* The same for processes with a runtime. */
#define OFFCPU_RUNTIME(NAME, name)                                                    \
	SEC("tp_btf/sched_switch")                                                    \
	int offcpu_walk_##name(__u64 *args)                                           \
	{                                                                             \
		return offcpu_walk_by(args, FRAME_RUNTIME_##NAME, stack_walk_##name); \
	}                                                                             \
	SEC("tp_btf/sched_switch")                                                    \
	int offcpu_part_##name(__u64 *args)                                           \
	{                                                                             \
		return offcpu_part_by(args, FRAME_RUNTIME_##NAME, &name##_walk);      \
	}
FRAME_RUNTIMES(OFFCPU_RUNTIME)
