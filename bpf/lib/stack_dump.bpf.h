/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_STACK_DUMP_BPF_H
#define PODPROF_BPF_LIB_STACK_DUMP_BPF_H

/*
 * Stack dumps for the agent to walk (shared/stack_dump.h): for a process not known yet, such as any
 * process of some milliseconds, or an image on the stack without its table yet.
 *
 * Two rate limits bound the cost: per CPU and per process. A process with many threads, or without
 * tables forever, thus leaves room for all others. A fork bomb is many processes, and the CPU's
 * limit bounds the cost. Above a limit, the kernel walks as usual.
 *
 * A program whose stacks were larger than their dumps has dumps of several parts. The first part is
 * like any dump. The next ones are each charged to the limits like a dump, and leave half of the
 * ring to others.
 *
 * Bytes go through the window (stack.bpf.h explains why user memory is read only there), then to
 * the event's own record, and from there into the ring with their actual length: a reserved ring
 * record would have a fixed size.
 */

#include "lib/stack.bpf.h"
#include "shared/stack_dump.h"

/* A ring for all events. User space sets the size before it loads the object. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stack_dumps __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STACK_DUMP_STAT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} stack_dump_stats __weak SEC(".maps");

/* Dumps in the second that began at the given time. */
struct stack_dump_budget {
	__u64 since_ns;
	__u64 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_dump_budget);
} stack_dump_cpus __weak SEC(".maps");

/* By the low bits of the pid. CPUs write to an element concurrently; a race may permit a few more
 * dumps. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STACK_DUMP_PROCESS_SLOTS);
	__type(key, __u32);
	__type(value, struct stack_dump_budget);
} stack_dump_processes __weak SEC(".maps");

/* Programs with deep stacks, or with names that only their memory has. The agent writes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_DUMP_EXES);
	__type(key, struct exe_key);
	__type(value, struct exe_dumps);
} exe_dumps __weak SEC(".maps");

/* The record under construction, for each event and CPU, like the scratch. */
struct stack_dump_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_dump_record);
};

/* The file that the current task executes. */
static __always_inline void stack_dump_exe(struct exe_key *ret)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);

	ret->inode = BPF_CORE_READ(inode, i_ino);
	ret->device = BPF_CORE_READ(inode, i_sb, s_dev);
	ret->generation = BPF_CORE_READ(inode, i_generation);
}

/* Whether the process may load libraries still, or end before the agent has read its memory. */
static __always_inline int stack_dump_is_young(const struct stack *s)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 age_ns = bpf_ktime_get_boot_ns() - s->key.start_boottime_ns;

	if (age_ns < STACK_DUMP_YOUNG_NS)
		return 1;
	return age_ns < STACK_DUMP_STARVED_NS &&
	       BPF_CORE_READ(task, group_leader, se.sum_exec_runtime) < STACK_DUMP_STARVED_CPU_NS;
}

/* Whether to dump the stack before the walk: of an unknown process, and of a young one in code that
 * it has mapped since it is known, as its loader does. Of a runtime, this may be code that it has
 * just compiled, and its frames are not in a dump. */
static __always_inline int stack_dump_before(const struct stack *s)
{
	if (!cfg.dumps_per_second || s->walk.end != WALK_ON)
		return 0;
	if (s->walk.flags & SAMPLE_FLAG_NO_PROCESS)
		return 1;
	return (s->walk.flags & SAMPLE_FLAG_NO_MAPPING) && !s->walk.runtime &&
	       stack_dump_is_young(s);
}

/* Whether to dump it after the walk: for a table. */
static __always_inline int stack_dump_after(const struct stack *s)
{
	return cfg.dumps_per_second && !s->dumped && (s->walk.flags & SAMPLE_FLAG_AWAITS);
}

/* Whether the names of the process may be gone before the agent reads them, and an excerpt can have
 * them: Python's. The excerpt's program then goes on to the walk. */
static __always_inline int stack_dump_names(struct stack *s)
{
	struct exe_key exe = {0};

	if (!cfg.dumps_per_second || s->walk.end != WALK_ON ||
	    s->walk.runtime != FRAME_RUNTIME_PYTHON || !stack_dump_is_young(s))
		return 0;
	stack_dump_exe(&exe);
	s->names = bpf_map_lookup_elem(&python_exes, &exe) != NULL;
	return s->names;
}

/* Whether the budget of this second permits another dump. */
static __always_inline int stack_dump_spend(struct stack_dump_budget *b, __u64 now_ns, __u64 most)
{
	if (now_ns - b->since_ns >= 1000000000ull) {
		b->since_ns = now_ns;
		b->n = 0;
	}
	if (b->n >= most)
		return 0;
	b->n += 1;
	return 1;
}

static __always_inline __u32 stack_dump_permit(__u32 tgid, __u64 now_ns)
{
	__u32 zero = 0, slot = tgid % STACK_DUMP_PROCESS_SLOTS;
	struct stack_dump_budget *cpu = bpf_map_lookup_elem(&stack_dump_cpus, &zero);
	struct stack_dump_budget *process = bpf_map_lookup_elem(&stack_dump_processes, &slot);

	if (!cpu || !process)
		return STACK_DUMP_OVER_CPU;
	if (!stack_dump_spend(process, now_ns, STACK_DUMP_PER_PROCESS))
		return STACK_DUMP_OVER_PROCESS;
	return stack_dump_spend(cpu, now_ns, cfg.dumps_per_second) ? STACK_DUMP_TAKEN
								   : STACK_DUMP_OVER_CPU;
}

static __always_inline int stack_dump_ring_is_half_empty(void)
{
	return bpf_ringbuf_query(&stack_dumps, BPF_RB_AVAIL_DATA) <=
	       bpf_ringbuf_query(&stack_dumps, BPF_RB_RING_SIZE) / 2;
}

/* Whether the ring may take a dump of @s. Dumps after the walk leave half of the ring: without a
 * dump their stacks are truncated, and the stacks of an unknown process have no frame by rows at
 * all. */
static __always_inline int stack_dump_room(const struct stack *s)
{
	return !(s->walk.flags & SAMPLE_FLAG_AWAITS) || stack_dump_ring_is_half_empty();
}

/* Where in the record's data the stack bytes begin. */
static __always_inline __u64 stack_dump_bytes_off(const struct stack_dump_record *c)
{
	return (__u64)c->head.head.n_kernel * 8 & 1023;
}

/* The number of pieces up to the end of the main thread's stack: arguments and environment follow.
 * The other stacks are far below it. Above it a wrap-around makes a large number. */
static __always_inline __u64 stack_dump_limit(__u64 at)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 end = BPF_CORE_READ(task, mm, start_stack);

	return (end - at + STACK_DUMP_READ_BYTES - 1) / STACK_DUMP_READ_BYTES;
}

/* Copy the pieces of a part, from c->next on. The state is in the record, not in variables: the
 * verifier would follow each order of present and absent pages. */
static __always_inline void stack_dump_bytes(struct stack_dump_record *c, struct window *win)
{
	const __u64 limit = stack_dump_limit(c->head.at),
		    first = c->head.at / STACK_DUMP_READ_BYTES;

	for (int i = 0; i < STACK_DUMP_READS; i++) {
		const __u64 piece = c->next, n = c->head.n_bytes & (STACK_DUMP_BYTES - 1) &
						 ~(STACK_DUMP_READ_BYTES - 1ull);

		if (c->head.n_bytes >= STACK_DUMP_BYTES || c->n_absent > STACK_DUMP_HOLE_PAGES ||
		    piece >= limit)
			break;
		if (window_read(NULL, win->words, STACK_DUMP_READ_BYTES,
				(first + piece) * STACK_DUMP_READ_BYTES)) {
			if (!c->next)
				break;
			if (c->next == c->head.n_bytes / STACK_DUMP_READ_BYTES)
				c->n_whole = c->head.n_bytes;
			c->n_absent += 1;
			c->next =
				((first + piece) | (4096 / STACK_DUMP_READ_BYTES - 1)) + 1 - first;
			continue;
		}
		bpf_probe_read_kernel(c->data + stack_dump_bytes_off(c) + n, STACK_DUMP_READ_BYTES,
				      win->words);
		c->head.pieces[(c->head.n_before + n) / STACK_DUMP_READ_BYTES &
			       (STACK_DUMP_DEEP_PIECES - 1)] = piece;
		c->head.n_bytes = n + STACK_DUMP_READ_BYTES;
		c->n_absent = 0;
		c->next = piece + 1;
	}
}

static __always_inline void stack_dump_describe(struct stack_dump_record *c, const struct stack *s,
						__u32 kind, __u64 now_ns)
{
	c->head.key = s->key;
	c->head.key.end = SAMPLE_END_NO_PROCESS;
	c->head.key.flags = s->walk.flags;
	c->head.key.stack_hash = s->dump_id;
	c->head.head = s->value.head;
	c->head.head.count = 1;
	c->head.head.total = kind == STACK_DUMP_ONCPU ? s->weight : 0;
	c->head.head.n_user = 0;
	c->head.head.n_rows = 0;
	c->head.head.pad = s->walk.flags & SAMPLE_FLAG_AWAITS ? (__u16)s->walk.awaits : 0;
	c->head.time_ns = now_ns;
	c->head.at = regs_sp(&s->regs) & ~(STACK_DUMP_READ_BYTES - 1ull);
	c->head.kind = kind;
	c->head.n_bytes = 0;
	c->head.n_before = 0;
	c->head.more = 0;
	c->head.n_excerpt = 0;
	c->head.runtime = FRAME_RUNTIME_NONE;
	__builtin_memset(&c->head.exe, 0, sizeof(c->head.exe));
	if (!(s->walk.flags & SAMPLE_FLAG_AWAITS)) /* before the walk */
		stack_dump_exe(&c->head.exe);
	c->head.regs = s->regs;
	bpf_probe_read_kernel(c->data, SAMPLE_KERNEL_FRAMES_MAX * 8, s->value.frames);
	c->next = 0;
	c->n_absent = 0;
	c->n_whole = STACK_DUMP_BYTES;
}

/* Whether the process is unknown, and the dump ends inside of the stack or has a program with names
 * in memory alone. Only a walk in the kernel can complete or name its next stacks, and waits for
 * the agent to learn of the process. */
static __always_inline int stack_dump_urgent(const struct stack_dump_record *c)
{
	__u32 zero = 0;
	struct stack_dump_budget *cpu = bpf_map_lookup_elem(&stack_dump_cpus, &zero);
	const struct exe_dumps *exe;

	if (c->head.head.pad || c->head.more || !cpu || cpu->n > STACK_DUMP_WAKES)
		return 0;
	if (c->head.n_before || c->head.n_bytes == STACK_DUMP_BYTES)
		return 1;
	exe = bpf_map_lookup_elem(&exe_dumps, &c->head.exe);
	return exe && exe->wakes;
}

/* Wake the agent when a quarter of the ring is full, and for an urgent dump; the agent also looks
 * every second or two. Returns STACK_DUMP_TAKEN or STACK_DUMP_RING_FULL. */
static __always_inline __u32 stack_dump_send(struct stack_dump_record *c)
{
	__u64 flags, size;

	flags = stack_dump_urgent(c) ||
				bpf_ringbuf_query(&stack_dumps, BPF_RB_AVAIL_DATA) >
					bpf_ringbuf_query(&stack_dumps, BPF_RB_RING_SIZE) / 4
			? BPF_RB_FORCE_WAKEUP
			: BPF_RB_NO_WAKEUP;
	size = sizeof(c->head) + stack_dump_bytes_off(c) + c->head.n_bytes + c->head.n_excerpt;
	/* Nothing is between the check and the use: a register stored to the stack before the check
	 * would come back without the bound (Linux 6.1). */
	__asm__ volatile("" : "+r"(size));
	if (size > sizeof(*c))
		return STACK_DUMP_RING_FULL;
	return bpf_ringbuf_output(&stack_dumps, c, size, flags) ? STACK_DUMP_RING_FULL
								: STACK_DUMP_TAKEN;
}

/* Prepare the record for the stack of @s, after stack_user(). STACK_DUMP_TAKEN: it may have bytes.
 */
static __always_inline __u32 stack_dump_begin(struct stack_dump_record *c, const struct stack *s,
					      __u32 kind)
{
	__u64 now_ns = bpf_ktime_get_boot_ns();
	__u32 stat;

	if (!stack_dump_room(s))
		return STACK_DUMP_RING_FULL;
	stat = stack_dump_permit(s->key.tgid, now_ns);
	if (stat == STACK_DUMP_TAKEN)
		stack_dump_describe(c, s, kind, now_ns);
	return stat;
}

/* Copy the bytes of the prepared record. STACK_DUMP_TAKEN: it is filled. */
static __always_inline __u32 stack_dump_fill(struct stack_dump_record *c, struct window *win,
					     const struct stack *s)
{
	stack_dump_bytes(c, win);
	if (s->dumped)
		return STACK_DUMP_TAKEN;
	/* last, because the verifier follows each of its ends */
	if (cfg.thread_names)
		c->head.key.flags |= names_thread((struct task_struct *)bpf_get_current_task(),
						  s->key.tgid, c->head.thread);
	return c->head.n_bytes ? STACK_DUMP_TAKEN : STACK_DUMP_UNREADABLE;
}

/* Prepare the record for the next part. */
static __always_inline __u32 stack_dump_continue(struct stack_dump_record *c)
{
	c->head.n_before += c->head.n_bytes;
	c->head.n_bytes = 0;
	c->head.more = 0;
	return STACK_DUMP_TAKEN;
}

/* Decide, before the filled record is sent, whether another part follows. A dump after the walk has
 * one part: its program is not looked up, and some kernels forbid the tail call there. */
static __always_inline void stack_dump_set_more(struct stack_dump_record *c, const struct stack *s)
{
	const struct exe_dumps *exe;

	if (c->head.n_bytes < STACK_DUMP_BYTES || !c->head.exe.inode ||
	    c->n_absent > STACK_DUMP_HOLE_PAGES || c->next >= stack_dump_limit(c->head.at))
		return;
	exe = bpf_map_lookup_elem(&exe_dumps, &c->head.exe);
	if (!exe || s->dumped + 1 >= exe->n_parts || s->dumped + 1 >= STACK_DUMP_PARTS ||
	    !stack_dump_ring_is_half_empty())
		return;
	c->head.more = stack_dump_permit(s->key.tgid, bpf_ktime_get_boot_ns()) == STACK_DUMP_TAKEN;
}

/* Send the record, if @stat says that it is filled, and count it. True on success: then do not
 * count the stack in the stack maps. A later part has no outcome of its own if it fails: the agent
 * walks the parts before it. */
static __always_inline int stack_dump_out(struct stack_dump_record *c, struct stack *s, __u32 stat)
{
	const __u64 n_parts = s->dumped;
	__u64 *count;

	if (stat == STACK_DUMP_TAKEN)
		stat = stack_dump_send(c);
	s->dumped = n_parts + 1;
	if (stat != STACK_DUMP_TAKEN)
		c->head.more = 0;
	if (n_parts) {
		if (stat != STACK_DUMP_TAKEN)
			return 1;
		stat = STACK_DUMP_CONTINUED;
	}
	count = bpf_map_lookup_elem(&stack_dump_stats, &stat);
	if (count)
		*count += 1;
	return n_parts || stat == STACK_DUMP_TAKEN;
}

#endif
