/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_STACK_BPF_H
#define PODPROF_BPF_LIB_STACK_BPF_H

/*
 * The common part of all stack sampling programs. A program attached to an event finds its struct
 * stack and calls, in this order: stack_cgroups(), stack_begin(), stack_kernel(), stack_user(). A
 * second program then calls stack_walk_all() and stack_add(). Without bpf_loop() in the kernel, the
 * second program calls stack_walk_part() and then itself by a tail call until the walk ends, so the
 * verifier checks at most WALK_STEPS frames.
 *
 * Each event has its own maps (of the types struct stacks_small and so on), because one event's
 * program may interrupt another's, and because user space drains each event at its own pace. User
 * space sets the sizes before it loads the object. The maps are preallocated, because an interrupt
 * cannot allocate.
 *
 * Two generations of maps for each event: the program writes to the active one, user space drains
 * the other (agent/profile/stacks.c explains why no sample gets lost in between).
 *
 * Values without a need for exact bounds (registers, counts, the end of the walk) go through struct
 * stack, a map value. For the verifier a value read back from memory is any number. So the many
 * exits of a loop become the same state, checked once.
 */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "lib/process_maps.bpf.h"
#include "lib/regs.bpf.h"
#include "lib/settings.bpf.h"
#include "lib/table_maps.bpf.h"
#include "lib/task.bpf.h"
#include "lib/names.bpf.h"
#include "lib/walk.bpf.h"
#include "lib/python_task.bpf.h"
#include "shared/sample.h"

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

struct stacks_deep {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sample_key);
	__type(value, struct sample_deep);
};

struct stacks_lost {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLE_LOST_MAX);
	__type(key, struct sample_key);
	__type(value, struct sample_head);
};

struct stack_stats {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_stats);
};

/* The stack being taken. A program does not interrupt itself on a CPU, so one for each event and
 * CPU is enough: a per-CPU array of one element. */
struct stack {
	/* Everything but the outer frames of a deep stack is in one page or two. */
	struct walk walk; /* first: python_process_of() and so on */
	struct regs regs; /* of the task in user mode, then of signal frames */
	__u64 dumped;	  /* parts of a dump that were tried (stack_dump.bpf.h) */
	__u64 dump_id;	  /* of a wait's copy; 0: there is none */
	__u64 names;  /* 1: an excerpt comes before the walk (STACK_DUMP_NAMES), 2: it is under way
		       */
	__u64 weight; /* of the sample, in SAMPLE_ONEs (cgroup_sampling.bpf.h) */
	union {	      /* by walk.runtime */
		struct python_process python;
		struct hotspot_process hotspot;
		struct v8_process v8;
	};
	struct sample_key key;
	struct {
		struct sample_head head;
		__u64 frames[WALK_SLOTS];
	} value;
};

struct stack_scratch {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
};

/*
 * Where user stacks are read to, a window for each CPU. Not in the scratch value: kernels 5.19 to
 * 6.3 (mended in 6.1.36, 6.3.10 and 6.4, d319f344561d) check the destination of such a copy. For
 * vmalloc memory, such as per-CPU maps, the check takes a lock. The interrupted code may hold this
 * lock, and the CPU then hangs. A plain array of less than 32 KB is kmalloc memory, checked without
 * a lock. So user space makes an array for each CPU, of 16 KB.
 *
 * The memo is beside the window, because kmalloc memory is also mapped in large pages: the walk
 * finds any entry without another miss in the TLB. The memo begins with a cache line. The kernel
 * gives the array's value another place in its line in each version.
 */
struct stack_room {
	struct window window; /* first: walk_room() */
	struct walk_room of_runtime;
	__u8 memo[MEMO_LINE + sizeof(struct memo)];
};
_Static_assert(sizeof(struct stack_room) == SETTINGS_ROOM_BYTES, "made by user space");

/* The first cache line at or behind @off in the value of a plain array, from @off on. */
static __always_inline __u64 stack_line(__u64 off)
{
	return -(bpf_core_field_offset(struct bpf_array, value) + off) & (MEMO_LINE - 1);
}

static __always_inline struct memo *stack_memo(struct stack_room *room)
{
	return (struct memo *)&room->memo[stack_line(__builtin_offsetof(struct stack_room, memo))];
}

struct stack_rooms {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set before loading: enough for all CPUs */
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct stack_room));
		});
};

/* The memo of runtimes' objects, likewise. User space makes these arrays with the walk of HotSpot
 * and with CPython's, so that a node without these has none. */
struct stack_object_room {
	__u8 memo[MEMO_LINE + sizeof(struct object_memo)];
};
_Static_assert(sizeof(struct stack_object_room) == SETTINGS_OBJECTS_BYTES, "made by user space");

struct stack_objects {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set before loading: enough for all CPUs */
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct stack_object_room));
		});
};

/* Threads with a trail. More threads than slots share them, and read some sets in vain. */
#define STACK_TRAILS 1024

/* Mapped memory begins with a page, so that each trail is one cache line. */
struct stack_trails {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STACK_TRAILS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trail);
};

/* Of the current thread. NULL never happens. */
static __always_inline struct trail *stack_trail(void *trails)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid & (STACK_TRAILS - 1);

	return bpf_map_lookup_elem(trails, &slot);
}

/* What the present CPU has in an array of arrays. */
static __always_inline void *stack_of_cpu(void *arrays)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	void *map = bpf_map_lookup_elem(arrays, &cpu);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

static __always_inline struct stack_room *stack_room(void *rooms)
{
	return stack_of_cpu(rooms);
}

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	return bpf_probe_read_user(to, n, (void *)address) != 0;
}

WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe)
{
	return table_descriptor(exe);
}

WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames)
{
	table_used(exe, n_frames);
}

/* The current task is the sampled one. The kernel keeps the register's value from the thread's
 * start or from the program's own change, early enough for any use. On arm64 a program changes the
 * register itself, and the kernel saves it with each switch to another task: early enough too,
 * except for the first milliseconds of a process. */
WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (bpf_core_field_exists(task->thread.fsbase))
		return BPF_CORE_READ(task, thread.fsbase);
	if (bpf_core_field_exists(task->thread.uw.tp_value))
		return BPF_CORE_READ(task, thread.uw.tp_value);
	return 0;
}

WALK_INLINE struct walk_room *walk_room(const struct walk_ctx *c)
{
	return &((struct stack_room *)c->win)->of_runtime;
}

/* Around everything that depends on the generation, over all programs of a sample. Counters and
 * flag are volatile and stay in order. */
static __always_inline void stack_running(void *stats, __u64 is)
{
	__u32 zero = 0;
	volatile struct sample_stats *of_cpu = bpf_map_lookup_elem(stats, &zero);

	if (of_cpu)
		of_cpu->running = is;
}

/* Increment @stat in @stats, a struct stack_stats. */
static __always_inline void stack_count(void *stats, __u32 stat)
{
	__u32 zero = 0;
	volatile struct sample_stats *of_cpu = bpf_map_lookup_elem(stats, &zero);
	__u64 i = stat;

	/* The compiler must index with the register that it compares: the verifier knows no other.
	 */
	__asm__ volatile("" : "+r"(i));
	/* This CPU's own, and no other program of ours runs in between. */
	if (of_cpu && i < SAMPLE_STAT_MAX)
		of_cpu->counts[i] += 1;
}

/* The cgroups of @task, the current one: the only lookup for a sample that is not taken. The
 * unified hierarchy's id is the directory's inode number. */
static __always_inline void stack_cgroups(struct task_struct *task, struct stack *s)
{
	s->key.cgroup_id = bpf_get_current_cgroup_id();
	s->key.cgroup_v1_id = task_cgroup_v1_id(task, cfg.v1_controller);
	s->weight = SAMPLE_ONE;
}

/* Set the identity of the process. 0 in key.tgid: not in the agent's /proc. */
static __always_inline void stack_begin(struct task_struct *task, struct stack *s)
{
	struct task_struct *leader = TASK_READ(task, group_leader);

	s->key.tgid = task_tgid(leader, cfg.pidns_inum);
	s->key.start_boottime_ns = TASK_READ(leader, start_boottime);
	s->key.exec_id = task_exec_id(leader);
	s->value.head.n_kernel = 0;
	s->walk.n = 0;
	s->walk.n_rows = 0;
	s->walk.flags = 0;
	s->walk.hash = 0;
	s->walk.runtime = FRAME_RUNTIME_NONE;
	s->walk.end = SAMPLE_END_NO_USER;
	s->dumped = 0;
	s->dump_id = 0;
	s->names = 0;
}

/* Set the name of the process. Only new stacks and dumps need it. */
static __always_inline void stack_comm(struct task_struct *task, struct stack *s)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_probe_read_kernel(s->value.head.comm, sizeof(s->value.head.comm), leader->comm);
}

/* Store the kernel half in the first slots, from the place of the event in @ctx, the program's
 * context. Call only for events in the kernel. @skip: innermost frames to leave out. */
static __always_inline void stack_kernel(void *ctx, struct stack *s, __u64 skip)
{
	__u32 n_kernel;
	long n;

	if (!cfg.kernel_stacks)
		return;
	n = bpf_get_stack(ctx, s->value.frames, SAMPLE_KERNEL_FRAMES_MAX * sizeof(__u64), skip);
	if (n > 0)
		s->value.head.n_kernel = (__u32)n / sizeof(__u64);
	n_kernel = s->value.head.n_kernel;
	for (__u32 i = 0; i < SAMPLE_KERNEL_FRAMES_MAX; i++) {
		if (i >= n_kernel)
			break;
		s->walk.hash = walk_hash(s->walk.hash, s->value.frames[i]);
	}
}

/* Copy the registers saved at the kernel entry of @task, the current one, into s->regs. False for a
 * task without registers of its present program. */
static __always_inline int stack_saved_regs(struct task_struct *task, struct stack *s)
{
	if (bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)regs_of_task(task)))
		return 0;
	/* A kernel worker on behalf of a process (io_uring) has a register frame of zeros. */
	return regs_user_mode(&s->regs) && regs_pc(&s->regs) &&
	       !task_has_left(task, regs_sp(&s->regs));
}

/* The process in the runtime's own map: a copy, without a lookup in each step. */
#define STACK_RUNTIME_PROCESS(name)                                                              \
	static __always_inline int name##_begin(struct stack *s)                                 \
	{                                                                                        \
		struct name##_process *p = bpf_map_lookup_elem(&name##_processes, &s->key.tgid); \
                                                                                                 \
		if (!p)                                                                          \
			return 0;                                                                \
		s->name = *p;                                                                    \
		return 1;                                                                        \
	}                                                                                        \
                                                                                                 \
	WALK_INLINE const struct name##_process *name##_process_of(const struct walk_ctx *c)     \
	{                                                                                        \
		return &((struct stack *)c->w)->name;                                            \
	}

STACK_RUNTIME_PROCESS(python)
STACK_RUNTIME_PROCESS(hotspot)
STACK_RUNTIME_PROCESS(v8)

/* Prepare the step of @runtime for the process. False if it cannot run. */
static __always_inline int stack_runtime(struct stack *s, __u32 runtime)
{
#define STACK_RUNTIME_BEGIN(NAME, name)      \
	if (runtime == FRAME_RUNTIME_##NAME) \
		return name##_begin(s);
	FRAME_RUNTIMES(STACK_RUNTIME_BEGIN)
	return 0;
}

/* The walk has the step of @runtime, if the process is in the runtime's map. */
static __always_inline void stack_begin_runtime(struct stack *s, __u32 runtime)
{
	s->walk.runtime = FRAME_RUNTIME_NONE;
	if (!runtime || !stack_runtime(s, runtime))
		return;
	s->walk.runtime = runtime;
	__builtin_memset(&s->walk.aside, 0, sizeof(s->walk.aside));
	s->walk.aside.before.hash = s->walk.hash;
}

/* Find the process's mappings, none without a record of its present state, and its runtime. */
static __always_inline void stack_process(struct stack *s, __u64 *mappings, __u64 *n_mappings)
{
	volatile struct process *p;
	__u32 runtime;

	*mappings = 0;
	*n_mappings = 0;
	if (cfg.unwind == SETTINGS_UNWIND_FP)
		return;
	s->walk.flags |= SAMPLE_FLAG_NO_PROCESS;
	p = bpf_map_lookup_elem(&process_records, &s->key.tgid);
	if (!p)
		return;
	*mappings = p->first;
	*n_mappings = p->n_mappings;
	runtime = p->runtime;
	/* Check the identity last: a deleted record may become another process's at once. */
	if (p->start_boottime_ns != s->key.start_boottime_ns || p->exec_id != s->key.exec_id) {
		*n_mappings = 0;
		return;
	}
	s->walk.flags &= ~SAMPLE_FLAG_NO_PROCESS;
	stack_begin_runtime(s, runtime);
}

static __always_inline struct walk_ctx stack_walk_ctx(struct stack *s, struct stack_room *room)
{
	return (struct walk_ctx){
		.w = &s->walk,
		.regs = &s->regs,
		.win = room ? &room->window : NULL,
		.memo = room ? stack_memo(room) : NULL,
		.frames = s->value.frames,
		.mode = cfg.unwind,
	};
}

/* Begin the user half, from s->regs, behind the kernel half. s->walk.end is WALK_ON if there is
 * more of it than the innermost frame: then call stack_walk(). */
static __always_inline void stack_user(struct stack *s)
{
	const struct walk_ctx c = stack_walk_ctx(s, NULL);
	__u64 mappings, n_mappings;

	s->walk.first = s->value.head.n_kernel;
	if (!regs_64bit(&s->regs)) {
		/* Frames of 32-bit programs have another size: keep only the innermost pc. */
		walk_begin(&c, 0, 0);
		s->walk.end = SAMPLE_END_32BIT;
		return;
	}
	stack_process(s, &mappings, &n_mappings);
	walk_begin(&c, mappings, n_mappings);
}

/* Frames walked in one call of the loop's function. One frame per call would add half the cost of
 * the walk; more frames mean more work for the verifier. */
#define STACK_FRAMES_A_CALL 4

/* Members of the context are read once, because each fence would make the compiler read them again.
 * Frames left of a call after a crossing are not walked: the limit is reached that much earlier. */
static __always_inline long stack_walk_some(const void *ctx, const struct walk_runtime *runtime)
{
	const struct walk_ctx c = *(const struct walk_ctx *)ctx;

	for (int k = 0; k < STACK_FRAMES_A_CALL; k++)
		if (walk_near(&c, runtime))
			break;
	return walk_cross(&c);
}

/* Functions called by bpf_loop(): for native code, and for each runtime. */
#define STACK_LOOPED static __attribute__((noinline, unused)) long

STACK_LOOPED stack_walk_native(__u32 i, void *ctx)
{
	return stack_walk_some(ctx, NULL);
}

#define STACK_WALK_RUNTIME(NAME, name)                     \
	STACK_LOOPED stack_walk_##name(__u32 i, void *ctx) \
	{                                                  \
		return stack_walk_some(ctx, &name##_walk); \
	}
FRAME_RUNTIMES(STACK_WALK_RUNTIME)

static __always_inline __u64 stack_identity(const struct sample_key *key)
{
	return walk_hash(walk_hash(walk_hash(0, key->tgid), key->start_boottime_ns), key->exec_id);
}

/* The context of the walk of a process with @runtime. Zero without a room for it, which never
 * happens. */
static __always_inline int stack_walk_begin(struct walk_ctx *c, struct stack *s,
					    struct stack_room *room, void *objects, __u32 runtime)
{
	struct stack_object_room *of_objects;

	*c = stack_walk_ctx(s, room);
	if (runtime != FRAME_RUNTIME_HOTSPOT && runtime != FRAME_RUNTIME_PYTHON)
		return 1;
	of_objects = stack_of_cpu(objects);
	if (!of_objects)
		return 0;
	c->objects = (struct object_memo *)&of_objects->memo[stack_line(0)];
	c->identity = stack_identity(&s->key);
	return 1;
}

/* All frames at once; @walk_some is one of the functions above. The verifier checks a function
 * called by bpf_loop() once or twice, instead of round by round: a twentieth of the work. The
 * helper exists since 5.17 (e6f2dd0f8067). */
static __always_inline void stack_walk_all(struct walk_ctx *c,
					   long (*walk_some)(__u32 i, void *ctx))
{
	if (c->w->end != WALK_ON)
		return;
	if (c->trail)
		trail_follow(c->trail, c->memo);
	bpf_loop(SAMPLE_USER_FRAMES_MAX / STACK_FRAMES_A_CALL, walk_some, c, 0);
	if (c->trail)
		trail_end(c->trail, c->w->n_sets);
}

/* For kernels without it: the next frames. True if there are more, for the same program again. */
static __always_inline int stack_walk_part(const struct walk_ctx *c,
					   const struct walk_runtime *runtime)
{
	if (c->w->end != WALK_ON)
		return 0;
	walk_on(c, runtime);
	c->w->program += 1;
	return c->w->end == WALK_ON && c->w->program < WALK_PROGRAMS;
}

/* Fill in key and head of the walked stack. False for an empty stack. */
static __always_inline int stack_finish(struct stack *s, __u64 count, __u64 total)
{
	struct sample_head *head = &s->value.head;

	head->count = count;
	head->total = total;
	head->n_user = s->walk.n;
	head->n_rows = s->walk.n_rows;
	head->pad = 0;
	s->key.end = s->walk.end == WALK_ON ? SAMPLE_END_MAX_FRAMES : s->walk.end;
	s->key.flags = s->walk.flags;
	s->key.stack_hash = walk_hash(walk_hash(s->walk.hash, head->n_kernel), head->n_user);
	return head->n_user || head->n_kernel;
}

/* Add the name of @task, the current one, behind the frames. After stack_finish(). The deepest
 * possible stack leaves one word too few: it counts as above the limit. */
static __always_inline void stack_thread(struct task_struct *task, struct stack *s)
{
	__u64 at = (__u64)s->value.head.n_kernel + s->value.head.n_user;
	__u64 name[SAMPLE_THREAD_WORDS] = {0};
	__u32 flag = SAMPLE_FLAG_OTHER_THREAD;

	if (!cfg.thread_names)
		return;
	/* The compiler must index with the register that it compares. */
	__asm__ volatile("" : "+r"(at));
	if (at <= WALK_SLOTS - SAMPLE_THREAD_WORDS) {
		flag = names_thread(task, s->key.tgid, name);
		s->value.frames[at] = name[0];
		s->value.frames[at + 1] = name[1];
		s->key.stack_hash = walk_hash(walk_hash(s->key.stack_hash, name[0]), name[1]);
	}
	s->key.flags |= flag;
}

/* Words of the stack, with the names. */
static __always_inline __u32 stack_n_words(const struct stack *s)
{
	__u32 n = s->value.head.n_kernel + s->value.head.n_user;

	if (cfg.thread_names && (s->key.flags & SAMPLE_FLAG_THREAD))
		n += SAMPLE_THREAD_WORDS;
	if (cfg.task_names && (s->key.flags & SAMPLE_FLAG_TASK))
		n += SAMPLE_TASK_WORDS;
	return n;
}

/* Add the name in @key behind the frames and the name of the thread. */
static __always_inline void stack_add_task(struct stack *s, const struct sample_name_key *key)
{
	__u64 at = stack_n_words(s);
	__u32 flag = SAMPLE_FLAG_OTHER_TASK;

	__asm__ volatile("" : "+r"(at));
	if (at <= WALK_SLOTS - SAMPLE_TASK_WORDS && names_permit(key)) {
		flag = SAMPLE_FLAG_TASK;
		for (int i = 0; i < SAMPLE_TASK_WORDS; i++) {
			s->value.frames[at + i] = key->name[i];
			s->key.stack_hash = walk_hash(s->key.stack_hash, key->name[i]);
		}
	}
	s->key.flags |= flag;
}

/* Whether threads of a runtime have tasks with names. */
static __always_inline int stack_has_tasks(__u32 runtime)
{
	return runtime == FRAME_RUNTIME_PYTHON;
}

/* Add the name of the task that the current thread runs. After stack_thread(), which its name
 * follows, and after the walk of such a runtime, by @c. */
static __always_inline void stack_task(struct stack *s, const struct walk_ctx *c)
{
	/* with the walk's functions a program has 512 bytes of stack */
	struct sample_name_key *key = (struct sample_name_key *)walk_room(c)->window.words;

	if (!cfg.task_names || !python_task_name(c, &s->python, key->name))
		return;
	key->tgid = s->key.tgid;
	key->kind = SAMPLE_NAME_TASK;
	key->is_count = 0;
	stack_add_task(s, key);
}

/*
 * Add count and total to the entry of this stack in @map. A new entry gets the name of @task, or,
 * without one, has it already. 0, or the helper's -errno without room.
 *
 * The result is an int, not a long: the verifier turns the helper into a direct call of the map's
 * function. This function returned an int before 6.4 (d7ba4cc900bf), without its sign in the upper
 * half of the register.
 */
static __always_inline int stack_add_to(void *map, struct task_struct *task, struct stack *s)
{
	struct sample_head *head = bpf_map_lookup_elem(map, &s->key);
	int r = 0;

	if (!head) {
		if (task)
			stack_comm(task, s);
		r = (int)bpf_map_update_elem(map, &s->key, &s->value, BPF_NOEXIST);
		if (r != -EEXIST)
			return r;
		/* Another CPU was faster with the same stack. */
		head = bpf_map_lookup_elem(map, &s->key);
	}
	if (!head)
		return r;
	__sync_fetch_and_add(&head->count, s->value.head.count);
	__sync_fetch_and_add(&head->total, s->value.head.total);
	return 0;
}

/* No room for the stack: its count and total are added to those of its process. */
static __always_inline void stack_lose(void *lost, struct task_struct *task, struct stack *s)
{
	s->value.head.n_kernel = 0;
	s->value.head.n_user = 0;
	s->value.head.n_rows = 0;
	s->key.stack_hash = 0;
	s->key.end = SAMPLE_END_NO_USER;
	s->key.flags = SAMPLE_FLAG_LOST;
	stack_add_to(lost, task, s);
}

/* Add s->value.head's count and total to the entry of this stack in the generation's maps. If the
 * size class is full, the stack goes into the next larger one. Returns enum sample_stat. */
static __always_inline __u32 stack_add(void *small, void *large, void *deep, void *lost,
				       struct task_struct *task, struct stack *s)
{
	__u32 n = stack_n_words(s);
	int r = -E2BIG;

	if (n <= SAMPLE_SMALL_FRAMES)
		r = stack_add_to(small, task, s);
	if (r == -E2BIG && n <= SAMPLE_LARGE_FRAMES)
		r = stack_add_to(large, task, s);
	if (r == -E2BIG)
		r = stack_add_to(deep, task, s);
	if (!r)
		return s->key.end;
	stack_lose(lost, task, s);
	return r == -E2BIG ? SAMPLE_STAT_LOST_FULL : SAMPLE_STAT_LOST_BUSY;
}

#endif
