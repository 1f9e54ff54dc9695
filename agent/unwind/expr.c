// SPDX-License-Identifier: Apache-2.0
/*
 * A DWARF expression is a program for a stack machine. The walker has no such machine and needs
 * none: 37 million rows of real programs have 28 different expressions for the CFA, almost all of
 * two shapes. Functions that realign their stack keep the address of the old stack in memory,
 * "*(reg + off) + add". The stubs of the procedure linkage table push a word at an offset common to
 * all stubs, so linkers describe the whole table by an expression over pc & 15. Registers'
 * expressions are all "saved at reg + off".
 *
 * So this parser runs the program on forms instead of numbers: each item of the stack is a constant
 * or one of enum expr_form. Any other result is EXPR_OTHER, and stays so.
 *
 * Specification: DWARF 5 section 2.5.
 */
#include "unwind/expr.h"

#include <stddef.h>
#include <string.h>

/* Items of the expression stack; the longest supported shape has two. With more, EXPR_OTHER.
 * Reached: the row is `unsupported`. */
#define EXPR_DEPTH_MAX 4

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

/* A constant is a form of our own, with the value in off. */
#define FORM_CONST ((enum expr_form)(EXPR_PLT + 1))

struct machine {
	struct cursor code;
	struct expr items[EXPR_DEPTH_MAX];
	unsigned int n;
};

static bool push(struct machine *m, enum expr_form form, uint64_t reg, int64_t off)
{
	if (m->n == EXPR_DEPTH_MAX || reg > UINT8_MAX)
		return false;
	m->items[m->n++] = (struct expr){.form = form, .reg = (uint8_t)reg, .off = off};
	return true;
}

static bool push_const(struct machine *m, uint8_t op)
{
	uint64_t value = 0;
	int64_t sleb;
	size_t size = (size_t)1 << ((op - OP_CONST1U) / 2);
	unsigned int unused = 64 - 8 * (unsigned int)size;
	const void *bytes;

	if (op == OP_CONSTU)
		return cursor_uleb(&m->code, &value) && push(m, FORM_CONST, 0, (int64_t)value);
	if (op == OP_CONSTS)
		return cursor_sleb(&m->code, &sleb) && push(m, FORM_CONST, 0, sleb);
	if (!cursor_bytes(&m->code, size, &bytes))
		return false;
	memcpy(&value, bytes, size);
	if ((op - OP_CONST1U) % 2) /* signed: the top bit is copied down */
		return push(m, FORM_CONST, 0, (int64_t)(value << unused) >> unused);
	return push(m, FORM_CONST, 0, (int64_t)value);
}

static bool add(struct machine *m, int64_t value)
{
	struct expr *top;
	int64_t *to;

	if (!m->n)
		return false;
	top = &m->items[m->n - 1];
	to = top->form == EXPR_DEREF ? &top->add : &top->off;
	return !__builtin_add_overflow(*to, value, to);
}

/* plus and minus, of a form and a constant. */
static bool add_top(struct machine *m, bool negative)
{
	int64_t value;

	if (m->n < 2)
		return false;
	if (!negative && m->items[m->n - 2].form == FORM_CONST) {
		struct expr was = m->items[m->n - 2];

		m->items[m->n - 2] = m->items[m->n - 1];
		m->items[m->n - 1] = was;
	}
	if (m->items[m->n - 1].form != FORM_CONST)
		return false;
	value = m->items[--m->n].off;
	if (negative && __builtin_sub_overflow(0, value, &value))
		return false;
	return add(m, value);
}

static bool step(struct machine *m, uint8_t op)
{
	uint64_t reg, value;
	int64_t off;

	if (op >= OP_CONST1U && op <= OP_CONSTS)
		return push_const(m, op);
	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push(m, FORM_CONST, 0, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return cursor_sleb(&m->code, &off) && push(m, EXPR_REG, op - OP_BREG0, off);
	switch (op) {
	case OP_DEREF:
		if (!m->n || m->items[m->n - 1].form != EXPR_REG)
			return false;
		m->items[m->n - 1].form = EXPR_DEREF;
		return true;
	case OP_MINUS:
	case OP_PLUS:
		return add_top(m, op == OP_MINUS);
	case OP_PLUS_UCONST:
		return cursor_uleb(&m->code, &value) && value <= INT64_MAX &&
		       add(m, (int64_t)value);
	case OP_BREGX:
		return cursor_uleb(&m->code, &reg) && cursor_sleb(&m->code, &off) &&
		       push(m, EXPR_REG, reg, off);
	case OP_NOP:
		return true;
	default:
		return false;
	}
}

/*
 * The expression of GNU ld and lld for .plt (x86-64): breg7 8, breg16 0, lit15, and, lit THRESHOLD,
 * ge, lit3, shl, plus. The threshold is 11, with indirect branch tracking 10, in files of MPX times
 * 5.
 */
static bool parse_plt(const struct cursor *code, struct expr *ret)
{
	static const uint8_t plt[] = {0x77,    0x08, 0x80, 0x00, 0x3f, 0x1a,
				      OP_LIT0, 0x2a, 0x33, 0x24, 0x22};
	const size_t at = 6; /* the threshold */
	const uint8_t *p = code->pos;

	if (cursor_left(code) != sizeof(plt) || memcmp(p, plt, at) != 0 ||
	    memcmp(p + at + 1, plt + at + 1, sizeof(plt) - at - 1) != 0 || p[at] < OP_LIT0 ||
	    p[at] > OP_LIT0 + 15)
		return false;
	*ret = (struct expr){.form = EXPR_PLT, .off = p[at] - OP_LIT0};
	return true;
}

struct expr expr_parse(struct cursor code, bool has_cfa)
{
	struct machine m = {.code = code};
	struct expr ret = {.form = EXPR_OTHER};
	uint8_t op;

	if (parse_plt(&code, &ret))
		return ret;
	if (has_cfa && !push(&m, EXPR_CFA, 0, 0))
		return ret;
	while (cursor_u8(&m.code, &op))
		if (!step(&m, op))
			return ret;
	return m.n && m.items[m.n - 1].form != FORM_CONST ? m.items[m.n - 1] : ret;
}
