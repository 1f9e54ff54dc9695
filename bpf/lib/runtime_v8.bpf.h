/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_V8_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_V8_BPF_H

/*
 * The step of V8. JavaScript is on the machine stack: interpreted, or compiled by one of
 * three compilers. All code of V8 keeps frame pointers: code made at run time, in anonymous memory,
 * and the builtins, which are in the image without unwind tables. Below the frame pointer a frame
 * has a marker: a small integer, the type of a frame without a function, or the context of a
 * function, an object. Below the context is the function.
 *
 * An interpreted function runs in a builtin that keeps its frame, and in builtins for each
 * bytecode. Many of these, and helpers of compiled code, make no frame. So the frame pointer of an
 * interrupted builtin may lead to the frame of a function: the function stands behind the builtin
 * then. Elsewhere the function replaces the native frame.
 *
 * Only a place of interruption can be without a whole frame, at the beginning and the end of
 * functions. The bytes of the code tell (runtime_v8_arch.bpf.h). The function is in a register at
 * the beginning, and its frame is still below the stack pointer at the end.
 */

#include "lib/runtime_plan.bpf.h"
#include "lib/runtime_v8_arch.bpf.h"
#include "shared/v8.h"

/* Accessor: the process, NULL: no frames of V8 are known. */
WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c);

/* A further word of w->aside.of_frame. 1: the native frame stays. */
#define V8_BEHIND PLAN_OWN

/* The words of w->aside.of_runtime: values of the plan under way. */
enum {
	V8_FUNCTION, /* 0: none */
	V8_ARRAY,    /* of an interpreted frame, perhaps */
	V8_OFFSET,
	V8_WORD,    /* enum v8_edge; then the function's SharedFunctionInfo */
	V8_BUILTIN, /* 1: the code is a builtin */
	V8_SCRIPT,  /* of the frame whose script was read last; 0: none */
	V8_SCRIPT_ID,
};

/* Markers of frames of the entry: a call from native code, of a function and of a constructor. */
#define V8_ENTRY     2
#define V8_NEW_ENTRY 4

/* ---------------------------------------------------------------- values */

/* What is at @off of the SharedFunctionInfo read last. */
WALK_INLINE __u64 v8_object(const struct walk_ctx *c, __u64 off)
{
	off -= V8_SHARED_FIRST;
	return plan_words(c)[(off / 8) & (V8_SHARED_BYTES / 8 - 1)] >> (off & 7) * 8;
}

WALK_INLINE int v8_is_object(__u64 word)
{
	return (word & 7) == 1 && word >= WALK_PC_MIN && word < FRAME_FIRST_LIMIT;
}

/* 1 if @pc is in a mapping that begins with the builtins, without a branch. */
WALK_INLINE __u64 v8_copied(const struct walk *w, const struct v8_process *p, __u64 pc)
{
	return w->mapped & plan_zero((w->mapping.start - w->mapping.bias) ^ p->copied[0]) &
	       plan_between(pc - w->mapping.bias, p->copied[0], p->copied[1]);
}

/* ---------------------------------------------------------------- the function */

/* Read the id of @script into V8_SCRIPT_ID. Not 0 if unreadable. Neighbours in a stack are often of
 * one script. The script of a running function stays at its address while the thread is
 * interrupted. */
WALK_INLINE int v8_script(const struct walk_ctx *c, const struct v8_process *p, __u64 script)
{
	__u64 *mine = c->w->aside.of_runtime;

	if (script == mine[V8_SCRIPT])
		return 0;
	mine[V8_SCRIPT] = 0;
	/* in another cache line and page, with a call of 85 ns */
	if (window_read(c->space, plan_words(c), 8, script - 1 + p->script_id))
		return -1;
	mine[V8_SCRIPT] = script;
	mine[V8_SCRIPT_ID] = plan_words(c)[0];
	return 0;
}

/* The frame of the function in V8_FUNCTION. */
WALK_INLINE void v8_function(const struct walk_ctx *c, const struct v8_process *p)
{
	__u64 *mine = c->w->aside.of_runtime, hash, data, script, number, place, compiled;

	plan_set(c, PLAN_BROKEN, mine[V8_FUNCTION], FRAME_REASON_UNREADABLE);
	if (window_read(c->space, plan_words(c), 8, mine[V8_FUNCTION] - 1 + p->function_shared))
		return;
	mine[V8_WORD] = plan_words(c)[0];
	WALK_FENCE();
	plan_set(c, PLAN_BROKEN, mine[V8_FUNCTION], FRAME_REASON_ODD);
	if (!v8_is_object(mine[V8_WORD]))
		return;
	plan_set(c, PLAN_BROKEN, mine[V8_FUNCTION], FRAME_REASON_UNREADABLE);
	if (window_read(c->space, plan_words(c), V8_SHARED_BYTES,
			mine[V8_WORD] - 1 + V8_SHARED_FIRST))
		return;
	WALK_FENCE();
	data = v8_object(c, p->shared_data);
	script = v8_object(c, p->shared_script);
	number = (__u32)v8_object(c, p->shared_number);
	hash = walk_hash(walk_hash(0, v8_object(c, p->shared_name)), script);
	plan_words(c)[0] = p->shared_id ? (__u32)v8_object(c, p->shared_id) : 0;
	if (!p->shared_id && v8_is_object(script)) {
		if (v8_script(c, p, script))
			return;
		plan_words(c)[0] = mine[V8_SCRIPT_ID];
	}
	WALK_FENCE();
	hash = walk_hash(walk_hash(hash, plan_words(c)[0]), number);
	/* Compiled code does not keep these two up to date, and then the function's code is not its
	 * bytecode. */
	place = mine[V8_OFFSET] >> 32;
	place *= plan_zero(mine[V8_ARRAY] ^ data) & plan_zero((__u32)mine[V8_OFFSET]);
	place = hash >> 32 << 32 | (__u32)place;
	/* but code that took over a running interpreted function has the slots of the interpreter
	 */
	compiled = p->has_code & (1 ^ mine[V8_BUILTIN]);
	place ^= (place ^ (hash >> 48 << 48 | (c->w->pc - c->w->back))) & -compiled;
	compiled *= V8_COMPILED | (hash >> 46 & 3) << 1;
	plan_set(c, PLAN_KNOWN, (mine[V8_WORD] - 1) | compiled, place);
	/* a builtin that is itself the function has no bytecode */
	c->w->aside.of_frame[V8_BEHIND] = mine[V8_BUILTIN] & plan_interrupted(c->w) & data & 1;
}

/* The same for a frame that is not made yet. */
WALK_INLINE void v8_entered(const struct walk_ctx *c, const struct v8_process *p)
{
	__u64 *mine = c->w->aside.of_runtime;

	mine[V8_FUNCTION] = regs_numbered(c->regs, V8_CLOSURE);
	mine[V8_ARRAY] = 0;
	mine[V8_OFFSET] = 0;
	if (v8_is_object(mine[V8_FUNCTION]))
		v8_function(c, p);
	c->w->aside.of_frame[V8_BEHIND] = 0;
}

/* The frame of code made at run time that is no function, by its @marker. */
WALK_INLINE void v8_other(const struct walk_ctx *c, const struct v8_process *p, __u64 marker)
{
	const __u64 type = marker >> 1;

	if ((c->w->aside.of_runtime[V8_BUILTIN] | (marker & 1)) || type >= V8_FRAME_TYPES)
		return;
	if (p->other_types >> type & 1)
		plan_set(c, PLAN_KNOWN, type << V8_TYPE_SHIFT, c->w->pc - c->w->back);
}

/* The frame with the frame pointer @fp, if it has a name. Not 0 if unreadable. */
WALK_INLINE int v8_at(const struct walk_ctx *c, const struct v8_process *p, __u64 fp)
{
	__u64 *mine = c->w->aside.of_runtime, marker;
	struct walk *w = c->w;

	/* the lowest first: the window begins there */
	if (window_word(c->space, c->win, &w->place, fp + p->frame_offset, &mine[V8_OFFSET]) ||
	    window_word(c->space, c->win, &w->place, fp + p->frame_array, &mine[V8_ARRAY]) ||
	    window_word(c->space, c->win, &w->place, fp + p->frame_function, &mine[V8_FUNCTION]) ||
	    window_word(c->space, c->win, &w->place, fp + p->frame_marker, &marker))
		return -1;
	mine[V8_FUNCTION] *= marker & 1;
	/* the frame of the entry from native code: registers may be above the frame record */
	if (!REGS_RECORD_ENDS_FRAME)
		w->by_fp = plan_zero(marker ^ V8_ENTRY) | plan_zero(marker ^ V8_NEW_ENTRY);
	v8_other(c, p, marker);
	WALK_FENCE();
	if (v8_is_object(mine[V8_FUNCTION]))
		v8_function(c, p);
	return 0;
}

/* ---------------------------------------------------------------- beginning and end */

/* The frame of code that is no function, if it ends with the marker. */
WALK_INLINE void v8_marked(const struct walk_ctx *c, const struct v8_process *p)
{
	struct walk *w = c->w;
	__u64 marker;

	if (w->sp == w->fp + p->frame_marker &&
	    !window_word(c->space, c->win, &w->place, w->sp, &marker))
		v8_other(c, p, marker);
}

/* At the place of interruption. */
WALK_INLINE __u32 v8_interruption(const struct walk_ctx *c, const struct v8_process *p)
{
	__u64 *mine = c->w->aside.of_runtime, edge;
	struct walk *w = c->w;

	mine[V8_WORD] = v8_edge(c);
	WALK_FENCE();
	edge = mine[V8_WORD];
	if (edge & V8_OF_JS)
		v8_entered(c, p);
	if (edge & V8_OF_OTHER)
		v8_other(c, p, edge >> 8);
	WALK_FENCE();
	edge &= V8_EDGES;
	if (edge == V8_PUSHES)
		return v8_frameless(c);
	if (edge == V8_PUSHED)
		return plan_by_sp(w, 16, w->sp);
	if (edge == V8_PENDING) {
		v8_marked(c, p);
		return plan_by_fp(w);
	}
	if (edge == V8_POPPED) {
		/* a builtin may have had no frame, and then there is another's, of the past */
		if (!mine[V8_BUILTIN])
			(void)v8_at(c, p, w->sp - V8_LEFT_BYTES);
		WALK_FENCE();
		return v8_frameless(c);
	}
	if (edge == V8_DROPPED)
		return v8_frameless(c);
	return v8_at(c, p, w->fp) ? WALK_NATIVE : plan_by_fp(w);
}

/* ---------------------------------------------------------------- the step */

WALK_INLINE __u32 v8_plan(const struct walk_ctx *c)
{
	const struct v8_process *p = v8_process_of(c);
	struct walk *w = c->w;
	const __u64 pc = w->pc - w->back;

	w->aside.of_frame[PLAN_STATE] = 0;
	w->aside.of_frame[V8_BEHIND] = 0;
	if (!p)
		return WALK_NATIVE;
	w->aside.of_runtime[V8_BUILTIN] =
		plan_between(pc, p->builtins[0], p->builtins[1]) | v8_copied(w, p, pc);
	if (!w->aside.of_runtime[V8_BUILTIN] && w->mapped && w->mapping.exe)
		return WALK_NATIVE;
	WALK_FENCE();
	if (plan_interrupted(w))
		return v8_interruption(c, p);
	return v8_at(c, p, w->fp) ? WALK_NATIVE : plan_by_fp(w);
}

WALK_INLINE __u32 v8_step(const struct walk_ctx *c)
{
	return plan_store(c, FRAME_RUNTIME_V8, c->w->aside.of_frame[V8_BEHIND]);
}

WALK_RUNTIME v8_walk = {.plan = v8_plan, .step = v8_step};

#ifdef __bpf__

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>

/* The agent writes. It sets the flag for memory on demand where the kernel permits it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, V8_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct v8_process);
} v8_processes __weak SEC(".maps");

#endif

#endif
