// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreter of call frame instructions, and the conversion of its lines to rules.
 *
 * A program describes a table with a line for each address and a column for each register, as
 * changes from line to line. The walker follows three columns (the CFA, the frame pointer and the
 * return address), so the others are parsed and ignored. One more matters: the caller's stack
 * pointer is the CFA, except in code that has a rule for it (setcontext()). The current line is a
 * struct cfi_state, and each advance of the address makes a row of it.
 *
 * Known traps: "restore" returns to the rule of the CIE's program, not to no rule. "restore_state"
 * restores the CFA too (the standard is ambiguous, compilers are not). "def_cfa_register" after an
 * expression keeps the earlier offset, as libgcc does.
 *
 * An error anywhere makes the whole program unreliable: its function has no rows, and the caller
 * counts the reason. Parsed and ignored are the size of pushed arguments (DW_CFA_GNU_args_size,
 * only for landing pads) and the signing of return addresses on AArch64, because the walker always
 * strips it.
 *
 * The walker's rules cannot express every line of the table. The others have a reason (enum
 * rows_unsupported), so that a stack that ends early shows it.
 *
 * A register without a rule keeps its value: compilers write nothing about an unchanged frame
 * pointer. The return address differs between machines. On x86-64 it is not a register, and a
 * missing rule is an error. On AArch64 it is in the link register until another rule.
 *
 * "undefined" return address means no caller. An undefined frame pointer is passed on unchanged:
 * nothing better is known, and callers that need it have rows for the place where they saved it.
 *
 * The kernel's signal frame holds all registers, at places known to the walker. Its CFA identifies
 * the description (the saved sp is at a fixed distance), because programs may mark other frames as
 * signal frames. On AArch64 only the kernel's vDSO has signal frames.
 *
 * Specification: DWARF 5 sections 6.4.2 and 7.24; LSB Core 5.0, "DWARF Extensions"; DWARF for the
 * Arm 64-bit Architecture (ABI release 2023Q3), sections 4.1 and 4.4; System V ABI for x86-64,
 * section 3.6 (registers, DWARF numbers); glibc's sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c.
 */
#include "unwind/cfi.h"

#include <stddef.h>
#include <string.h>

/* From sp in a signal handler's caller to the interrupted sp: uc_mcontext.gregs[REG_RSP]. */
#define X86_SIGNAL_SP	160
/* Registers with a value during a walk: the 16 general ones; x0 to x30 and sp. */
#define X86_REGISTERS	16u
#define ARM64_REGISTERS 32u

enum {
	/* the two high bits; the low six are the operand */
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,

	CFA_NOP = 0x00,
	CFA_SET_LOC,
	CFA_ADVANCE_LOC1,
	CFA_ADVANCE_LOC2,
	CFA_ADVANCE_LOC4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER_STATE,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* DW_EH_PE_*: how an address is written. */
enum {
	PE_FORMAT = 0x0f,
	PE_ABSPTR = 0x00,
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_RELATION = 0xf0,
	PE_PCREL = 0x10,
};

struct run {
	const struct cfi_common *common;
	struct cursor c;
	uint64_t program_vaddr;
	uint64_t vaddr;	   /* the line's */
	struct rows *rows; /* NULL in a CIE's program */
	uint64_t fp_reg;
	uint64_t sp_reg;
	struct cfi_state state;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
	unsigned int n_remembered;
};

static uint64_t fp_register(enum cfi_machine machine)
{
	return machine == CFI_ARM64 ? UNWIND_ARM64_FP : UNWIND_X86_FP;
}

static uint64_t sp_register(enum cfi_machine machine)
{
	return machine == CFI_ARM64 ? UNWIND_ARM64_SP : UNWIND_X86_SP;
}

/* ---------------------------------------------------------------- rules */

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
	uint64_t fp_reg = fp_register(common->machine);

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

/* Of the caller's stack pointer; no part of the walker's rules. */
static int sp_of(const struct cfi_register *sp)
{
	switch (sp->how) {
	case CFI_UNSPECIFIED:
	case CFI_UNDEFINED:
	case CFI_SAME:
		return 0;
	case CFI_VALUE:
		return sp->off ? UNSUPPORTED_SP : 0;
	default:
		return UNSUPPORTED_SP;
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

/* Converts a state to the walker's rule. Most states differ from the one before in an offset only,
 * and do not come here. */
static __attribute__((noinline)) void
cfi_rule(const struct cfi_common *common, const struct cfi_state *state, struct unwind_rule *ret)
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
	if (!why)
		why = sp_of(&state->sp);
	if (why)
		*ret = (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED, .cfa_off = why};
}

/* ---------------------------------------------------------------- addresses */

static bool sign_extend(bool ok, uint64_t value, unsigned int bits, uint64_t *ret)
{
	*ret = (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
	return ok;
}

static bool read_format(struct cursor *c, uint8_t format, uint64_t *ret)
{
	uint16_t u16 = 0;
	uint32_t u32 = 0;
	int64_t sleb = 0;
	bool ok;

	switch (format) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return cursor_u64(c, ret);
	case PE_UDATA4:
		ok = cursor_u32(c, &u32);
		*ret = u32;
		return ok;
	case PE_SDATA4:
		ok = cursor_u32(c, &u32);
		return sign_extend(ok, u32, 32, ret);
	case PE_UDATA2:
		ok = cursor_u16(c, &u16);
		*ret = u16;
		return ok;
	case PE_SDATA2:
		ok = cursor_u16(c, &u16);
		return sign_extend(ok, u16, 16, ret);
	case PE_ULEB:
		return cursor_uleb(c, ret);
	case PE_SLEB:
		ok = cursor_sleb(c, &sleb);
		*ret = (uint64_t)sleb;
		return ok;
	default:
		return false;
	}
}

bool cfi_address(struct cursor *c, uint8_t encoding, uint64_t vaddr, uint64_t *ret)
{
	uint64_t value;
	uint32_t near;

	if (encoding == (PE_PCREL | PE_SDATA4)) { /* nearly all */
		if (!cursor_u32(c, &near))
			return false;
		*ret = vaddr + (uint64_t)(int32_t)near;
		return true;
	}
	if ((encoding & PE_RELATION) != PE_ABSPTR && (encoding & PE_RELATION) != PE_PCREL)
		return false;
	if (!read_format(c, encoding & PE_FORMAT, &value))
		return false;
	*ret = (encoding & PE_RELATION) == PE_PCREL ? value + vaddr : value;
	return true;
}

/* ---------------------------------------------------------------- the address's changes */

/* Finds the state's rule and its number first. Not for a CIE's program, which has no addresses. */
static __attribute__((noinline)) int emit_unknown(struct run *run)
{
	struct cfi_state *state = &run->state;

	if (!run->rows)
		return 0;
	if (state->known == CFI_NOTHING_KNOWN)
		cfi_rule(run->common, state, &state->rule);
	state->known = CFI_ID_KNOWN; /* or the program ends here */
	return rows_add_intern(run->rows, run->vaddr, &state->rule, &state->rule_id);
}

static inline int emit(struct run *run)
{
	if (run->state.known != CFI_ID_KNOWN)
		return emit_unknown(run);
	return rows_add_interned(run->rows, run->vaddr, run->state.rule_id);
}

static inline int advance_to(struct run *run, uint64_t vaddr)
{
	int r = 0;

	if (vaddr < run->vaddr)
		return CFI_BAD_ADDRESS;
	if (vaddr > run->vaddr)
		r = emit(run);
	run->vaddr = vaddr;
	return r;
}

static inline __attribute__((always_inline)) int advance(struct run *run, uint64_t delta)
{
	uint64_t bytes, vaddr;

	if (__builtin_mul_overflow(delta, run->common->code_align, &bytes) ||
	    __builtin_add_overflow(run->vaddr, bytes, &vaddr))
		return CFI_BAD_ADDRESS;
	return advance_to(run, vaddr);
}

static int advance_fixed(struct run *run, uint8_t op)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (op) {
	case CFA_ADVANCE_LOC1:
		return cursor_u8(&run->c, &u8) ? advance(run, u8) : CFI_TRUNCATED;
	case CFA_ADVANCE_LOC2:
		return cursor_u16(&run->c, &u16) ? advance(run, u16) : CFI_TRUNCATED;
	case CFA_ADVANCE_LOC4:
		return cursor_u32(&run->c, &u32) ? advance(run, u32) : CFI_TRUNCATED;
	default: /* CFA_MIPS_ADVANCE_LOC8 */
		return cursor_u64(&run->c, &u64) ? advance(run, u64) : CFI_TRUNCATED;
	}
}

/* ---------------------------------------------------------------- registers */

/* The state's register for a change; NULL for a register that the walker does not follow. */
static inline struct cfi_register *change(struct run *run, uint64_t reg)
{
	struct cfi_state *state = &run->state;

	if (reg != run->fp_reg && reg != run->common->ra_reg && reg != run->sp_reg)
		return NULL;
	state->known = CFI_NOTHING_KNOWN;
	if (reg == run->fp_reg)
		return &state->fp;
	return reg == run->common->ra_reg ? &state->ra : &state->sp;
}

static void set(struct run *run, uint64_t reg, enum cfi_how how, int64_t off)
{
	struct cfi_register *to = change(run, reg);

	if (to)
		*to = (struct cfi_register){.how = how, .off = off};
}

/* "CFA + @factored data alignments"; 64 bits suffice for all sensible values. */
static int scale(const struct run *run, int64_t factored, int64_t *ret)
{
	return __builtin_mul_overflow(factored, run->common->data_align, ret) ? CFI_BAD_ADDRESS : 0;
}

static int set_offset(struct run *run, enum cfi_how how, uint64_t reg, int64_t factored)
{
	int64_t off;
	int r = scale(run, factored, &off);

	if (!r)
		set(run, reg, how, off);
	return r;
}

static int offset_unsigned(struct run *run, enum cfi_how how, bool negative)
{
	uint64_t reg, factored;

	if (!cursor_uleb(&run->c, &reg) || !cursor_uleb(&run->c, &factored))
		return CFI_TRUNCATED;
	if (factored > INT64_MAX)
		return CFI_BAD_ADDRESS;
	return set_offset(run, how, reg, negative ? -(int64_t)factored : (int64_t)factored);
}

static int offset_signed(struct run *run, enum cfi_how how)
{
	uint64_t reg;
	int64_t factored;

	if (!cursor_uleb(&run->c, &reg) || !cursor_sleb(&run->c, &factored))
		return CFI_TRUNCATED;
	return set_offset(run, how, reg, factored);
}

static int offset_short(struct run *run, uint64_t reg)
{
	uint64_t factored;

	if (!cursor_uleb(&run->c, &factored))
		return CFI_TRUNCATED;
	if (factored > INT64_MAX)
		return CFI_BAD_ADDRESS;
	return set_offset(run, CFI_AT_CFA, reg, (int64_t)factored);
}

static int simple(struct run *run, enum cfi_how how)
{
	uint64_t reg;

	if (!cursor_uleb(&run->c, &reg))
		return CFI_TRUNCATED;
	set(run, reg, how, 0);
	return 0;
}

static int in_register(struct run *run)
{
	struct cfi_register *to;
	uint64_t reg, where;

	if (!cursor_uleb(&run->c, &reg) || !cursor_uleb(&run->c, &where))
		return CFI_TRUNCATED;
	to = change(run, reg);
	if (to)
		*to = (struct cfi_register){.how = CFI_IN_REGISTER, .reg = where};
	return 0;
}

static bool block(struct run *run, struct cursor *ret)
{
	uint64_t n;

	return cursor_uleb(&run->c, &n) && n <= SIZE_MAX && cursor_sub(&run->c, (size_t)n, ret);
}

static int by_expression(struct run *run, enum cfi_how how)
{
	struct cfi_register *to;
	struct cursor code;
	uint64_t reg;

	if (!cursor_uleb(&run->c, &reg) || !block(run, &code))
		return CFI_TRUNCATED;
	to = change(run, reg);
	if (to && how == CFI_EXPRESSION)
		*to = (struct cfi_register){.how = how, .expr = expr_parse(code, true)};
	else if (to)
		*to = (struct cfi_register){.how = how};
	return 0;
}

static int restore(struct run *run, uint64_t reg)
{
	const struct cfi_state *initial = &run->common->initial;
	struct cfi_register *to = change(run, reg);

	if (to)
		*to = reg == run->fp_reg	   ? initial->fp
		      : reg == run->common->ra_reg ? initial->ra
						   : initial->sp;
	return 0;
}

/* ---------------------------------------------------------------- the CFA */

static int cfa_register(struct run *run)
{
	if (!cursor_uleb(&run->c, &run->state.cfa_reg))
		return CFI_TRUNCATED;
	run->state.known = CFI_NOTHING_KNOWN;
	run->state.has_cfa = true;
	run->state.cfa_is_expr = false;
	return 0;
}

/* Most changes affect only the offset: the rule stays the same except for it. */
static void set_cfa_offset(struct run *run, int64_t off)
{
	struct cfi_state *state = &run->state;

	state->cfa_off = off;
	if (state->known == CFI_NOTHING_KNOWN || state->rule.cfa != UNWIND_CFA_REG ||
	    state->cfa_is_expr || off != (int32_t)off) {
		state->known = CFI_NOTHING_KNOWN;
		return;
	}
	state->rule.cfa_off = (int32_t)off;
	state->known = CFI_RULE_KNOWN;
}

static inline __attribute__((always_inline)) int cfa_offset(struct run *run)
{
	uint64_t off;

	if (!cursor_uleb(&run->c, &off))
		return CFI_TRUNCATED;
	if (off > INT64_MAX)
		return CFI_BAD_ADDRESS;
	set_cfa_offset(run, (int64_t)off);
	return 0;
}

static int cfa_offset_signed(struct run *run)
{
	int64_t factored, off;
	int r;

	if (!cursor_sleb(&run->c, &factored))
		return CFI_TRUNCATED;
	r = scale(run, factored, &off);
	if (!r)
		set_cfa_offset(run, off);
	return r;
}

static int cfa_expression(struct run *run)
{
	struct cursor code;

	if (!block(run, &code))
		return CFI_TRUNCATED;
	run->state.known = CFI_NOTHING_KNOWN;
	run->state.cfa_expr = expr_parse(code, false);
	run->state.has_cfa = true;
	run->state.cfa_is_expr = true;
	return 0;
}

/* ---------------------------------------------------------------- instructions */

static int step_extended(struct run *run, uint8_t op)
{
	uint64_t operand;
	int r;

	switch (op) {
	case CFA_NOP:
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return 0;
	case CFA_SET_LOC:
		if (!cfi_address(&run->c, run->common->pointer_encoding,
				 run->program_vaddr + cursor_pos(&run->c), &operand))
			return CFI_TRUNCATED;
		return advance_to(run, operand);
	case CFA_ADVANCE_LOC1:
	case CFA_ADVANCE_LOC2:
	case CFA_ADVANCE_LOC4:
	case CFA_MIPS_ADVANCE_LOC8:
		return advance_fixed(run, op);
	case CFA_OFFSET_EXTENDED:
		return offset_unsigned(run, CFI_AT_CFA, false);
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		return offset_unsigned(run, CFI_AT_CFA, true);
	case CFA_OFFSET_EXTENDED_SF:
		return offset_signed(run, CFI_AT_CFA);
	case CFA_VAL_OFFSET:
		return offset_unsigned(run, CFI_VALUE, false);
	case CFA_VAL_OFFSET_SF:
		return offset_signed(run, CFI_VALUE);
	case CFA_RESTORE_EXTENDED:
		return cursor_uleb(&run->c, &operand) ? restore(run, operand) : CFI_TRUNCATED;
	case CFA_UNDEFINED:
		return simple(run, CFI_UNDEFINED);
	case CFA_SAME_VALUE:
		return simple(run, CFI_SAME);
	case CFA_REGISTER:
		return in_register(run);
	case CFA_REMEMBER_STATE:
		if (run->n_remembered == CFI_REMEMBER_MAX)
			return CFI_TOO_DEEP;
		run->remembered[run->n_remembered++] = run->state;
		return 0;
	case CFA_RESTORE_STATE:
		if (!run->n_remembered)
			return CFI_UNBALANCED;
		run->state = run->remembered[--run->n_remembered];
		return 0;
	case CFA_DEF_CFA:
		r = cfa_register(run);
		return r ? r : cfa_offset(run);
	case CFA_DEF_CFA_SF:
		r = cfa_register(run);
		return r ? r : cfa_offset_signed(run);
	case CFA_DEF_CFA_REGISTER:
		return cfa_register(run);
	case CFA_DEF_CFA_OFFSET:
		return cfa_offset(run);
	case CFA_DEF_CFA_OFFSET_SF:
		return cfa_offset_signed(run);
	case CFA_DEF_CFA_EXPRESSION:
		return cfa_expression(run);
	case CFA_EXPRESSION:
		return by_expression(run, CFI_EXPRESSION);
	case CFA_VAL_EXPRESSION:
		return by_expression(run, CFI_COMPUTED);
	case CFA_GNU_ARGS_SIZE:
		return cursor_uleb(&run->c, &operand) ? 0 : CFI_TRUNCATED;
	default:
		return CFI_BAD_OPCODE;
	}
}

static int step(struct run *run, uint8_t op)
{
	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		return advance(run, op & 0x3f);
	case CFA_OFFSET:
		return offset_short(run, op & 0x3f);
	case CFA_RESTORE:
		return restore(run, op & 0x3f);
	default:
		return step_extended(run, op);
	}
}

static int run_program(struct run *run)
{
	uint8_t op;
	int r = 0;

	while (!r && cursor_u8(&run->c, &op))
		r = step(run, op);
	return r ? r : emit(run);
}

int cfi_run_initial(struct cfi_common *common, struct cursor program)
{
	struct run run = {.common = common,
			  .c = program,
			  .fp_reg = fp_register(common->machine),
			  .sp_reg = sp_register(common->machine)};
	int r;

	memset(&common->initial, 0, sizeof(common->initial));
	r = run_program(&run);
	if (!r)
		common->initial = run.state;
	return r;
}

int cfi_run(const struct cfi_common *common, struct cursor program, uint64_t program_vaddr,
	    uint64_t start, struct rows *rows)
{
	struct run run; /* 2 KiB of @run need no zeros before the first write */

	run.common = common;
	run.c = program;
	run.program_vaddr = program_vaddr;
	run.vaddr = start;
	run.rows = rows;
	run.fp_reg = fp_register(common->machine);
	run.sp_reg = sp_register(common->machine);
	run.state = common->initial;
	run.n_remembered = 0;
	return run_program(&run);
}

const char *cfi_outcome_name(int outcome)
{
	static const char *const names[CFI_OUTCOME_MAX] = {
		[CFI_OK] = "ok",
		[CFI_FULL] = "rows_full",
		[CFI_TRUNCATED] = "truncated",
		[CFI_BAD_OPCODE] = "bad_opcode",
		[CFI_TOO_DEEP] = "too_deep",
		[CFI_UNBALANCED] = "unbalanced",
		[CFI_BAD_ADDRESS] = "bad_address",
	};

	if (outcome >= 0 && outcome < CFI_OUTCOME_MAX && names[outcome])
		return names[outcome];
	return "error";
}
