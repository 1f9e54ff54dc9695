// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk alone, over stacks laid out by bench_walk in its own memory. */
#include "lib/stack.bpf.h"

char bench_license[] SEC("license") = "Dual BSD/GPL";

/* The next stack: set by bench_walk before each run. */
volatile __u32 bench_next = 0;
volatile __u32 bench_mappings = 0;
/* Results of the last walk. */
volatile __u32 bench_frames = 0;
volatile __u32 bench_end = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct regs);
} bench_stacks SEC(".maps");

struct stack_scratch bench_scratch SEC(".maps");
struct stack_rooms bench_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bench_programs SEC(".maps");

SEC("raw_tp")
int bench_begin(void *ctx)
{
	__u32 zero = 0, next = bench_next;
	struct stack *s = bpf_map_lookup_elem(&bench_scratch, &zero);
	struct regs *regs = bpf_map_lookup_elem(&bench_stacks, &next);
	struct walk_ctx c;

	if (!s || !regs)
		return 0;
	c = stack_walk_ctx(s, NULL);
	s->regs = *regs;
	s->walk.first = 0;
	s->walk.hash = 0;
	s->walk.flags = 0;
	walk_begin(&c, 0, cfg.unwind == SETTINGS_UNWIND_FP ? 0 : bench_mappings);
	bpf_tail_call(ctx, &bench_programs, 0);
	return 0;
}

/* bench_programs has either of the two. */
SEC("raw_tp")
int bench_walk(void *ctx)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&bench_scratch, &zero);
	struct stack_room *room = stack_room(&bench_rooms);
	struct walk_ctx c;

	if (!s || !room)
		return 0;
	c = stack_walk_ctx(s, room);
	stack_walk_all(&c, stack_walk_native);
	bench_frames = s->walk.n;
	bench_end = s->walk.end;
	return 0;
}

SEC("raw_tp")
int bench_walk_part(void *ctx)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&bench_scratch, &zero);
	struct stack_room *room = stack_room(&bench_rooms);
	struct walk_ctx c;

	if (!s || !room)
		return 0;
	c = stack_walk_ctx(s, room);
	if (stack_walk_part(&c, NULL))
		bpf_tail_call(ctx, &bench_programs, 0);
	bench_frames = s->walk.n;
	bench_end = s->walk.end;
	return 0;
}

/* The base cost of a program. */
SEC("raw_tp")
int bench_nothing(void *ctx)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&bench_scratch, &zero);

	bench_frames = s ? 1 : 0;
	return 0;
}

/* The kernel's own walk, by frame pointers, over bench_walk's real stack. */
SEC("raw_tp")
int bench_get_stack(void *ctx)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&bench_scratch, &zero);
	long n;

	if (!s)
		return 0;
	n = bpf_get_stack(ctx, s->value.frames, 127 * sizeof(__u64), 1 << 8 /* BPF_F_USER_STACK */);
	bench_frames = n > 0 ? (__u32)n / sizeof(__u64) : 0;
	return 0;
}
