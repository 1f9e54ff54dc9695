/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_V8_ARM64_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_V8_ARM64_BPF_H

/*
 * See runtime_v8_arch.bpf.h. A frame begins, perhaps behind a check whether its code is still
 * valid, and ends with
 *
 *	[ldur; ldur; tbz; ldr x17, m; br x17]
 *	stp fp, lr, [sp, #-16]!
 *	mov fp, sp
 *	stp xzr, x0, [sp, #-32]!
 *	stp x1, cp, [sp, #16]		or, in builtins, stp x1, cp, [sp, #-16]! in place of both
 *	...
 *	ldp fp, lr, [sp], #16
 *	[the number of arguments]
 *	add sp, sp, x16, lsl #3
 *	ret
 */

/* x1. */
#define V8_CLOSURE    1
#define V8_LEFT_BYTES 16

#define V8_PUSH_FP	 0xa9bf7bfdull
#define V8_SET_FP	 0x910003fdull
#define V8_POP_FP	 0xa8c17bfdull
#define V8_PUSH_ARGS	 0xa9be03ffull
#define V8_STORE_CLOSURE 0xa9016fe1ull
#define V8_PUSH_CLOSURE	 0xa9bf6fe1ull
#define V8_BR_X17	 0xd61f0220ull
/* ldp x19, x20, [sp], #16: the entry from native code gives back its caller's registers. */
#define V8_POP_SAVED	 0xa8c153f3ull
#define V8_RET		 0xd65f03c0ull

/* Instructions that are read before the place of interruption, and all. */
#define V8_BEFORE 8
#define V8_CODE	  16
/* Those of the check. */
#define V8_CHECK  5

_Static_assert(V8_CODE * 4 <= WINDOW_BYTES, "the instructions fit");

/* The instruction at the distance @i from the place of interruption. */
WALK_INLINE __u64 v8_insn(const struct walk_ctx *c, int i)
{
	const int at = V8_BEFORE + i;

	return plan_words(c)[at / 2 & (WINDOW_WORDS - 1)] >> (at & 1) * 32 & 0xffffffff;
}

/* 1 if a frame of a function begins behind the instructions that set the frame pointer: those at
 * @i. The beginning of the baseline compiler's code is mov x2, #n. */
WALK_INLINE __u64 v8_makes(const struct walk_ctx *c, int i)
{
	const __u64 insn = v8_insn(c, i);

	return plan_zero(insn ^ V8_PUSH_ARGS) | plan_zero(insn ^ V8_PUSH_CLOSURE) |
	       plan_zero((insn & 0xffe0001f) ^ 0xd2800002);
}

/* 1 if the place of interruption is in the check, whose end is at @i - 1. */
WALK_INLINE __u64 v8_in_check(const struct walk_ctx *c, int i)
{
	return plan_zero(v8_insn(c, i - 1) ^ V8_BR_X17) &
	       plan_zero((v8_insn(c, i - 2) & 0xff00001f) ^ 0x58000011) &
	       plan_zero((v8_insn(c, i - 3) & 0xfe000000) ^ 0x36000000);
}

/* V8_PUSHES if the frame begins within a few instructions. */
WALK_INLINE __u64 v8_begins(const struct walk_ctx *c)
{
	__u64 edge = 0;

	for (int i = 0; i <= V8_CHECK; i++) {
		__u64 found = plan_zero(v8_insn(c, i) ^ V8_PUSH_FP) &
			      plan_zero(v8_insn(c, i + 1) ^ V8_SET_FP);

		if (i)
			found &= v8_in_check(c, i);
		edge |= found * (V8_PUSHES | v8_makes(c, i + 2) * V8_OF_JS);
	}
	return edge;
}

/* 1 if control does not go on behind @insn: b, br, ret. */
WALK_INLINE __u64 v8_ends(__u64 insn)
{
	return plan_zero((insn & 0xfc000000) ^ 0x14000000) |
	       plan_zero((insn & 0xfffffc1f) ^ 0xd61f0000) | plan_zero(insn ^ V8_RET);
}

/* V8_POPPED or V8_DROPPED behind the end of a frame. At the end of the entry, registers are on the
 * stack: only the frame pointer leads on. */
WALK_INLINE __u64 v8_ended(const struct walk_ctx *c)
{
	__u64 edge = 0, saved = plan_zero(v8_insn(c, 0) ^ V8_POP_SAVED);

	for (int i = -V8_BEFORE; i < 0; i++) {
		const __u64 insn = v8_insn(c, i);
		/* add sp, sp, x, lsl #n; add sp, sp, #n */
		const __u64 drops = plan_zero((insn & 0xffe0e3ff) ^ 0x8b2063ff) |
				    plan_zero((insn & 0xff8003ff) ^ 0x910003ff);
		const __u64 popped = plan_zero(insn ^ V8_POP_FP);

		saved |= plan_zero(insn ^ V8_POP_SAVED);
		edge *= 1 ^ (v8_ends(insn) | popped);
		edge += (edge == V8_POPPED) * drops * (V8_DROPPED - V8_POPPED);
		edge += popped * V8_POPPED;
	}
	c->w->by_fp = saved & (edge != 0);
	return edge;
}

WALK_INLINE __u64 v8_edge(const struct walk_ctx *c)
{
	struct walk *w = c->w;
	__u64 edge, insn;

	if (window_read(c->space, plan_words(c), V8_CODE * 4, w->pc - V8_BEFORE * 4))
		return V8_WHOLE;
	WALK_FENCE();
	edge = v8_begins(c);
	if (edge)
		return edge;
	WALK_FENCE();
	insn = v8_insn(c, 0);
	if (insn == V8_SET_FP && v8_insn(c, -1) == V8_PUSH_FP)
		return V8_PUSHED | v8_makes(c, 1) * V8_OF_JS;
	if (insn == V8_STORE_CLOSURE && v8_insn(c, -1) == V8_PUSH_ARGS)
		return V8_PENDING | V8_OF_JS;
	if (w->fp == w->sp && v8_insn(c, -1) == V8_SET_FP)
		return V8_PENDING | v8_makes(c, 0) * V8_OF_JS;
	WALK_FENCE();
	return v8_ended(c);
}

WALK_INLINE __u32 v8_frameless(const struct walk_ctx *c)
{
	struct walk *w = c->w;

	w->cfa = w->sp;
	w->ra_at = 0;
	w->ra = regs_numbered(c->regs, UNWIND_ARM64_LR);
	w->fp_at = 0;
	return plan_check(w);
}

#endif
