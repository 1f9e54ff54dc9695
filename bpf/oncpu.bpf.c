// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-CPU samples: a clock on each CPU interrupts whatever runs there so many times a second, and
 * the program takes the stack and adds one to that stack's count. Equal stacks are one map entry,
 * so that a busy loop costs user space as much as a single sample.
 */
#include "lib/stack.bpf.h"
#include "lib/process_maps.bpf.h"
#include "lib/wanted.bpf.h"

char oncpu_license[] SEC("license") = "Dual BSD/GPL";

volatile __u32 oncpu_generation = 0;

struct stacks_small oncpu_small_0 SEC(".maps");
struct stacks_small oncpu_small_1 SEC(".maps");
struct stacks_large oncpu_large_0 SEC(".maps");
struct stacks_large oncpu_large_1 SEC(".maps");
struct stack_stats oncpu_stats SEC(".maps");
/* The kernel runs one perf_event program at a time on a CPU (bpf_prog_active), so the sample under
 * way has this to itself. */
struct stack_scratch oncpu_scratch SEC(".maps");
struct stack_records oncpu_record SEC(".maps");

/* User registers into s->regs: the event's own if it interrupted user code, else those saved when
 * the task entered the kernel. False for a task that has none. */
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

/* Returns enum sample_stat. */
static __always_inline __u32 take(struct regs_event *ctx, struct stack *s,
				  struct walk_record *record)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!(bpf_get_current_pid_tgid() >> 32))
		return SAMPLE_STAT_IDLE;
	stack_identity(task, s);
	if (!s->key.tgid)
		return SAMPLE_STAT_OUTSIDE;
	if (!wanted(&s->key))
		return SAMPLE_STAT_UNWANTED;
	s->value.head.count = 1;
	s->value.head.n_kernel = 0;
	s->value.head.n_user = 0;
	s->key.end = SAMPLE_END_NO_USER;
	if (!regs_user_mode(&ctx->regs))
		stack_kernel(ctx, s);
	if (oncpu_regs(ctx, task, s))
		s->key.end = stack_user(s, record);
	if (!s->value.head.n_user && !s->value.head.n_kernel)
		return SAMPLE_STAT_NO_FRAMES;
	stack_hash(s);
	if (oncpu_generation & 1)
		return stack_add(&oncpu_small_1, &oncpu_large_1, s);
	return stack_add(&oncpu_small_0, &oncpu_large_0, s);
}

SEC("perf_event")
int oncpu_sample(struct regs_event *ctx)
{
	__u32 zero = 0, slot = SAMPLE_STAT_RUNNING, cpu = bpf_get_smp_processor_id();
	volatile __u64 *running = bpf_map_lookup_elem(&oncpu_stats, &slot);
	struct stack *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	struct walk_record *record = bpf_map_lookup_elem(&oncpu_record, &cpu);

	if (!running || !s || !record) {
		stack_count(&oncpu_stats, SAMPLE_STAT_LOST_INTERNAL);
		return 0;
	}
	/* Around everything that depends on the generation; both are volatile and stay in order. */
	*running = 1;
	stack_count(&oncpu_stats, take(ctx, s, record));
	*running = 0;
	return 0;
}
