// SPDX-License-Identifier: Apache-2.0
/*
 * From a line of the DWARF table to a rule for the walker. A rule holds less, so some lines have
 * none; they say why (enum rows_unsupported), because a stack that ends early should tell.
 *
 * A register of which nothing is said has its value still: compilers write nothing about a frame
 * pointer that they do not touch. The return address is different on x86-64, where it is no
 * register: nothing said of it is an error there, but on AArch64 it is in the link register until
 * something else is said.
 *
 * "undefined" return address means that there is no caller. An undefined frame pointer is passed on
 * as it is: nothing better is known, and the rows of callers that need it say where they saved it.
 *
 * The kernel's signal frame holds all registers, at places that the walker knows; its description
 * is recognised by its CFA (the saved sp is at a fixed distance), since programs may mark other
 * frames as such. On AArch64 only the kernel's vDSO has any.
 *
 * Sources: System V ABI for x86-64, section 3.6 (registers, DWARF numbers); DWARF for the Arm
 * 64-bit Architecture, section 4.1; glibc's sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c.
 */
#include "unwind/cfi.h"

#include <string.h>

/* From sp in a signal handler's caller to the interrupted sp: uc_mcontext.gregs[REG_RSP]. */
#define X86_SIGNAL_SP	160
/* Registers that have a value when a frame is walked: the 16 general ones; x0 to x30 and sp. */
#define X86_REGISTERS	16u
#define ARM64_REGISTERS 32u

static uint64_t n_registers(const struct cfi_common *common)
{
	return common->machine == CFI_ARM64 ? ARM64_REGISTERS : X86_REGISTERS;
}

static bool fits(int64_t value, int64_t min, int64_t max)
{
	return value >= min && value <= max;
}

/* 0, or why there is no such rule (enum rows_unsupported). So for the next two. */
static int cfa_of_expr(const struct cfi_common *common, const struct expr *expr,
		       struct unwind_rule *ret)
{
	static const uint8_t cfa[] = {
		[EXPR_REG] = UNWIND_CFA_REG,
		[EXPR_DEREF] = UNWIND_CFA_DEREF,
		[EXPR_PLT] = UNWIND_CFA_PLT,
	};

	if (expr->form != EXPR_REG && expr->form != EXPR_DEREF &&
	    (expr->form != EXPR_PLT || common->machine != CFI_X86_64))
		return UNSUPPORTED_CFA_EXPRESSION;
	if (expr->reg >= n_registers(common))
		return UNSUPPORTED_CFA_REGISTER;
	if (!fits(expr->off, INT32_MIN, INT32_MAX) || !fits(expr->add, INT16_MIN, INT16_MAX))
		return UNSUPPORTED_CFA_OFFSET;
	ret->cfa = cfa[expr->form];
	ret->cfa_reg = expr->reg;
	ret->cfa_off = (int32_t)expr->off;
	ret->cfa_add = (int16_t)expr->add;
	return 0;
}

static int cfa_of(const struct cfi_common *common, const struct cfi_state *state,
		  struct unwind_rule *ret)
{
	if (!state->has_cfa)
		return UNSUPPORTED_CFA_NONE;
	if (state->cfa_is_expr)
		return cfa_of_expr(common, &state->cfa_expr, ret);
	if (state->cfa_reg >= n_registers(common))
		return UNSUPPORTED_CFA_REGISTER;
	if (!fits(state->cfa_off, INT32_MIN, INT32_MAX))
		return UNSUPPORTED_CFA_OFFSET;
	ret->cfa = UNWIND_CFA_REG;
	ret->cfa_reg = (uint8_t)state->cfa_reg;
	ret->cfa_off = (int32_t)state->cfa_off;
	return 0;
}

static int fp_at(enum unwind_fp how, int64_t off, struct unwind_rule *ret)
{
	if (!fits(off, INT32_MIN, INT32_MAX))
		return UNSUPPORTED_FP_OFFSET;
	ret->fp = how;
	ret->fp_off = (int32_t)off;
	return 0;
}

static int fp_of(const struct cfi_common *common, const struct cfi_register *fp,
		 struct unwind_rule *ret)
{
	uint64_t fp_reg = common->machine == CFI_ARM64 ? UNWIND_ARM64_FP : UNWIND_X86_FP;

	switch (fp->how) {
	case CFI_UNSPECIFIED:
	case CFI_UNDEFINED:
	case CFI_SAME:
		return 0; /* UNWIND_FP_SAME is 0 */
	case CFI_AT_CFA:
		return fp_at(UNWIND_FP_AT_CFA, fp->off, ret);
	case CFI_EXPRESSION:
		if (fp->expr.form == EXPR_REG && fp->expr.reg == fp_reg)
			return fp_at(UNWIND_FP_DEREF, fp->expr.off, ret);
		if (fp->expr.form == EXPR_CFA)
			return fp_at(UNWIND_FP_AT_CFA, fp->expr.off, ret);
		return UNSUPPORTED_FP_EXPRESSION;
	case CFI_IN_REGISTER:
		return fp->reg == fp_reg ? 0 : UNSUPPORTED_FP_REGISTER;
	default:
		return UNSUPPORTED_FP_VALUE;
	}
}

static int ra_at(int64_t off, struct unwind_rule *ret)
{
	if (!fits(off, INT16_MIN, INT16_MAX))
		return UNSUPPORTED_RA_OFFSET;
	ret->ra_off = (int16_t)off;
	return 0;
}

static int ra_in(const struct cfi_common *common, uint64_t reg, struct unwind_rule *ret)
{
	if (reg >= n_registers(common))
		return UNSUPPORTED_RA_REGISTER;
	ret->ra = UNWIND_RA_REG;
	ret->ra_off = (int16_t)reg;
	return 0;
}

static int ra_of(const struct cfi_common *common, const struct cfi_register *ra,
		 struct unwind_rule *ret)
{
	switch (ra->how) {
	case CFI_UNSPECIFIED:
	case CFI_SAME:
		if (common->machine == CFI_X86_64)
			return UNSUPPORTED_RA_NONE;
		return ra_in(common, common->ra_reg, ret);
	case CFI_AT_CFA:
		return ra_at(ra->off, ret);
	case CFI_IN_REGISTER:
		return ra_in(common, ra->reg, ret);
	case CFI_EXPRESSION:
		return ra->expr.form == EXPR_CFA ? ra_at(ra->expr.off, ret)
						 : UNSUPPORTED_RA_EXPRESSION;
	default:
		return UNSUPPORTED_RA_VALUE;
	}
}

static bool is_kernel_signal_frame(const struct cfi_common *common, const struct cfi_state *state)
{
	const struct expr *cfa = &state->cfa_expr;

	if (common->machine == CFI_ARM64)
		return true;
	return state->cfa_is_expr && cfa->form == EXPR_DEREF && cfa->reg == UNWIND_X86_SP &&
	       cfa->off == X86_SIGNAL_SP && cfa->add == 0;
}

void cfi_rule(const struct cfi_common *common, const struct cfi_state *state,
	      struct unwind_rule *ret)
{
	int why;

	memset(ret, 0, sizeof(*ret));
	if (common->signal && is_kernel_signal_frame(common, state)) {
		ret->cfa = UNWIND_CFA_SIGNAL;
		return;
	}
	if (state->ra.how == CFI_UNDEFINED) {
		ret->cfa = UNWIND_CFA_STOP;
		return;
	}
	why = common->signal ? UNSUPPORTED_SIGNAL : cfa_of(common, state, ret);
	if (!why)
		why = fp_of(common, &state->fp, ret);
	if (!why)
		why = ra_of(common, &state->ra, ret);
	if (why)
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED, .cfa_off = why};
}
