/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_STACK_BPF_H
#define PODPROF_BPF_LIB_STACK_BPF_H

/*
 * Taking a stack: what every program that takes one has in common. A program hangs on its event,
 * finds its struct stack, and calls from here, in this order: stack_identity(), stack_kernel(),
 * stack_user(), stack_hash(), stack_add().
 *
 * Each event has maps of its own (struct stacks_small and so on are their types), because one
 * event's program may interrupt another's, and because user space empties them at their own pace.
 * The maps' sizes are set before the object is loaded. Preallocated, because an interrupt is no
 * place to allocate.
 *
 * Two generations of maps for each event: the program writes to the active one, user space reads
 * and empties the other (agent/profile/oncpu.c tells why nothing gets lost in between).
 *
 * Everything the verifier need not know exactly (registers, counts, how the walk ended) goes
 * through struct stack, which is a map value: what is read back from memory is any number to it,
 * and so the many ways out of a loop become the same state, checked once.
 */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "lib/regs.bpf.h"
#include "lib/task.bpf.h"
#include "lib/walk.bpf.h"
#include "shared/sample.h"
#include "shared/settings.h"

/* The same for all programs: one variable, however many objects are linked. */
const volatile struct settings cfg __weak = {};

struct stacks_small {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, struct sample_small);
};

struct stacks_large {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, struct sample_large);
};

/* Per-CPU counts by enum sample_stat, and the flag in SAMPLE_STAT_RUNNING. */
struct stack_stats {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_STAT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
};

/* The stack that is being taken. No program interrupts itself on a CPU, so one for each event and
 * CPU is enough: a per-CPU array of one. */
struct stack {
	struct sample_key key;
	struct sample_large value;
	struct walk walk;
	struct regs regs; /* of the task in user mode */
};

struct stack_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
};

/*
 * Where the records of user stacks are read to, one for each CPU. Not in the scratch value: kernels
 * 5.19 to 6.3 (mended in 6.1.36, 6.3.10 and 6.4, d319f344561d) check the destination of such a
 * copy, and to check one in vmalloc memory, which per-CPU maps are, they take a lock that the code
 * we interrupted may hold; the CPU then hangs. A plain array of less than 32 KB (and so for up to
 * 2,000 CPUs) is kmalloc memory, for which no lock is taken. The number of entries is set before
 * loading.
 */
struct stack_records {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_record);
};

/* Add one to @stat in @stats, a struct stack_stats. */
static __always_inline void stack_count(void *stats, __u32 stat)
{
	__u64 *count = bpf_map_lookup_elem(stats, &stat);

	if (count)
		*count += 1; /* this CPU's own, and no other program of ours runs in between */
}

/* Whose stack it is. 0 in key.tgid: nobody that the agent's /proc shows. */
static __always_inline void stack_identity(struct task_struct *task, struct stack *s)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	s->key.tgid = task_tgid_in(leader, cfg.pidns_inum);
	s->key.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	s->key.exec_id = BPF_CORE_READ(leader, self_exec_id);
	s->key.flags = 0;
	s->key.cgroup_id = task_cgroup_id(task);
	s->key.cgroup_v1_id = task_cgroup_v1_id(task, cfg.v1_controller);
	bpf_probe_read_kernel(s->value.head.comm, sizeof(s->value.head.comm), leader->comm);
}

/* The kernel half, into the first slots: from where @ctx, the program's context, says the event
 * was. Call it only if that was in the kernel. */
static __always_inline void stack_kernel(void *ctx, struct stack *s)
{
	long n;

	if (!cfg.kernel_stacks)
		return;
	n = bpf_get_stack(ctx, s->value.frames, SAMPLE_KERNEL_FRAMES_MAX * sizeof(__u64), 0);
	if (n > 0)
		s->value.head.n_kernel = (__u32)n / sizeof(__u64);
}

/* The registers that were saved when @task, the current one, entered the kernel into s->regs. False
 * for a task that has none. */
static __always_inline int stack_saved_regs(struct task_struct *task, struct stack *s)
{
	if (bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)regs_of_task(task)))
		return 0;
	/* A kernel worker on behalf of a process (io_uring) has a register frame of zeros. */
	return regs_user_mode(&s->regs) && regs_pc(&s->regs);
}

static __always_inline int stack_read_record(struct walk_record *ret, __u64 fp)
{
	/* Both words at once: the helper's price is the call, not the bytes. */
	if (bpf_probe_read_user(ret, sizeof(*ret), (void *)fp))
		return -1;
	ret->ra = regs_code_pointer(ret->ra);
	return 0;
}

/* The user half, from s->regs, behind the kernel half. Returns why it ended. */
static __always_inline __u32 stack_user(struct stack *s, struct walk_record *record)
{
	walk_begin(&s->walk, regs_pc(&s->regs), regs_sp(&s->regs), regs_fp(&s->regs));
	if (!regs_64bit(&s->regs)) {
		/* Its records are of another size: the innermost pc is all we say. */
		s->value.frames[s->value.head.n_kernel & (SAMPLE_LARGE_FRAMES - 1)] = s->walk.pc;
		s->value.head.n_user = 1;
		return SAMPLE_END_32BIT;
	}
	return walk_user(&s->walk, record, s->value.frames, s->value.head.n_kernel,
			 &s->value.head.n_user, stack_read_record);
}

/* Which stack it is, into the key. */
static __always_inline void stack_hash(struct stack *s)
{
	__u32 n = s->value.head.n_kernel + s->value.head.n_user;
	__u64 hash = walk_hash(s->value.head.n_kernel, s->value.head.n_user);

	for (__u32 i = 0; i < SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX; i++) {
		if (i >= n)
			break;
		hash = walk_hash(hash, s->value.frames[i]);
	}
	s->key.stack_hash = hash;
}

/*
 * Add one to the stack's count in @map. 0, or the helper's -errno if there is no room.
 *
 * An int and no long: the verifier turns the helper into a direct call of the map's function, which
 * returned an int before 6.4 (d7ba4cc900bf), and the upper half of the register is not its sign
 * then.
 */
static __always_inline int stack_add_to(void *map, struct stack *s)
{
	struct sample_head *head = bpf_map_lookup_elem(map, &s->key);
	int r = 0;

	if (!head) {
		r = (int)bpf_map_update_elem(map, &s->key, &s->value, BPF_NOEXIST);
		if (r != -EEXIST)
			return r;
		/* Another CPU was faster with the same stack. */
		head = bpf_map_lookup_elem(map, &s->key);
	}
	if (!head)
		return r;
	__sync_fetch_and_add(&head->count, s->value.head.count);
	return 0;
}

/* Add s->value.head.count to that stack's count in the generation's maps. A small stack goes into
 * the large map if the small one is full. Returns enum sample_stat. */
static __always_inline __u32 stack_add(void *small, void *large, struct stack *s)
{
	int r = -E2BIG;

	if (s->value.head.n_kernel + s->value.head.n_user <= SAMPLE_SMALL_FRAMES)
		r = stack_add_to(small, s);
	if (r == -E2BIG)
		r = stack_add_to(large, s);
	if (!r)
		return s->key.end;
	return r == -E2BIG ? SAMPLE_STAT_LOST_FULL : SAMPLE_STAT_LOST_BUSY;
}

#endif
