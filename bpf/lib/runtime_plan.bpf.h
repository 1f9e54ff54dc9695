/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_PLAN_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_PLAN_BPF_H

/*
 * The common part of runtimes with a plan (struct walk_runtime) for code without unwind tables: the
 * place of the caller, and the frame that the plan has found for the step. For lib/walk.bpf.h.
 */

/* The words of w->aside.of_frame. */
enum {
	PLAN_STATE,  /* 0: native */
	PLAN_FIRST,  /* of the frame; the address in question of unknown frames */
	PLAN_SECOND, /* of the frame; the reason of unknown frames */
	PLAN_OWN,    /* the runtime's own word */
};

#define PLAN_KNOWN  1
#define PLAN_BROKEN 2

/* ---------------------------------------------------------------- values */

/* Where memory is read to. */
WALK_INLINE __u64 *plan_words(const struct walk_ctx *c)
{
	return walk_room(c)->window.words;
}

/* 1 if @x is 0, without a branch. */
WALK_INLINE __u64 plan_zero(__u64 x)
{
	return (~x & (x - 1)) >> 63;
}

/* 1 if @at is in [low, limit), without a branch. Addresses have no sign bit. */
WALK_INLINE __u64 plan_between(__u64 at, __u64 low, __u64 limit)
{
	__u64 off = at - low, bytes = limit - low;

	return ((off - bytes) & ~off) >> 63;
}

/* Whether the frame's registers are those of the interruption. */
WALK_INLINE int plan_interrupted(const struct walk *w)
{
	return !w->back && w->regs_known == 2;
}

/* ---------------------------------------------------------------- the caller */

/* The caller is at w->cfa: within the stack, and above this frame, which may be empty if the return
 * address is in a register. */
WALK_INLINE __u32 plan_check(struct walk *w)
{
	w->cause = WALK_ON;
	if (w->cfa & 7)
		w->cause = SAMPLE_END_SP_ODD;
	else if (w->cfa < w->sp + (w->ra_at ? 8 : 0))
		w->cause = SAMPLE_END_SP_LOW;
	else if (w->cfa > w->limit)
		w->cause = SAMPLE_END_SP_FAR;
	return (__u32)w->cause;
}

/* The same for a frame with a frame pointer, which is in the frame. */
WALK_INLINE __u32 plan_check_by_fp(struct walk *w)
{
	w->cause = SAMPLE_END_FP_LOW;
	return w->fp < w->sp ? SAMPLE_END_FP_LOW : plan_check(w);
}

/* A frame of @bytes up to the caller's, with the frame pointer @fp_at; 0: in its register. */
WALK_INLINE __u32 plan_by_sp(struct walk *w, __u64 bytes, __u64 fp_at)
{
	w->cfa = w->sp + bytes;
	w->ra_at = w->cfa - 8;
	w->fp_at = fp_at;
	return plan_check(w);
}

WALK_INLINE __u32 plan_by_fp(struct walk *w)
{
	w->cfa = w->fp + 16;
	w->ra_at = w->fp + 8;
	w->fp_at = w->fp;
	return plan_check_by_fp(w);
}

/* ---------------------------------------------------------------- the frame */

WALK_INLINE void plan_set(const struct walk_ctx *c, __u64 state, __u64 first, __u64 second)
{
	__u64 *frame = c->w->aside.of_frame;

	frame[PLAN_STATE] = state;
	frame[PLAN_FIRST] = first;
	frame[PLAN_SECOND] = second;
}

/* The step of @runtime: stores the frame in place of the native one; @behind: after it. */
WALK_INLINE __u32 plan_store(const struct walk_ctx *c, __u32 runtime, __u64 behind)
{
	const __u64 *frame = c->w->aside.of_frame;
	__u32 end;

	if (frame[PLAN_STATE] == PLAN_BROKEN)
		return walk_store_broken(c, runtime, (enum frame_reason)frame[PLAN_SECOND],
					 frame[PLAN_FIRST]);
	if (frame[PLAN_STATE] != PLAN_KNOWN)
		return WALK_NATIVE;
	if (!behind)
		walk_replace_native(c);
	end = walk_store_runtime(c, runtime, frame[PLAN_FIRST], frame[PLAN_SECOND]);
	return end == WALK_ON ? WALK_NATIVE : end;
}

#endif
