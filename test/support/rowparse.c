// SPDX-License-Identifier: Apache-2.0
#include "support/rowparse.h"

#include "base/cleanup.h"
#include "unwind/rows.h"
#include "unwind/rowtext.h"

/* "+8", "-8". */
static bool parse_signed(struct strview *t, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = strview_char(t, '-');
	uint64_t value;

	if ((!negative && !strview_char(t, '+')) || !strview_u64(t, 10, &value) ||
	    value > INT32_MAX + 1ull)
		return false;
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return *ret >= min && *ret <= max;
}

/* The longest matching name: "r1" is not "r10". */
static bool parse_register(enum cfi_machine machine, struct strview *t, unsigned int *ret)
{
	struct strview best = *t;

	for (unsigned int i = 0; *rowtext_register(machine, i) != '?'; i++) {
		struct strview rest = *t;

		if (strview_prefix(&rest, rowtext_register(machine, i)) && rest.p > best.p) {
			best = rest;
			*ret = i;
		}
	}
	if (best.p == t->p)
		return false;
	*t = best;
	return true;
}

static bool parse_place(enum cfi_machine machine, struct strview *t, unsigned int *reg,
			int64_t *off)
{
	return parse_register(machine, t, reg) && parse_signed(t, INT32_MIN, INT32_MAX, off);
}

/* After "cgo(". */
static bool parse_cgo(struct strview *t, struct unwind_rule *ret)
{
	uint64_t g, depth;
	int64_t add;

	if (!strview_u64(t, 10, &g) || g > UINT8_MAX || !strview_char(t, ',') ||
	    !strview_u64(t, 10, &depth) || depth > INT32_MAX || !strview_char(t, ')') ||
	    !parse_signed(t, INT16_MIN, INT16_MAX, &add))
		return false;
	ret->cfa = UNWIND_CFA_GO_CGO;
	ret->cfa_reg = (uint8_t)g;
	ret->cfa_off = (int32_t)depth;
	ret->cfa_add = (int16_t)add;
	return true;
}

/* After "curg(". */
static bool parse_curg(enum cfi_machine machine, struct strview *t, struct unwind_rule *ret)
{
	unsigned int reg = UNWIND_GO_TLS_AT;
	int64_t off, add;
	uint64_t curg;

	if (!strview_prefix(t, "tlsat")) {
		reg = UNWIND_GO_TLS;
		if (!strview_prefix(t, "tls") && !parse_register(machine, t, &reg))
			return false;
	}
	if (!parse_signed(t, INT32_MIN, INT32_MAX, &off) || !strview_char(t, ',') ||
	    !strview_u64(t, 10, &curg) || curg % 8 || curg / 8 > INT16_MAX >> UNWIND_GO_CURG ||
	    !strview_char(t, ')') || !parse_signed(t, 0, (8 << UNWIND_GO_CURG) - 1, &add) ||
	    add % 8)
		return false;
	ret->cfa = UNWIND_CFA_GO_CURG;
	ret->cfa_reg = (uint8_t)reg;
	ret->cfa_off = (int32_t)off;
	ret->cfa_add = (int16_t)((int64_t)(curg / 8) << UNWIND_GO_CURG | add / 8);
	return true;
}

static bool parse_cfa(enum cfi_machine machine, struct strview *t, struct unwind_rule *ret)
{
	unsigned int reg = 0;
	int64_t off = 0, add = 0;
	uint64_t threshold;

	if (!strview_prefix(t, "cfa="))
		return false;
	if (strview_prefix(t, "plt")) {
		if (machine != CFI_X86_64 || !strview_u64(t, 10, &threshold) || threshold > 15)
			return false;
		ret->cfa = UNWIND_CFA_PLT;
		ret->cfa_off = (int32_t)threshold;
		return true;
	}
	if (strview_prefix(t, "cgo("))
		return parse_cgo(t, ret);
	if (strview_prefix(t, "curg("))
		return parse_curg(machine, t, ret);
	ret->cfa = strview_prefix(t, "deref(") ? UNWIND_CFA_DEREF : UNWIND_CFA_REG;
	if (!parse_place(machine, t, &reg, &off))
		return false;
	if (ret->cfa == UNWIND_CFA_DEREF &&
	    (!strview_char(t, ')') || !parse_signed(t, INT16_MIN, INT16_MAX, &add)))
		return false;
	ret->cfa_reg = (uint8_t)reg;
	ret->cfa_off = (int32_t)off;
	ret->cfa_add = (int16_t)add;
	return true;
}

static bool parse_fp(enum cfi_machine machine, struct strview *t, struct unwind_rule *ret)
{
	unsigned int reg = 0;
	int64_t off = 0;

	if (!strview_prefix(t, "fp="))
		return false;
	if (strview_prefix(t, "same"))
		return true;
	if (strview_prefix(t, "curg")) {
		ret->fp = UNWIND_FP_GO_CURG;
		if (ret->cfa != UNWIND_CFA_GO_CURG || !parse_signed(t, INT32_MIN, INT32_MAX, &off))
			return false;
	} else if (strview_prefix(t, "cfa")) {
		ret->fp = UNWIND_FP_AT_CFA;
		if (!parse_signed(t, INT32_MIN, INT32_MAX, &off))
			return false;
	} else {
		ret->fp = UNWIND_FP_DEREF;
		if (!strview_prefix(t, "deref(") || !parse_place(machine, t, &reg, &off) ||
		    reg != (machine == CFI_ARM64 ? UNWIND_ARM64_FP : UNWIND_X86_FP) ||
		    !strview_char(t, ')'))
			return false;
	}
	ret->fp_off = (int32_t)off;
	return true;
}

static bool parse_ra(enum cfi_machine machine, struct strview *t, struct unwind_rule *ret)
{
	unsigned int reg = 0;
	int64_t off = 0;

	if (!strview_prefix(t, "ra="))
		return false;
	if (strview_prefix(t, "cfa")) {
		if (!parse_signed(t, INT16_MIN, INT16_MAX, &off))
			return false;
		ret->ra_off = (int16_t)off;
		return true;
	}
	if (!parse_register(machine, t, &reg))
		return false;
	ret->ra = UNWIND_RA_REG;
	ret->ra_off = (int16_t)reg;
	return true;
}

static bool parse_whole(const struct strview *t, struct unwind_rule *ret)
{
	static const struct {
		const char *name;
		enum unwind_cfa cfa;
	} whole[] = {
		{"gap", UNWIND_CFA_GAP},
		{"stop", UNWIND_CFA_STOP},
		{"signal", UNWIND_CFA_SIGNAL},
		{"frame", UNWIND_CFA_FP},
	};
	struct strview reason = *t;

	for (size_t i = 0; i < array_size(whole); i++)
		if (strview_is(t, whole[i].name)) {
			ret->cfa = whole[i].cfa;
			return true;
		}
	if (!strview_prefix(&reason, "unsupported="))
		return false;
	for (int32_t why = 1; why < UNSUPPORTED_MAX; why++)
		if (strview_is(&reason, rows_unsupported_name(why))) {
			ret->cfa = UNWIND_CFA_UNSUPPORTED;
			ret->cfa_off = why;
			return true;
		}
	return false;
}

/* A fourth word, for rules that change to another stack. */
static void parse_switch(struct strview *t, struct unwind_rule *ret)
{
	struct strview rest = *t;

	strview_skip_blanks(&rest);
	if (ret->cfa != UNWIND_CFA_REG || !strview_is(&rest, "switch"))
		return;
	ret->cfa = UNWIND_CFA_SWITCH;
	t->p = t->end;
}

static bool parse_blanks(struct strview *t)
{
	const char *was = t->p;

	strview_skip_blanks(t);
	return t->p > was;
}

static bool parse_columns(enum cfi_machine machine, struct strview *text, struct unwind_rule *ret)
{
	if (!parse_cfa(machine, text, ret) || !parse_blanks(text) ||
	    !parse_fp(machine, text, ret) || !parse_blanks(text) || !parse_ra(machine, text, ret))
		return false;
	parse_switch(text, ret);
	return strview_empty(text);
}

bool rowparse(enum cfi_machine machine, struct strview text, struct unwind_rule *ret)
{
	struct unwind_rule rule = {0};

	if (!parse_whole(&text, &rule) && !parse_columns(machine, &text, &rule))
		return false;
	*ret = rule;
	return true;
}
