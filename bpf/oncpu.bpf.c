// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * On-CPU samples: a clock on each CPU interrupts whatever runs there so many times a second, and
 * the program takes the stack and adds one to that stack's count. Equal stacks are one map entry,
 * so that a busy loop costs user space as much as a single sample.
 *
 * Two generations of maps. The program writes to the one that `oncpu_generation` names; user space
 * reads and empties the other (agent/profile/oncpu.c tells why nothing gets lost in between).
 *
 * Everything the verifier need not know exactly (registers, counts, how the walk ended) goes
 * through the scratch map value: what is read back from memory is any number to it, and so the many
 * ways out of a loop become the same state, checked once.
 */
#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "lib/regs.bpf.h"
#include "lib/task.bpf.h"
#include "lib/walk.bpf.h"
#include "shared/sample.h"
#include "shared/settings.h"

char oncpu_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct settings cfg_oncpu = {};
volatile __u32 oncpu_generation = 0;

/* The maps' sizes are set before the object is loaded. Preallocated, because the clock's interrupt
 * is no place to allocate. */
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

struct stacks_small oncpu_small_0 SEC(".maps");
struct stacks_small oncpu_small_1 SEC(".maps");
struct stacks_large oncpu_large_0 SEC(".maps");
struct stacks_large oncpu_large_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_STAT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} oncpu_stats SEC(".maps");

/* The kernel runs one perf_event program at a time on a CPU (bpf_prog_active), so the sample under
 * way has this to itself. */
struct scratch {
	struct sample_key key;
	struct sample_large value;
	struct walk walk;
	struct regs regs;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} oncpu_scratch SEC(".maps");

/*
 * Where the records of user stacks are read to, one for each CPU. Not in the scratch value: kernels
 * 5.19 to 6.3 (mended in 6.1.36, 6.3.10 and 6.4, d319f344561d) check the destination of such a
 * copy, and to check one in vmalloc memory, which per-CPU maps are, they take a lock that the code
 * we interrupted may hold; the CPU then hangs. A plain array of less than 32 KB (and so for up to
 * 2,000 CPUs) is kmalloc memory, for which no lock is taken. The number of entries is set before
 * loading.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_record);
} oncpu_record SEC(".maps");

static __always_inline void count_stat(__u32 stat)
{
	__u64 *count = bpf_map_lookup_elem(&oncpu_stats, &stat);

	if (count)
		*count += 1; /* this CPU's own, and no other program of ours runs in between */
}

/* The kernel half, into the first slots. Nothing to find if user code was interrupted. */
static __always_inline void take_kernel(struct regs_event *ctx, struct scratch *s)
{
	long n;

	s->value.head.n_kernel = 0;
	if (!cfg_oncpu.kernel_stacks || regs_user_mode(&ctx->regs))
		return;
	n = bpf_get_stack(ctx, s->value.frames, SAMPLE_KERNEL_FRAMES_MAX * sizeof(__u64), 0);
	if (n > 0)
		s->value.head.n_kernel = (__u32)n / sizeof(__u64);
}

/* User registers into s->regs: the event's own if it interrupted user code, else those saved when
 * the task entered the kernel. False for a task that has none. */
static __always_inline int take_regs(struct regs_event *ctx, struct task_struct *task,
				     struct scratch *s)
{
	if (task_is_kernel(task))
		return 0;
	if (regs_user_mode(&ctx->regs)) {
		s->regs = ctx->regs;
		return 1;
	}
	if (bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)regs_of_task(task)))
		return 0;
	/* A kernel worker on behalf of a process (io_uring) has a register frame of zeros. */
	return regs_user_mode(&s->regs) && regs_pc(&s->regs);
}

static __always_inline int read_record(struct walk_record *ret, __u64 fp)
{
	/* Both words at once: the helper's price is the call, not the bytes. */
	if (bpf_probe_read_user(ret, sizeof(*ret), (void *)fp))
		return -1;
	ret->ra = regs_code_pointer(ret->ra);
	return 0;
}

/* The user half, behind the kernel half. Returns why it ended. */
static __always_inline __u32 take_user(struct scratch *s, struct walk_record *record)
{
	walk_begin(&s->walk, regs_pc(&s->regs), regs_sp(&s->regs), regs_fp(&s->regs));
	if (!regs_64bit(&s->regs)) {
		/* Its records are of another size: the innermost pc is all we say. */
		s->value.frames[s->value.head.n_kernel & (SAMPLE_LARGE_FRAMES - 1)] = s->walk.pc;
		s->value.head.n_user = 1;
		return SAMPLE_END_32BIT;
	}
	return walk_user(&s->walk, record, s->value.frames, s->value.head.n_kernel,
			 &s->value.head.n_user, read_record);
}

static __always_inline __u64 hash_frames(const struct scratch *s)
{
	__u32 n = s->value.head.n_kernel + s->value.head.n_user;
	__u64 hash = walk_hash(s->value.head.n_kernel, s->value.head.n_user);

	for (__u32 i = 0; i < SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX; i++) {
		if (i >= n)
			break;
		hash = walk_hash(hash, s->value.frames[i]);
	}
	return hash;
}

/*
 * Add one to the stack's count in @map. 0, or the helper's -errno if there is no room.
 *
 * An int and no long: the verifier turns the helper into a direct call of the map's function, which
 * returned an int before 6.4 (d7ba4cc900bf), and the upper half of the register is not its sign
 * then.
 */
static __always_inline int add_to(void *map, struct scratch *s)
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
	__sync_fetch_and_add(&head->count, 1);
	return 0;
}

/* A small stack goes into the large map if the small one is full. */
static __always_inline int add(void *small, void *large, struct scratch *s)
{
	int r;

	if (s->value.head.n_kernel + s->value.head.n_user <= SAMPLE_SMALL_FRAMES) {
		r = add_to(small, s);
		if (r != -E2BIG)
			return r;
	}
	return add_to(large, s);
}

static __always_inline void take_identity(struct task_struct *task, struct scratch *s)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	s->key.tgid = task_tgid_in(leader, cfg_oncpu.pidns_inum);
	s->key.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	s->key.cgroup_id = task_cgroup_id(task);
	s->key.cgroup_v1_id = task_cgroup_v1_id(task, cfg_oncpu.v1_controller);
	bpf_probe_read_kernel(s->value.head.comm, sizeof(s->value.head.comm), leader->comm);
}

/* Returns enum sample_stat. */
static __always_inline __u32 take(struct regs_event *ctx, struct scratch *s,
				  struct walk_record *record)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	int r;

	if (!(bpf_get_current_pid_tgid() >> 32))
		return SAMPLE_STAT_IDLE;
	take_identity(task, s);
	if (!s->key.tgid)
		return SAMPLE_STAT_OUTSIDE;
	take_kernel(ctx, s);
	s->value.head.n_user = 0;
	s->key.end = SAMPLE_END_NO_USER;
	if (take_regs(ctx, task, s))
		s->key.end = take_user(s, record);
	if (!s->value.head.n_user && !s->value.head.n_kernel)
		return SAMPLE_STAT_NO_FRAMES;
	s->value.head.count = 1;
	s->key.stack_hash = hash_frames(s);
	if (oncpu_generation & 1)
		r = add(&oncpu_small_1, &oncpu_large_1, s);
	else
		r = add(&oncpu_small_0, &oncpu_large_0, s);
	if (!r)
		return s->key.end;
	return r == -E2BIG ? SAMPLE_STAT_LOST_FULL : SAMPLE_STAT_LOST_BUSY;
}

SEC("perf_event")
int oncpu_sample(struct regs_event *ctx)
{
	__u32 zero = 0, slot = SAMPLE_STAT_RUNNING, cpu = bpf_get_smp_processor_id();
	volatile __u64 *running = bpf_map_lookup_elem(&oncpu_stats, &slot);
	struct scratch *s = bpf_map_lookup_elem(&oncpu_scratch, &zero);
	struct walk_record *record = bpf_map_lookup_elem(&oncpu_record, &cpu);

	if (!running || !s || !record) {
		count_stat(SAMPLE_STAT_LOST_INTERNAL);
		return 0;
	}
	/* Around everything that depends on the generation; both are volatile and stay in order. */
	*running = 1;
	count_stat(take(ctx, s, record));
	*running = 0;
	return 0;
}
