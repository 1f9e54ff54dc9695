/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_WALK_BPF_H
#define PODPROF_BPF_LIB_WALK_BPF_H

/*
 * The walk over a user stack, from the registers outwards. The walk calls no helper and reads
 * memory through accessors, so tests compile the same text for the host.
 *
 * Each step finds the row of the pc (table.bpf.h) and follows its rule (shared/unwind.h). A row
 * covers code addresses up to the next row. A return address may already belong to the next row,
 * even to another function, so the lookup uses the byte before. Only an interrupted pc is looked up
 * unchanged: in the innermost frame (except in x86-64's system calls, where the pc is behind
 * the instruction) and right outside a signal frame. The innermost frame is stored as looked up,
 * and all others one byte higher, so that readers treat these alike.
 *
 * Registers other than pc, sp and fp are known in the innermost frame and right outside a signal
 * frame, which holds all registers. Nearly no row needs other registers elsewhere. One frame
 * further out, a row may need a caller-saved register: the caller knows that its callee keeps the
 * register (OpenSSL's AES-GCM keeps the CFA in rax and calls its own routines). The walk then uses
 * the old value of the register, but only if the result leads to code.
 *
 * Without a row (a process or an image not known yet, code made at run time, assembly without
 * description), the walk tries the frame pointer. Code built with frame pointers keeps,
 * at the address in the frame-pointer register, a record of two words: the caller's frame pointer
 * and the return address. x86-64 (push %rbp; mov %rsp,%rbp) and arm64 (stp x29, x30, [sp, #-n]!;
 * mov x29, sp) agree on that. The records form a list towards higher addresses; the thread's first
 * function ends it with a zero. Code built without frame pointers uses the
 * register for other values, and the list is invalid from there on. An invented frame is worse than
 * a missing frame, so the walk checks every link: aligned, above the last link, within the largest
 * stack, the return address at a possible code address and, in a known process, in code. The checks
 * miss one case: a leaf function without a record yet (or any more) hides its caller.
 *
 * A stack with its continuation elsewhere (a coroutine's) ends there, with a reason. The walk
 * leaves the alternative stack of a signal handler through the signal frame, and Go's stacks by
 * walk_cross().
 *
 * A language runtime may keep frames of its own (shared/frame.h). Each runtime has a step, in a
 * struct walk_runtime, and a copy of the walk with this step compiled in. Processes without a
 * runtime use the copy without a step and pay nothing. A change between native and runtime frames
 * costs no tail call. The native step out of a frame comes first, so the frame's bounds on the
 * stack are known; the caller is not stored yet. Then the runtime's step stores its frames of the
 * native frame, an interpreter's loop for example, one in each call. They stand behind the native
 * frame or replace it. Then the caller is stored, and the walk goes on. Code made by a runtime has
 * no rows, but the runtime may have a plan in their place, which says where the caller is.
 */

#include "lib/mapping.bpf.h"
#include "lib/memo.bpf.h"
#include "lib/regs_arch.bpf.h"
#include "lib/table.bpf.h"
#include "lib/trail.bpf.h"
#include "lib/window.bpf.h"
#include "shared/sample.h"
#include "shared/settings.h"

/* A compiler fence: all values are in struct walk from here on. Without the fence, the compiler
 * keeps values of each path in registers, and the verifier has to follow each path. */
#define WALK_FENCE() __asm__ volatile("" ::: "memory")

#define WALK_INLINE static inline __attribute__((always_inline))

/* Largest distance of a frame from the start of the walk. Thread stacks have 8 MiB by default. Go
 * lets a goroutine's stack grow to 1 GB, but the largest seen have a few MB. */
#define WALK_STACK_BYTES (256ull << 20)
/* No code is mapped below: vm.mmap_min_addr is 65536 by default and at least one page. */
#define WALK_PC_MIN	 0x1000ull
/* One past the highest user address on arm64 (48 bits; position-independent programs begin at
 * 0xaaaa...); x86-64 has half of this. Both give higher addresses only to programs with an address
 * hint. */
#define WALK_PC_LIMIT	 0x1000000000000ull

/* Steps of one part of a walk, native and of a runtime, and the parts of a walk. The step to the
 * frame above the limit counts, too. */
#define WALK_STEPS	16
#define WALK_PROGRAMS	(SAMPLE_USER_FRAMES_MAX / WALK_STEPS)
/* The kernel's limit of tail calls (MAX_TAIL_CALL_CNT). Each part of a walk is one tail call, and
 * so is the stack dump after the last part or before the first. */
#define WALK_TAIL_CALLS 33
_Static_assert(WALK_PROGRAMS + 1 <= WALK_TAIL_CALLS, "a walk in parts, whatever its frames are");

/* Slots for the frames of both halves, and one more. */
#define WALK_SLOTS (SAMPLE_KERNEL_FRAMES_MAX + 1 + SAMPLE_USER_FRAMES_MAX)
_Static_assert(WALK_SLOTS == SAMPLE_DEEP_FRAMES, "the frames are the value of a map");

/* Not an end: continue. Beyond enum sample_end, so one number has all states. */
#define WALK_ON	    SAMPLE_END_MAX
/* The way to the caller is walk_cross(). */
#define WALK_CROSS  (SAMPLE_END_MAX + 1)
/* From a runtime's step: the native step is next. */
#define WALK_NATIVE (SAMPLE_END_MAX + 2)

/* The words stored up to some point. */
struct walk_mark {
	__u64 hash;
	__u64 n;
	__u64 n_rows;
};

/* The native frame that the walk has left, and the state of a runtime's step. All zeros before the
 * first frame. */
struct walk_aside {
	__u64 is_left; /* 1: the caller is known and not stored yet */
	__u64 end;     /* of the native step out of the frame: WALK_ON or why there is no caller */
	__u64 pc;      /* as looked up: in the frame's code */
	__u64 sp;      /* the frame is from here ... */
	__u64 cfa;     /* ... up to here; all ones if not known */
	__u64 word;    /* the frame's word */
	struct walk_mark before;   /* in front of the word */
	struct walk_mark after;	   /* behind the word */
	struct window_place place; /* of struct walk_room's window */
	__u64 of_runtime[10];	   /* state of the runtime's step */
	__u64 of_frame[4];	   /* the runtime's frame under way */
};

/* Memory of the runtime, read by its step: a window and one object. */
#define WALK_OBJECT_WORDS 32
struct walk_room {
	struct window window;
	__u64 object[WALK_OBJECT_WORDS];
};

/* Values of a runtime's objects that the walk has read, by address. A value replaces another one of
 * its slot. The step clears the values at a sample's first frame: from one sample to the next an
 * object may become another one. */
#define WALK_SEEN 16
struct walk_seen {
	__u64 at[WALK_SEEN]; /* 0: empty */
	__u64 value[WALK_SEEN];
};

/* The state of the walk. The struct also holds the other values of a frame, in place of variables,
 * for the verifier (see bpf/README.md). */
struct walk {
	/* the frame found last */
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 back;	  /* 1: pc is a return address, 0: a place of interruption */
	__u64 regs_known; /* 2: the frame's other registers are known, 1: see walk_register() */
	__u64 sp_known;	  /* 0: sp is only a lower bound */
	__u64 by_fp;	  /* 1: the frame pointer led here */
	__u64 limit;	  /* frames are below */

	/* of the process: 0 mappings if unknown */
	__u64 mappings;
	__u64 n_mappings;
	struct mapping mapping; /* of a pc; of the present pc if @mapped */
	__u64 mapped;		/* 1: the mapping is known */
	__u64 n_used;		/* frames in the executable, not counted yet */

	/* the step under way */
	struct unwind_rule rule;
	__u64 cause;	/* the reason for the missing row: the end of the walk if the frame pointer
			   does not help */
	__u64 believed; /* 1: an old register value, assumed unchanged, led to the caller */
	__u64 cfa;	/* the caller's sp */
	__u64 fp_at;	/* address of the caller's fp, 0: in the register */
	__u64 ra_at;	/* address of the return address, 0: in the register @ra */
	__u64 fp_next;
	__u64 ra;
	__u64 go; /* the goroutine found by UNWIND_CFA_GO_CURG */

	struct window_place place;
	__u64 hash;   /* of all frames stored */
	__u32 first;  /* slot of the innermost user frame */
	__u32 n;      /* user frames stored */
	__u32 n_rows; /* frames found by rows */
	__u32 flags;  /* SAMPLE_FLAG_* */
	__u32 end;    /* enum sample_end, or WALK_ON */
	__u32 program;
	__u32 runtime; /* enum frame_runtime of the process */
	__u32 awaits;  /* with SAMPLE_FLAG_AWAITS: the executable's number */
	__u64 n_sets;  /* of the memo, read so far */

	struct walk_aside aside; /* of walks with a runtime */
	struct walk_seen seen[2];
};

/* Accessors: the descriptor of an executable, NULL for a number out of range only; adds @n_frames
 * to the executable's count of frames (table_uses). */
WALK_INLINE const struct table_exe *walk_exe(const struct table_space *space, __u32 exe);
WALK_INLINE void walk_used(const struct table_space *space, __u32 exe, __u64 n_frames);

/* Accessor: the rule at @vaddr of an executable without a table, into @ret; 0 if there is none.
 * Only the agent has such rules (unwindtable/dumpwalk.c), and defines the macro before the include.
 */
#ifndef WALK_RULE_APART
#define WALK_RULE_APART(c, exe, vaddr, ret) 0
#endif

/* Accessor: whether the walk has a memo. A program always has: the lookup without one would be a
 * second copy of its search. */
#ifdef __bpf__
#define WALK_MEMO(c) 1
#else
#define WALK_MEMO(c) ((c)->memo != 0)
#endif

/* Accessor: the thread pointer (thread-local storage), 0 if unknown. */
WALK_INLINE __u64 walk_thread_pointer(const struct table_space *space);

struct object_memo;

/* Context of a step. */
struct walk_ctx {
	struct walk *w;
	struct regs *regs; /* of the innermost frame, then of signal frames */
	struct window *win;
	__u64 *frames; /* WALK_SLOTS */
	const struct table_space *space;
	struct memo *memo;	     /* NULL on the host: each row is looked up */
	struct trail *trail;	     /* of walks with a memo, or NULL */
	struct object_memo *objects; /* of walks of HotSpot and CPython; NULL: all are read */
	__u64 identity;		     /* with @objects: of the process */
	__u32 mode;		     /* enum settings_unwind */
};

/**
 * struct walk_runtime - the part of a language runtime in a walk; a constant
 * @plan: NULL: the runtime makes no code of its own. Asked before each native step: where the
 *        caller of the present frame is, into w->cfa, w->ra_at (0: in w->ra) and w->fp_at (0: in
 *        its register), as walk_plan() sets them. Returns WALK_ON with them; WALK_NATIVE for other
 *        code; else enum sample_end, also in w->cause. May describe the frame to @step
 * @step: w->aside describes the native frame that the walk has left; its word is the last word
 *        stored. The step stores with walk_store_runtime() and walk_store_broken(). A signal
 *        trampoline is never a runtime's frame. Returns WALK_NATIVE where the runtime has no frame,
 *        or no more; WALK_ON to be called again, as another step; else enum sample_end
 *
 * Both read memory into walk_room() with window_read() and window_fill(), and keep state in
 * w->aside.of_runtime and w->aside.of_frame.
 */
struct walk_runtime {
	__u32 (*plan)(const struct walk_ctx *c);
	__u32 (*step)(const struct walk_ctx *c);
};

#define WALK_RUNTIME static const struct walk_runtime __attribute__((unused))

WALK_INLINE int walk_pc_plausible(__u64 pc)
{
	return pc >= WALK_PC_MIN && pc < WALK_PC_LIMIT;
}

/* Mix one more word into a stack's hash. Targets choose their pcs and could build two stacks with
 * one hash, but both stacks would be their own: the key also has process and cgroup. */
WALK_INLINE __u64 walk_hash(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull; /* 2^64 / golden ratio, odd */
	return hash ^ (hash >> 29);
}

WALK_INLINE void walk_seen_clear(struct walk_seen *seen)
{
	for (int i = 0; i < WALK_SEEN; i++)
		seen->at[i] = 0;
}

WALK_INLINE __u64 walk_seen_slot(__u64 at)
{
	return (at * 0x9e3779b97f4a7c15ull >> 60) & (WALK_SEEN - 1);
}

/* Whether the value of the object at @at, not 0, is known. */
WALK_INLINE int walk_seen_find(const struct walk_seen *seen, __u64 at, __u64 *ret)
{
	const __u64 slot = walk_seen_slot(at);

	if (seen->at[slot] != at)
		return 0;
	*ret = seen->value[slot];
	return 1;
}

WALK_INLINE void walk_seen_add(struct walk_seen *seen, __u64 at, __u64 value)
{
	const __u64 slot = walk_seen_slot(at);

	seen->at[slot] = at;
	seen->value[slot] = value;
}

/* The slot of user frame @n. A mask for each half, not one for the sum: the halves are powers of
 * two for the verifier, and their sum needs none. */
WALK_INLINE __u64 walk_slot(const struct walk *w, __u64 n)
{
	return (w->first & SAMPLE_KERNEL_FRAMES_MAX) + (n & (SAMPLE_USER_FRAMES_MAX - 1));
}
_Static_assert((SAMPLE_KERNEL_FRAMES_MAX & (SAMPLE_KERNEL_FRAMES_MAX + 1)) == 0 &&
		       (SAMPLE_USER_FRAMES_MAX & (SAMPLE_USER_FRAMES_MAX - 1)) == 0,
	       "masks");

WALK_INLINE void walk_store(struct walk *w, __u64 *frames)
{
	__u64 pc = w->pc - w->back + (w->n != 0);

	frames[walk_slot(w, w->n)] = pc;
	w->hash = walk_hash(w->hash, pc);
	w->n_rows += (w->n != 0) & !w->by_fp;
	w->n += 1;
}

WALK_INLINE void walk_store_word(const struct walk_ctx *c, __u64 word)
{
	struct walk *w = c->w;

	c->frames[walk_slot(w, w->n)] = word;
	w->hash = walk_hash(w->hash, word);
	w->n += 1;
}

/* A frame of @runtime. WALK_ON, or why the walk ends. */
WALK_INLINE __u32 walk_store_runtime(const struct walk_ctx *c, __u64 runtime, __u64 first,
				     __u64 second)
{
	if (c->w->n + FRAME_RUNTIME_WORDS > SAMPLE_USER_FRAMES_MAX)
		return SAMPLE_END_MAX_FRAMES;
	walk_store_word(c, frame_head(runtime, FRAME_RUNTIME_WORDS - 1, FRAME_REASON_NONE, first));
	walk_store_word(c, second);
	return WALK_ON;
}

/* Unknown frames of @runtime, for @reason; @at is the address in question. The native walk goes
 * on. */
WALK_INLINE __u32 walk_store_broken(const struct walk_ctx *c, __u64 runtime,
				    enum frame_reason reason, __u64 at)
{
	if (c->w->n + 1 > SAMPLE_USER_FRAMES_MAX)
		return SAMPLE_END_MAX_FRAMES;
	walk_store_word(c, frame_head(runtime, 0, reason, at));
	return WALK_NATIVE;
}

WALK_INLINE struct walk_mark walk_marked(const struct walk *w)
{
	return (struct walk_mark){.hash = w->hash, .n = w->n, .n_rows = w->n_rows};
}

WALK_INLINE void walk_back_to(struct walk *w, const struct walk_mark *mark)
{
	w->hash = mark->hash;
	w->n = (__u32)mark->n;
	w->n_rows = (__u32)mark->n_rows;
}

/* Remove the word of the native frame, for the runtime's frames in its place. Call before the first
 * of these. */
WALK_INLINE void walk_replace_native(const struct walk_ctx *c)
{
	/* unequal after a crossing, which does not set the mark */
	if (c->w->n == c->w->aside.before.n + 1)
		walk_back_to(c->w, &c->w->aside.before);
}

/* Remove the runtime's frames of the native frame, and put back its word. */
WALK_INLINE void walk_undo_runtime(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	walk_back_to(w, &w->aside.after);
	c->frames[walk_slot(w, w->n - 1)] = w->aside.word;
}

/* Count the frames in the mapping's executable, before the walk leaves it or ends. */
WALK_INLINE void walk_count(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	if (w->n_used)
		walk_used(c->space, w->mapping.exe, w->n_used);
	w->n_used = 0;
}

/* Find the mapping of where the walk stands. */
WALK_INLINE void walk_map(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	__u64 pc = w->pc - w->back;

	w->mapped = 1;
	if (pc - w->mapping.start < w->mapping.bytes)
		return;
	walk_count(c);
	w->mapped = !mapping_find(c->space, w->mappings, w->n_mappings, pc, &w->mapping);
	/* These values may lead to no code at all. */
	if (!w->mapped && w->n_mappings && !w->by_fp && !w->believed)
		w->flags |= SAMPLE_FLAG_NO_MAPPING;
}

/* Stand where @c->regs say, in user code of a process with this table of mappings (0 of them: not
 * known). w->first, w->hash and w->flags are set before. */
WALK_INLINE void walk_begin(const struct walk_ctx *c, __u64 mappings, __u64 n_mappings)
{
	struct walk *w = c->w;

	/* x86-64's vsyscall page is above all user addresses, and a pc must not look like a head.
	 */
	w->pc = regs_pc(c->regs) & (FRAME_PC_LIMIT - 1);
	w->sp = regs_sp(c->regs);
	w->fp = regs_fp(c->regs);
	w->back = regs_in_syscall(c->regs) != 0;
	w->regs_known = 2;
	w->sp_known = 1;
	w->by_fp = 0;
	w->limit = w->sp + WALK_STACK_BYTES; /* after a wrap-around every frame is too far */
	w->mappings = mappings;
	w->n_mappings = n_mappings;
	w->mapping = (struct mapping){0};
	w->n_used = 0;
	w->believed = 0;
	w->place = (struct window_place){0};
	w->n = 0;
	w->n_rows = 0;
	w->end = WALK_ON;
	w->program = 0;
	w->n_sets = 0;
	walk_map(c);
	walk_store(w, c->frames);
}

/* ---------------------------------------------------------------- the row */

/* The rule at @vaddr into w->rule, through the memo. */
WALK_INLINE void walk_remember(const struct walk_ctx *c, const struct table_exe *exe, __u64 vaddr)
{
	struct walk *w = c->w;

	if (c->trail) {
		trail_note(c->trail, w->n_sets, memo_set_number(memo_key(exe, vaddr)));
		w->n_sets += 1;
	}
	memo_find(c->memo, c->space, exe, vaddr, &w->rule);
}

/* The rule for where the walk stands into w->rule; all zeros and w->cause if there is none. */
WALK_INLINE void walk_rule(const struct walk_ctx *c)
{
	const struct table_exe *exe;
	struct walk *w = c->w;
	__u64 pc = w->pc - w->back;

	w->rule = (struct unwind_rule){0};
	w->believed = 0;
	w->cause = SAMPLE_END_NO_PROCESS;
	if (!w->n_mappings)
		return;
	w->cause = SAMPLE_END_NO_MAPPING;
	if (!w->mapped)
		return;
	/* Code made at run time: frame pointers or nothing. */
	w->cause = SAMPLE_END_NO_ROW;
	if (!w->mapping.exe)
		return;
	w->n_used += 1;
	exe = walk_exe(c->space, w->mapping.exe);
	if (!exe)
		return;
	if (!exe->n_blocks) {
		if (WALK_RULE_APART(c, w->mapping.exe, pc - w->mapping.bias, &w->rule))
			return;
		w->cause = SAMPLE_END_NO_TABLE;
		w->flags |= SAMPLE_FLAG_NO_TABLE | SAMPLE_FLAG_AWAITS * (exe->awaited & 1);
		w->awaits = w->mapping.exe;
		return;
	}
	if (WALK_MEMO(c))
		walk_remember(c, exe, pc - w->mapping.bias);
	else
		table_find(c->space, exe, pc - w->mapping.bias, &w->rule);
}

/* ---------------------------------------------------------------- where the caller is */

/* By the frame pointer. WALK_ON with the addresses set, or why not. */
WALK_INLINE __u32 walk_plan_fp(struct walk *w)
{
	/* Nothing to follow: the end of the list, or no list at all. A thread's first function may
	 * look like this before it has made its record; mostly the code does not keep frame
	 * pointers. */
	if (!w->fp)
		return w->by_fp ? SAMPLE_END_COMPLETE : SAMPLE_END_NO_FP;
	if (w->fp & 7)
		return SAMPLE_END_FP_ODD;
	if (w->fp < w->sp)
		return SAMPLE_END_FP_LOW;
	if (w->fp >= w->limit)
		return SAMPLE_END_FP_FAR;
	w->fp_at = w->fp;
	w->ra_at = w->fp + 8;
	w->cfa = w->fp + 16;
	return WALK_ON;
}

/* By the frame pointer because there is no row. */
WALK_INLINE __u32 walk_plan_no_row(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	if (c->mode == SETTINGS_UNWIND_DWARF)
		return w->cause;
	w->by_fp = 1;
	return walk_plan_fp(w);
}

/* The register named by a rule. Not 0 if unknown. */
WALK_INLINE int walk_register(const struct walk_ctx *c, __u64 number, __u64 *ret)
{
	struct walk *w = c->w;

	if (number == REGS_UNWIND_SP) {
		*ret = w->sp;
		return !w->sp_known;
	}
	if (number == REGS_UNWIND_FP) {
		*ret = w->fp;
		return 0;
	}
	*ret = regs_numbered(c->regs, number);
	if (w->regs_known == 2)
		return number >= REGS_NUMBERED;
	w->believed = 1;
	return !((REGS_BELIEVED >> (number & 63)) & w->regs_known);
}

/* The canonical frame address by w->rule into w->cfa. */
WALK_INLINE __u32 walk_cfa(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const struct unwind_rule *rule = &w->rule;
	__u64 base;

	if (rule->cfa == UNWIND_CFA_PLT) {
		w->cfa = w->sp + 8 + ((w->pc & 15) >= (__u64)rule->cfa_off ? 8 : 0);
		return w->sp_known ? WALK_ON : SAMPLE_END_REGISTER;
	}
	if (walk_register(c, rule->cfa_reg, &base))
		return SAMPLE_END_REGISTER;
	w->cfa = base + rule->cfa_off;
	if (rule->cfa == UNWIND_CFA_DEREF) {
		if (window_word(c->space, c->win, &w->place, w->cfa, &base))
			return SAMPLE_END_UNREADABLE;
		w->cfa = base + rule->cfa_add;
	}
	return WALK_ON;
}

/* Whether the caller's frame is above this frame, and not too far; any place on another stack. */
WALK_INLINE __u32 walk_check_cfa(struct walk *w)
{
	const struct unwind_rule *rule = &w->rule;

	if (w->cfa & 7)
		return SAMPLE_END_SP_ODD;
	if (rule->cfa == UNWIND_CFA_SWITCH) {
		w->limit = w->cfa + WALK_STACK_BYTES;
		return WALK_ON;
	}
	/* A frame contains at least its return address, unless this is in a register. */
	if (w->cfa < w->sp + (rule->ra == UNWIND_RA_AT_CFA ? 8 : 0))
		return SAMPLE_END_SP_LOW;
	return w->cfa > w->limit ? SAMPLE_END_SP_FAR : WALK_ON;
}

/* By the rule, from w->cfa. */
WALK_INLINE __u32 walk_plan_row(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const struct unwind_rule *rule = &w->rule;
	__u32 end = walk_cfa(c);

	if (end == WALK_ON)
		end = walk_check_cfa(w);
	if (end != WALK_ON)
		return end;
	w->fp_at = 0;
	if (rule->fp == UNWIND_FP_AT_CFA)
		w->fp_at = w->cfa + rule->fp_off;
	else if (rule->fp == UNWIND_FP_DEREF)
		w->fp_at = w->fp + rule->fp_off;
	w->ra_at = 0;
	if (rule->ra == UNWIND_RA_AT_CFA)
		w->ra_at = w->cfa + rule->ra_off;
	else if (walk_register(c, rule->ra_off, &w->ra))
		return SAMPLE_END_REGISTER;
	w->by_fp = 0;
	return WALK_ON;
}

/* Where the caller's pc and fp are, into w. WALK_ON, or why there is no caller. */
WALK_INLINE __u32 walk_plan(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	switch (w->rule.cfa) {
	case UNWIND_CFA_REG:
		if (w->sp_known || w->rule.cfa_reg != REGS_UNWIND_SP)
			return walk_plan_row(c);
		/* A walk by frame pointer continues by frame pointer. */
		w->by_fp = 1;
		return walk_plan_fp(w);
	case UNWIND_CFA_PLT:
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_SWITCH:
		return walk_plan_row(c);
	case UNWIND_CFA_GO_CGO:
	case UNWIND_CFA_GO_CURG:
		return WALK_CROSS;
	case UNWIND_CFA_STOP:
		return SAMPLE_END_COMPLETE;
	case UNWIND_CFA_FP:
		w->by_fp = 1;
		return walk_plan_fp(w);
	case UNWIND_CFA_GAP:
		return walk_plan_no_row(c);
	default:
		return SAMPLE_END_UNSUPPORTED;
	}
}

/* ---------------------------------------------------------------- going there */

/* From the kernel's signal frame to the interrupted place. The frame's own stored pc is the return
 * address of the handler; but no call precedes this address, and the name belongs to the pc itself.
 * Not so the innermost frame's, behind the instruction of its system call. */
WALK_INLINE __u32 walk_out_of_signal(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	c->frames[walk_slot(w, w->n - 1)] += w->back & (w->regs_known != 2);
	if ((w->sp & 7) || !w->sp_known)
		return SAMPLE_END_SP_ODD;
	if (window_fill(c->space, c->win, &w->place, w->sp + REGS_SIGNAL_OFF) ||
	    w->place.bytes < REGS_SIGNAL_WORDS * 8ull)
		return SAMPLE_END_UNREADABLE;
	regs_of_signal(c->regs, c->win->words);
	if (!walk_pc_plausible(regs_pc(c->regs)))
		return SAMPLE_END_PC_ODD;
	w->pc = regs_pc(c->regs);
	w->sp = regs_sp(c->regs);
	w->fp = regs_fp(c->regs);
	w->back = 0;
	w->regs_known = 2;
	w->sp_known = 1;
	w->by_fp = 0;
	w->limit = w->sp + WALK_STACK_BYTES; /* perhaps another stack */
	return WALK_ON;
}

/* Go to the caller found by walk_plan(). */
WALK_INLINE __u32 walk_go(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	/* The lower word first: the window begins there. Most frames do not need the frame pointer,
	 * and gcc's tables name its place for an instruction or two too long after aligning the
	 * stack. */
	w->fp_next = w->fp;
	if (w->fp_at && window_word(c->space, c->win, &w->place, w->fp_at, &w->fp_next))
		w->fp_next = 0;
	if (w->ra_at && window_word(c->space, c->win, &w->place, w->ra_at, &w->ra))
		return SAMPLE_END_UNREADABLE;
	w->ra = regs_code_pointer(w->ra);
	if (!w->ra)
		return SAMPLE_END_COMPLETE;
	if (!walk_pc_plausible(w->ra))
		return SAMPLE_END_PC_ODD;
	w->pc = w->ra;
	w->sp = w->cfa;
	w->fp = w->fp_next;
	w->back = 1;
	w->regs_known = (w->regs_known >> 1) & !w->by_fp;
	w->sp_known = !w->by_fp | REGS_RECORD_ENDS_FRAME;
	return WALK_ON;
}

/* By the runtime's plan. WALK_ON at the caller; WALK_NATIVE if it has none; or why there is no
 * caller. */
WALK_INLINE __u32 walk_by_plan(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	__u32 end;

	if (!runtime || !runtime->plan)
		return WALK_NATIVE;
	w->rule = (struct unwind_rule){0};
	w->believed = 0;
	w->by_fp = 0; /* unless the plan says so */
	end = runtime->plan(c);
	WALK_FENCE();
	if (end != WALK_ON)
		return end;
	end = walk_go(c);
	w->cause = end;
	return end;
}

/* By the tables, likewise. */
WALK_INLINE __u32 walk_by_rule(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	__u32 end;

	walk_rule(c);
	WALK_FENCE();
	if (w->rule.cfa == UNWIND_CFA_SIGNAL) {
		end = walk_out_of_signal(c);
	} else {
		end = walk_plan(c);
		WALK_FENCE();
		if (end == WALK_ON)
			end = walk_go(c);
	}
	return end;
}

/* Step from a frame to its caller. Returns WALK_ON or the reason against it. */
WALK_INLINE __u32 walk_by_tables(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	__u32 end = walk_by_plan(c, runtime);

	WALK_FENCE();
	if (end == WALK_NATIVE)
		end = walk_by_rule(c);
	if (end != WALK_ON)
		return end;
	WALK_FENCE();
	walk_map(c);
	WALK_FENCE();
	/* A frame pointer may have been something else. */
	if (w->by_fp && w->n_mappings && !w->mapped)
		return SAMPLE_END_NO_MAPPING;
	return w->believed && !w->mapped ? SAMPLE_END_REGISTER : WALK_ON;
}

/* Step from one frame to its caller. Returns WALK_ON or the reason of the end. */
WALK_INLINE __u32 walk_step(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	__u32 end;

	if (c->mode == SETTINGS_UNWIND_FP) {
		end = walk_plan_fp(w);
		w->by_fp = 1;
		return end == WALK_ON ? walk_go(c) : end;
	}
	end = walk_by_tables(c, runtime);
	/* If the frame pointer does not help, the missing row is the reason. */
	if (end != WALK_ON && end != SAMPLE_END_COMPLETE && w->rule.cfa == UNWIND_CFA_GAP)
		return w->cause;
	return end;
}

/* The walk ends here, or crosses. */
WALK_INLINE int walk_end(const struct walk_ctx *c, __u32 end)
{
	walk_count(c);
	c->w->end = end;
	return 1;
}

/* Step out of the frame where the walk stands, and describe the frame. */
WALK_INLINE void walk_leave(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	struct walk_aside *aside = &w->aside;

	aside->pc = w->pc - w->back;
	aside->sp = w->sp;
	aside->end = walk_step(c, runtime);
	WALK_FENCE();
	aside->cfa = aside->end == WALK_ON ? w->sp : ~0ull;
	/* now: the step out of a signal frame corrects the word */
	aside->word = c->frames[walk_slot(w, w->n - 1)];
	aside->after = walk_marked(w);
	aside->is_left = 1;
	WALK_FENCE();
}

/* walk_near() with the step of a runtime. */
WALK_INLINE int walk_near_with(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	__u32 end;

	if (!w->aside.is_left)
		walk_leave(c, runtime);
	end = runtime->step(c);
	if (end != WALK_NATIVE)
		return end == WALK_ON ? 0 : walk_end(c, end);
	WALK_FENCE();
	w->aside.is_left = 0;
	end = (__u32)w->aside.end;
	if (end == WALK_ON && w->n >= SAMPLE_USER_FRAMES_MAX)
		end = SAMPLE_END_MAX_FRAMES;
	if (end != WALK_ON)
		return walk_end(c, end);
	w->aside.before = walk_marked(w);
	walk_store(w, c->frames);
	return 0;
}

/* The next frame, outwards. 1 if there is none, as w->end says: it may be WALK_CROSS. @runtime: of
 * the process, or NULL; a constant. */
WALK_INLINE int walk_near(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	struct walk *w = c->w;
	__u32 end;

	if (runtime)
		return walk_near_with(c, runtime);
	end = walk_step(c, NULL);
	if (end == WALK_ON && w->n >= SAMPLE_USER_FRAMES_MAX)
		end = SAMPLE_END_MAX_FRAMES;
	if (end != WALK_ON)
		return walk_end(c, end);
	walk_store(w, c->frames);
	return 0;
}

/* ---------------------------------------------------------------- crossings */

/*
 * Go's crossings from one stack to another, with more work than a step. A stack has one or two
 * crossings, so their code is outside the loops that the verifier follows round by round. After a
 * crossing, the program's remaining frames are not walked, and the total limit comes that much
 * earlier.
 */

/* The CFA by UNWIND_CFA_GO_CGO, into w->cfa. */
WALK_INLINE __u32 walk_cfa_go_cgo(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const struct unwind_rule *rule = &w->rule;
	__u64 g, hi;

	if (!w->sp_known)
		return SAMPLE_END_REGISTER;
	if (window_word(c->space, c->win, &w->place, w->sp + rule->cfa_reg, &g) ||
	    window_word(c->space, c->win, &w->place, w->sp + rule->cfa_off, &w->cfa))
		return SAMPLE_END_UNREADABLE;
	if (g) {
		if (window_word(c->space, c->win, &w->place, g + 8, &hi))
			return SAMPLE_END_UNREADABLE;
		w->cfa = hi - w->cfa;
	}
	w->cfa += rule->cfa_add;
	return WALK_ON;
}

/* A word outside of the stack. */
WALK_INLINE int walk_peek(const struct walk_ctx *c, __u64 address, __u64 *ret)
{
	c->w->place.bytes = 0;
	if ((address & 7) || window_read(c->space, c->win->words, 8, address))
		return -1;
	*ret = c->win->words[0];
	return 0;
}

/* Put the goroutine of this thread, by UNWIND_CFA_GO_CURG, into w->go; not 0 if unreadable. On the
 * way w->go is g, then m. */
WALK_INLINE int walk_go_curg(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const struct unwind_rule *rule = &w->rule;
	__u64 off = rule->cfa_off;

	if (!(rule->cfa_reg & UNWIND_GO_TLS)) {
		w->go = regs_numbered(c->regs, rule->cfa_reg);
	} else {
		if (rule->cfa_reg == UNWIND_GO_TLS_AT && walk_peek(c, w->mapping.bias + off, &off))
			return -1;
		if (walk_peek(c, walk_thread_pointer(c->space) + off, &w->go))
			return -1;
	}
	WALK_FENCE();
	if (walk_peek(c, w->go + UNWIND_GO_M, &w->go))
		return -1;
	WALK_FENCE();
	w->ra = w->go;
	if (walk_peek(c, w->go + (__u64)(rule->cfa_add >> UNWIND_GO_CURG) * 8, &w->go))
		return -1;
	WALK_FENCE();
	return window_fill(c->space, c->win, &w->place, w->go);
}

/* Cross to the goroutine's stack by UNWIND_CFA_GO_CURG. If the assumptions are wrong, the words may
 * be anything: so the goroutine must refer to its thread, and its saved sp must be on its own
 * stack. */
WALK_INLINE __u32 walk_cfa_go_curg(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const __u64 *g = c->win->words;
	__u64 sp;

	if (walk_go_curg(c) || w->place.bytes <= UNWIND_GO_SP)
		return SAMPLE_END_NO_GOROUTINE;
	sp = g[UNWIND_GO_SP / 8];
	if (g[UNWIND_GO_M / 8] != w->ra || sp < g[UNWIND_GO_LO / 8] || sp >= g[UNWIND_GO_HI / 8])
		return SAMPLE_END_NO_GOROUTINE;
	w->cfa = sp + (w->rule.cfa_add & ((1 << UNWIND_GO_CURG) - 1)) * 8ull;
	return WALK_ON;
}

/* Step over a crossing to the caller. Returns WALK_ON or the reason of the walk's end. */
WALK_INLINE __u32 walk_go_across(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	const struct unwind_rule *rule = &w->rule;
	__u32 end;

	end = rule->cfa == UNWIND_CFA_GO_CGO ? walk_cfa_go_cgo(c) : walk_cfa_go_curg(c);
	if (end != WALK_ON)
		return end;
	if (w->cfa & 7)
		return SAMPLE_END_SP_ODD;
	WALK_FENCE();
	w->limit = w->cfa + WALK_STACK_BYTES;
	w->fp_at = (rule->fp == UNWIND_FP_GO_CURG ? w->go : w->cfa) + rule->fp_off;
	w->ra_at = w->cfa + rule->ra_off;
	w->by_fp = 0;
	end = walk_go(c);
	if (end != WALK_ON)
		return end;
	WALK_FENCE();
	walk_map(c);
	if (w->n >= SAMPLE_USER_FRAMES_MAX)
		return SAMPLE_END_MAX_FRAMES;
	walk_store(w, c->frames);
	return WALK_ON;
}

/* If the next frame is beyond such a crossing, cross. Returns 1 at the end of the walk, with the
 * reason in w->end. */
WALK_INLINE int walk_cross(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	WALK_FENCE();
	if (w->end == WALK_CROSS)
		w->end = walk_go_across(c);
	return w->end != WALK_ON;
}

/* ---------------------------------------------------------------- frames */

/**
 * walk_on() - the next frames
 * @runtime: as in walk_near()
 *
 * Walks up to the limit of one program. Call walk_on() until w->end is not WALK_ON, at most
 * WALK_PROGRAMS times.
 */
WALK_INLINE void walk_on(const struct walk_ctx *c, const struct walk_runtime *runtime)
{
	for (int i = 0; i < WALK_STEPS; i++)
		if (walk_near(c, runtime))
			break;
	(void)walk_cross(c);
}

/* ---------------------------------------------------------------- runtimes */

/* Their WALK_RUNTIMEs, name_walk, are in headers of their own, included here:
 * lib/runtime_name.bpf.h. The host includes them only with WALK_RUNTIMES. */
#if defined(__bpf__) || defined(WALK_RUNTIMES)

/* Accessor: where a runtime's step reads to. */
WALK_INLINE struct walk_room *walk_room(const struct walk_ctx *c);

#include "lib/runtime_hotspot.bpf.h"
#include "lib/runtime_python.bpf.h"
#include "lib/runtime_v8.bpf.h"
#ifdef FRAME_RUNTIMES_TEST
#include FRAME_RUNTIMES_TEST
#endif

#endif

#endif
