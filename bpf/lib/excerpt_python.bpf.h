/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_EXCERPT_PYTHON_BPF_H
#define PODPROF_BPF_LIB_EXCERPT_PYTHON_BPF_H

/*
 * The excerpt of a process with CPython (shared/python.h) for a stack dump: the thread's list of
 * frames, and the words, strings and line table of each new code object. So the agent has the
 * Python functions of a process that ends before the agent reads the process.
 *
 * The program reads the list like the walk (runtime_python.bpf.h), but does not divide the list by
 * native frames: the agent divides the copy during the walk over the dump.
 */

#include "lib/stack_dump.bpf.h"

/* Bytes of a copied string. A longer string is left out, and the function has no name. A function
 * with a line table above a window's size has no lines. */
#define EXCERPT_STRING_BYTES 512

/* Bytes of all memory in an excerpt: what the frames leave. A stack above
 * EXCERPT_BEHIND_BYTES takes from it. */
#define EXCERPT_BEHIND_BYTES (STACK_DUMP_SHARED_BYTES - STACK_DUMP_EXCERPT_BYTES)
#define EXCERPT_MEMORY_BYTES                                                                 \
	(STACK_DUMP_EXCERPT_BYTES -                                                          \
	 PYTHON_EXCERPT_FRAMES * (sizeof(struct stack_dump_part) + PYTHON_FRAME_WORDS * 8) - \
	 (sizeof(struct stack_dump_part) + PYTHON_THREAD_WORDS * 8))

_Static_assert(EXCERPT_MEMORY_BYTES >= STACK_DUMP_BYTES - EXCERPT_BEHIND_BYTES,
	       "all frames have room behind the largest stack");

/* Bytes of a usual code object with its strings and its table, and some more. */
#define EXCERPT_CODE_BYTES (WINDOW_BYTES + 512)

/* Code objects of recent excerpts, by hash: a later excerpt leaves these objects out. A collision
 * only causes another copy. CPUs write concurrently, a whole word each. */
#define EXCERPT_SEEN 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, EXCERPT_SEEN);
	__type(key, __u32);
	__type(value, __u64);
} python_seen __weak SEC(".maps");

/* Number of lost excerpts. The number is part of the hash, so a loss causes new copies of all code
 * objects. */
volatile __u64 python_seen_epoch __weak = 0;

/* ---------------------------------------------------------------- parts */

/* Where the next part goes, if it has no more than @most bytes with its head. */
static __always_inline struct stack_dump_part *excerpt_room(struct stack_dump_record *c, __u64 most)
{
	__u64 off = stack_dump_bytes_off(c) + c->head.n_bytes + c->head.n_excerpt;

	/* The compiler must index with the register that it compares. */
	__asm__ volatile("" : "+r"(off));
	if (off > sizeof(c->data) - most)
		return NULL;
	return (struct stack_dump_part *)(void *)(c->data + off);
}

static __always_inline void excerpt_head(struct stack_dump_record *c, struct stack_dump_part *part,
					 __u64 at, __u32 what, __u64 n)
{
	part->at = at;
	part->n = (__u32)n;
	part->what = what;
	c->head.n_excerpt += sizeof(*part) + ((n + 7) & ~7ull);
}

/* The first w->ra bytes of ours at @from, read from @at: at most a window's. w->go counts: all
 * frames must have room. */
static __always_inline void excerpt_copy(struct stack_dump_record *c, const struct walk_ctx *walk,
					 const void *from, __u64 at)
{
	struct stack_dump_part *part = excerpt_room(c, sizeof(*part) + WINDOW_BYTES);
	__u64 n = walk->w->ra;

	__asm__ volatile("" : "+r"(n));
	if (!part || n > WINDOW_BYTES || walk->w->go > EXCERPT_MEMORY_BYTES - WINDOW_BYTES)
		return;
	bpf_probe_read_kernel(part + 1, n, from);
	excerpt_head(c, part, at, PYTHON_PART_MEMORY, walk->w->ra);
	walk->w->go += sizeof(*part) + walk->w->ra + 7;
}

/* A number in the window's valid bytes; all ones if it is not there. */
static __always_inline __u64 excerpt_number(const struct walk_ctx *walk, __u64 off)
{
	return walk->win->words[(off / 8) & (WINDOW_WORDS - 1)] >> (off & 4) * 8;
}

/* Copy @n bytes of the object at @at, if the window has them. */
static __always_inline void excerpt_object(struct stack_dump_record *c, const struct walk_ctx *walk,
					   __u64 at, __u64 n)
{
	walk->w->ra = n;
	WALK_FENCE();
	if (walk->w->ra > walk->w->place.bytes)
		walk->w->ra = walk->w->place.bytes;
	WALK_FENCE();
	excerpt_copy(c, walk, walk->win->words, at);
	WALK_FENCE();
}

/* The string object at @at. */
static __always_inline void excerpt_string(struct stack_dump_record *c,
					   const struct python_exe *exe,
					   const struct walk_ctx *walk, __u64 at)
{
	__u64 n, width;

	if (!python_plausible(at) ||
	    window_fill_some(NULL, walk->win, &walk->w->place, at, EXCERPT_STRING_BYTES))
		return;
	WALK_FENCE();
	n = excerpt_number(walk, exe->string_length) & (2 * EXCERPT_STRING_BYTES - 1);
	width = excerpt_number(walk, exe->string_state) >> (exe->string_kind & 31) & 7;
	/* whole words, as in the check */
	excerpt_object(c, walk, at, ((n * width + 7) & ~7ull) + exe->string_data);
}

/* The bytes object at @at; only its head if it is longer than the window. */
static __always_inline void excerpt_table(struct stack_dump_record *c, const struct python_exe *exe,
					  const struct walk_ctx *walk, __u64 at)
{
	if (!python_plausible(at) || window_fill(NULL, walk->win, &walk->w->place, at))
		return;
	WALK_FENCE();
	walk->w->ra = (excerpt_number(walk, exe->bytes_length) & 0xffffff) + exe->bytes_data;
	WALK_FENCE();
	if (walk->w->ra > walk->w->place.bytes)
		walk->w->ra = exe->bytes_data;
	WALK_FENCE();
	excerpt_object(c, walk, at, walk->w->ra);
}

/* ---------------------------------------------------------------- frames */

/* Whether no excerpt has the code object, and there is room for a usual one. Marks it. */
static __always_inline int excerpt_is_new(struct stack *s, __u64 code, __u64 check)
{
	__u64 hash =
		walk_hash(walk_hash(python_seen_epoch, s->key.start_boottime_ns), code) ^ check;
	__u32 slot = (__u32)(hash >> 32) % EXCERPT_SEEN;
	volatile __u64 *seen = bpf_map_lookup_elem(&python_seen, &slot);

	if (!seen || *seen == hash)
		return 0;
	if (s->walk.go > EXCERPT_MEMORY_BYTES - EXCERPT_CODE_BYTES) {
		s->walk.cause = 1; /* for another excerpt */
		return 0;
	}
	*seen = hash;
	return 1;
}

/* Copy the code object at @code; the check has read its words. The strings come last: the agent
 * needs the object for each string. */
static __always_inline void excerpt_code(struct stack_dump_record *c, const struct python_exe *exe,
					 const struct walk_ctx *walk, __u64 code)
{
	const struct python_process *p = &exe->process;

	walk->w->ra = ((__u64)p->code_lines & (PYTHON_CODE_BYTES - 8)) + 8;
	WALK_FENCE();
	excerpt_copy(c, walk, walk_room(walk)->object, code);
	WALK_FENCE();
	excerpt_string(c, exe, walk, python_code_word(walk, p->code_qualname));
	WALK_FENCE();
	/* w->fp_at: the file copied last, which mostly is the caller's, too */
	if (walk->w->fp_at != python_code_word(walk, p->code_filename)) {
		walk->w->fp_at = python_code_word(walk, p->code_filename);
		excerpt_string(c, exe, walk, walk->w->fp_at);
	}
	WALK_FENCE();
	excerpt_table(c, exe, walk, python_code_word(walk, p->code_lines));
	WALK_FENCE();
}

/* The frame at PYTHON_AT. Not 0 at the end of the list. */
static __always_inline int excerpt_frame(struct stack_dump_record *c, const struct python_exe *exe,
					 struct stack *s, const struct walk_ctx *walk)
{
	const struct python_process *p = &exe->process;
	__u64 *mine = s->walk.aside.of_runtime, *frame = s->walk.aside.of_frame, check = 0;
	struct stack_dump_part *part;
	int is_own;

	if (!python_plausible(mine[PYTHON_AT]) || python_frame(walk, p))
		return -1;
	WALK_FENCE();
	is_own = p->activation == PYTHON_OWNER &&
		 (frame[PYTHON_ENTRY] >> (p->frame_entry & 7) * 8 & 0xff) >= PYTHON_OWNER_LOOP;
	frame[PYTHON_CODE] &= ~(p->code_tagged * 3ull);
	if (!is_own && (!python_plausible(frame[PYTHON_CODE]) ||
			python_check(walk, p, frame[PYTHON_CODE], 0, &check)))
		return -1;
	WALK_FENCE();
	part = excerpt_room(c, sizeof(*part) + PYTHON_FRAME_WORDS * 8);
	if (!part)
		return -1;
	for (int i = 0; i < PYTHON_CHECK; i++)
		((__u64 *)(void *)(part + 1))[i] = frame[i];
	((__u64 *)(void *)(part + 1))[PYTHON_CHECK] = check;
	excerpt_head(c, part, mine[PYTHON_AT], PYTHON_PART_FRAME, PYTHON_FRAME_WORDS * 8);
	WALK_FENCE();
	if (!is_own && excerpt_is_new(s, frame[PYTHON_CODE], check))
		excerpt_code(c, exe, walk, frame[PYTHON_CODE]);
	mine[PYTHON_AT] = frame[PYTHON_PREVIOUS];
	WALK_FENCE();
	return 0;
}

/* ---------------------------------------------------------------- the thread */

/* pthread_self() of the current thread. On x86-64 it is the thread pointer. On arm64 it is less by
 * the size of glibc's struct pthread, which the releases differ in, but glibc gives the kernel the
 * address of a member in front of all that differs. And the kernel has that address at once, the
 * thread pointer only after a switch. */
static __always_inline __u64 excerpt_self(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 tid;

	if (!bpf_core_field_exists(task->thread.uw.tp_value))
		return walk_thread_pointer(NULL);
	tid = (__u64)BPF_CORE_READ(task, clear_child_tid);
	return tid ? tid - PYTHON_ARM64_TID : 0;
}

/* Whether @way leads from @from to the state of the thread @self, whose address is then in
 * PYTHON_AT. */
static __always_inline int excerpt_is_way(const struct python_exe *exe, const struct walk_ctx *walk,
					  __u64 from, __u64 self, const struct python_way *way)
{
	__u64 *mine = walk->w->aside.of_runtime, id;

	if (!way->at || !self || python_state(walk, from, way) ||
	    !python_plausible(mine[PYTHON_AT]))
		return 0;
	return !python_word(walk, mine[PYTHON_AT] + exe->thread_id, &id) && id == self;
}

static __always_inline int excerpt_thread(struct stack_dump_record *c, const struct python_exe *exe,
					  struct stack *s, const struct walk_ctx *walk)
{
	const __u64 self = excerpt_self(), pointer = walk_thread_pointer(NULL);
	__u64 *mine = s->walk.aside.of_runtime;
	struct stack_dump_part *part;

	s->python.way.at = 0;
	for (int i = 0; i < PYTHON_WAYS_MAX; i++)
		if (excerpt_is_way(exe, walk, i < exe->n_known ? pointer : self, self,
				   &exe->ways[i])) {
			s->python.way = exe->ways[i];
			break;
		}
	WALK_FENCE();
	mine[PYTHON_CFRAME] = 0;
	mine[PYTHON_OUTER] = 0;
	if (!s->python.way.at || python_begin_state(walk, &s->python))
		return -1;
	part = excerpt_room(c, sizeof(*part) + PYTHON_THREAD_WORDS * 8);
	if (!part)
		return -1;
	((__u64 *)(void *)(part + 1))[0] = mine[PYTHON_AT];
	((__u64 *)(void *)(part + 1))[1] = mine[PYTHON_CFRAME];
	((__u64 *)(void *)(part + 1))[2] = mine[PYTHON_OUTER];
	excerpt_head(c, part, (__u64)(__s64)s->python.way.at, PYTHON_PART_THREAD,
		     PYTHON_THREAD_WORDS * 8);
	WALK_FENCE();
	return 0;
}

/* ---------------------------------------------------------------- the excerpt */

/* Frames of one run of the program, and the number of runs in a row: the verifier checks each frame
 * anew. A walk in parts gets the remaining tail calls. With bpf_loop() the verifier would check a
 * single frame, but off-CPU dumps continue with a tail call, and some kernels forbid a tail call
 * beside the loop's function. */
#define EXCERPT_PART_FRAMES 16
#define EXCERPT_PARTS	    (PYTHON_EXCERPT_FRAMES / EXCERPT_PART_FRAMES)

/* Whether the filled record belongs to a program with CPython, so that an excerpt follows. */
static __always_inline int excerpt_wanted(const struct stack_dump_record *c, struct stack *s)
{
	s->walk.program = 0;
	return c->head.exe.inode && bpf_map_lookup_elem(&python_exes, &c->head.exe);
}

/* Begin the excerpt behind the dump's stack bytes. False: there is none. */
static __always_inline int excerpt_begin(struct stack_dump_record *c, struct python_exe *exe,
					 struct stack *s, const struct walk_ctx *walk)
{
	const __u64 hash = s->walk.aside.before.hash;

	s->python = exe->process;
	s->walk.go =
		c->head.n_bytes > EXCERPT_BEHIND_BYTES ? c->head.n_bytes - EXCERPT_BEHIND_BYTES : 0;
	s->walk.cause = 0;
	s->walk.fp_at = 0;
	__builtin_memset(&s->walk.aside, 0, sizeof(s->walk.aside));
	s->walk.aside.before.hash = hash; /* for excerpt_end_names() */
	/* frames on this part of the stack are read without the window */
	s->walk.aside.sp = regs_sp(&s->regs);
	s->walk.aside.cfa = c->head.at + c->n_whole;
	if (excerpt_thread(c, exe, s, walk))
		return 0;
	c->head.runtime = FRAME_RUNTIME_PYTHON;
	return 1;
}

/* Excerpts without a stack in a row. */
#define EXCERPT_NAMES 4

/* An excerpt without a stack. False above a limit. */
static __always_inline int excerpt_begin_names(struct stack_dump_record *c, struct stack *s)
{
	const __u64 now_ns = bpf_ktime_get_boot_ns();

	s->names += 1;
	s->walk.program = 0;
	c->head.runtime = FRAME_RUNTIME_NONE;
	s->walk.go = 0; /* nothing to send */
	if (stack_dump_permit(s->key.tgid, now_ns) != STACK_DUMP_TAKEN)
		return 0;
	stack_dump_describe(c, s, STACK_DUMP_NAMES, now_ns);
	c->head.key.stack_hash = 0;
	c->head.head.n_kernel = 0;
	c->head.n_bytes = 0;
	return 1;
}

/* The next frames. True if there are more, for the same program again. */
static __always_inline int excerpt_part(struct stack_dump_record *c, struct stack *s,
					struct stack_room *room)
{
	struct python_exe *exe = bpf_map_lookup_elem(&python_exes, &c->head.exe);
	const struct walk_ctx walk = stack_walk_ctx(s, room);
	int i = 0;

	if (!exe || (!s->walk.program && !excerpt_begin(c, exe, s, &walk)))
		return 0;
	s->walk.program += 1;
	WALK_FENCE();
	while (i < EXCERPT_PART_FRAMES && !excerpt_frame(c, exe, s, &walk))
		i++;
	return i == EXCERPT_PART_FRAMES && s->walk.program < EXCERPT_PARTS;
}

/* Send the names, if there are any. True if there are more: for the same program again. */
static __always_inline int excerpt_names_out(struct stack_dump_record *c, struct stack *s)
{
	__u32 stat = STACK_DUMP_NAMED;
	__u64 *count;

	if (!c->head.runtime || !s->walk.go)
		return 0;
	if (stack_dump_send(c) != STACK_DUMP_TAKEN) {
		python_seen_epoch += 1;
		stat = STACK_DUMP_RING_FULL;
	}
	count = bpf_map_lookup_elem(&stack_dump_stats, &stat);
	if (count)
		*count += 1;
	return stat == STACK_DUMP_NAMED && s->walk.cause && s->names < EXCERPT_NAMES;
}

/* Prepare the walk again. The native frame is stored already: the hash in front of it is still the
 * one of the first time. */
static __always_inline void excerpt_end_names(struct stack *s)
{
	const __u64 hash = s->walk.aside.before.hash;

	s->names = 0;
	s->walk.program = 0;
	s->walk.place.bytes = 0;
	stack_begin_runtime(s, FRAME_RUNTIME_PYTHON);
	s->walk.aside.before.hash = hash;
}

/* stack_dump_out() of the record with its excerpt. Further names follow in excerpts without a
 * stack. */
static __always_inline int excerpt_out(struct stack_dump_record *c, struct stack *s)
{
	s->walk.program = 0; /* of a walk that follows */
	if (!stack_dump_out(c, s, STACK_DUMP_TAKEN)) {
		python_seen_epoch += 1;
		return 0;
	}
	s->names = c->head.runtime && s->walk.cause;
	return 1;
}

/* A part of the excerpt, or of new names. 1 if another one is to come. */
static __always_inline int excerpt_goes_on(struct stack_dump_record *c, struct stack *s,
					   struct stack_room *room)
{
	if (s->names && !s->walk.program && !excerpt_begin_names(c, s))
		return 0;
	return excerpt_part(c, s, room);
}

/* After the last part. Not 0 if new names are to follow. @is_out: whether the dump is sent. */
static __always_inline int excerpt_end(struct stack_dump_record *c, struct stack *s, int *is_out)
{
	s->walk.program = 0;
	if (!s->names) {
		*is_out = excerpt_out(c, s);
		return s->names;
	}
	*is_out = s->dumped != 0;
	return excerpt_names_out(c, s);
}

/* Whether Python's walk follows, as after names that were sent alone. */
static __always_inline int excerpt_walk_follows(struct stack *s)
{
	if (s->dumped)
		return 0;
	excerpt_end_names(s);
	return s->walk.runtime != 0;
}

#endif
