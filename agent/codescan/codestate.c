// SPDX-License-Identifier: Apache-2.0
#include "codescan/codestate.h"

struct codestate codestate_entry(enum cfi_machine machine)
{
	int32_t pushed = machine == CFI_ARM64 ? 0 : 8; /* the return address, by the call */

	return (struct codestate){.sp = pushed, .ra_at = pushed, .sp_known = true};
}

static void change_sp(const struct insn *insn, struct codestate *st)
{
	switch (insn->sp) {
	case INSN_SP_ADD:
		if (__builtin_sub_overflow(st->sp, insn->sp_add, &st->sp))
			st->sp_known = false;
		break;
	case INSN_SP_FROM_FP:
		st->sp_known =
			st->fp_frame && !__builtin_sub_overflow(st->fp, insn->sp_add, &st->sp);
		break;
	case INSN_SP_LOST:
		st->sp_known = false;
		break;
	default:
		break;
	}
	if (!st->sp_known)
		st->sp = 0;
}

/* A place in the frame, from an offset to the stack pointer; 0 if outside the frame. */
static int32_t place(const struct codestate *st, int32_t off)
{
	int32_t at;

	if (!st->sp_known || __builtin_sub_overflow(st->sp, off, &at) || at <= 0)
		return 0;
	return at;
}

static void leave_frame(struct codestate *st)
{
	st->fp_frame = false;
	st->fp = 0;
}

/* False: this is no function of the usual kind. */
static bool change_fp(const struct insn *insn, const struct codestate *before, struct codestate *st)
{
	switch (insn->fp) {
	case INSN_FP_SAVED:
		if (!st->fp_at && !st->fp_frame)
			st->fp_at = place(st, insn->fp_at);
		return true;
	case INSN_FP_LOADED:
		leave_frame(st);
		if (st->fp_at && place(before, insn->fp_at) == st->fp_at)
			st->fp_at = 0;
		return true;
	case INSN_FP_POPPED:
		st->fp_at = before->fp_frame && before->fp == st->fp_at ? 0 : st->fp_at;
		leave_frame(st);
		return true;
	case INSN_FP_FROM_SP:
		if (!st->fp_at)
			return false;
		st->fp = place(st, insn->fp_at);
		st->fp_frame = st->fp > 0;
		return true;
	case INSN_FP_ZERO:
		leave_frame(st);
		st->outermost = !st->fp_at;
		return true;
	case INSN_FP_OTHER:
		leave_frame(st);
		return st->fp_at != 0;
	default:
		return true;
	}
}

static void change_ra(const struct insn *insn, const struct codestate *before, struct codestate *st)
{
	if (insn->ra == INSN_RA_SAVED && !st->ra_at)
		st->ra_at = place(st, insn->ra_at);
	if (insn->ra == INSN_RA_LOADED && place(before, insn->ra_at) == st->ra_at)
		st->ra_at = 0;
}

bool codestate_step(struct codestate *st, const struct insn *insn)
{
	const struct codestate before = *st;

	change_sp(insn, st);
	change_ra(insn, &before, st);
	return change_fp(insn, &before, st);
}

void codestate_keep_sp(struct codestate *st, uint8_t reg)
{
	st->kept = (uint8_t)(reg + 1);
	st->kept_at = st->sp;
	st->sp = 0;
	st->sp_known = false;
}

void codestate_give_back_sp(struct codestate *st)
{
	st->sp = st->kept_at;
	st->sp_known = true;
	codestate_lose_kept(st);
}

void codestate_lose_kept(struct codestate *st)
{
	st->kept = 0;
	st->kept_at = 0;
}

bool codestate_is_balanced(enum cfi_machine machine, const struct codestate *st)
{
	const struct codestate entry = codestate_entry(machine);

	return st->sp_known && st->sp == entry.sp && !st->fp_at && !st->fp_frame &&
	       st->ra_at == entry.ra_at;
}

static void set_places(const struct codestate *st, struct unwind_rule *ret)
{
	if (st->fp_at) {
		ret->fp = UNWIND_FP_AT_CFA;
		ret->fp_off = -st->fp_at;
	}
	if (st->ra_at) {
		ret->ra_off = (int16_t)-st->ra_at;
	} else {
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = UNWIND_ARM64_LR;
	}
}

void codestate_rule(enum cfi_machine machine, const struct codestate *st, struct unwind_rule *ret)
{
	bool is_arm64 = machine == CFI_ARM64;

	*ret = (struct unwind_rule){0};
	if (st->outermost) {
		ret->cfa = UNWIND_CFA_STOP;
		return;
	}
	if ((!st->fp_frame && !st->sp_known && !st->kept) || st->ra_at > -INT16_MIN)
		return;
	ret->cfa = UNWIND_CFA_REG;
	/* as compilers' tables do */
	if (st->fp_frame && !(is_arm64 && st->sp_known)) {
		ret->cfa_reg = is_arm64 ? UNWIND_ARM64_FP : UNWIND_X86_FP;
		ret->cfa_off = st->fp;
	} else if (st->kept) {
		ret->cfa_reg = (uint8_t)(st->kept - 1);
		ret->cfa_off = st->kept_at;
	} else {
		ret->cfa_reg = is_arm64 ? UNWIND_ARM64_SP : UNWIND_X86_SP;
		ret->cfa_off = st->sp;
	}
	set_places(st, ret);
}
