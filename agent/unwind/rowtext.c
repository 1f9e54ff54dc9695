// SPDX-License-Identifier: Apache-2.0
#include "unwind/rowtext.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"

static const char *const x86_names[] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

static const char *const arm64_names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",
};

static const char *const *register_names(enum cfi_machine machine, size_t *ret_n)
{
	*ret_n = machine == CFI_ARM64 ? array_size(arm64_names) : array_size(x86_names);
	return machine == CFI_ARM64 ? arm64_names : x86_names;
}

static const char *register_name(enum cfi_machine machine, unsigned int reg)
{
	const char *const *names;
	size_t n;

	names = register_names(machine, &n);
	return reg < n ? names[reg] : "?";
}

static unsigned int fp_register(enum cfi_machine machine)
{
	return machine == CFI_ARM64 ? UNWIND_ARM64_FP : UNWIND_X86_FP;
}

/* ---------------------------------------------------------------- to text */

static int print_curg(enum cfi_machine machine, const struct unwind_rule *rule, char *to,
		      size_t size)
{
	const int curg = rule->cfa_add >> UNWIND_GO_CURG << 3;
	const int add = (rule->cfa_add & ((1 << UNWIND_GO_CURG) - 1)) << 3;

	if (rule->cfa_reg == UNWIND_GO_TLS)
		return snprintf(to, size, "cfa=curg(tls%+d,%d)%+d", rule->cfa_off, curg, add);
	if (rule->cfa_reg == UNWIND_GO_TLS_AT)
		return snprintf(to, size, "cfa=curg(tlsat%+d,%d)%+d", rule->cfa_off, curg, add);
	return snprintf(to, size, "cfa=curg(%s%+d,%d)%+d", register_name(machine, rule->cfa_reg),
			rule->cfa_off, curg, add);
}

static int print_cfa(enum cfi_machine machine, const struct unwind_rule *rule, char *to,
		     size_t size)
{
	const char *reg = register_name(machine, rule->cfa_reg);

	switch (rule->cfa) {
	case UNWIND_CFA_REG:
	case UNWIND_CFA_SWITCH:
		return snprintf(to, size, "cfa=%s%+d", reg, rule->cfa_off);
	case UNWIND_CFA_GO_CGO:
		return snprintf(to, size, "cfa=cgo(%u,%d)%+d", rule->cfa_reg, rule->cfa_off,
				rule->cfa_add);
	case UNWIND_CFA_GO_CURG:
		return print_curg(machine, rule, to, size);
	case UNWIND_CFA_PLT:
		return snprintf(to, size, "cfa=plt%d", rule->cfa_off);
	default:
		return snprintf(to, size, "cfa=deref(%s%+d)%+d", reg, rule->cfa_off, rule->cfa_add);
	}
}

static int print_fp(enum cfi_machine machine, const struct unwind_rule *rule, char *to, size_t size)
{
	switch (rule->fp) {
	case UNWIND_FP_AT_CFA:
		return snprintf(to, size, " fp=cfa%+d", rule->fp_off);
	case UNWIND_FP_DEREF:
		return snprintf(to, size, " fp=deref(%s%+d)",
				register_name(machine, fp_register(machine)), rule->fp_off);
	case UNWIND_FP_GO_CURG:
		return snprintf(to, size, " fp=curg%+d", rule->fp_off);
	default:
		return snprintf(to, size, " fp=same");
	}
}

static void print_ra(enum cfi_machine machine, const struct unwind_rule *rule, char *to,
		     size_t size)
{
	const char *more = rule->cfa == UNWIND_CFA_SWITCH ? " switch" : "";

	if (rule->ra == UNWIND_RA_REG)
		snprintf(to, size, " ra=%s%s", register_name(machine, (unsigned int)rule->ra_off),
			 more);
	else
		snprintf(to, size, " ra=cfa%+d%s", rule->ra_off, more);
}

const char *rowtext_print(enum cfi_machine machine, const struct unwind_rule *rule,
			  char ret[ROWTEXT_MAX])
{
	static const char *const whole[UNWIND_CFA_MAX] = {
		[UNWIND_CFA_GAP] = "gap",
		[UNWIND_CFA_FP] = "frame",
		[UNWIND_CFA_SIGNAL] = "signal",
		[UNWIND_CFA_STOP] = "stop",
	};
	int n;

	if (rule->cfa == UNWIND_CFA_UNSUPPORTED || rule->cfa >= UNWIND_CFA_MAX) {
		snprintf(ret, ROWTEXT_MAX, "unsupported=%s", rows_unsupported_name(rule->cfa_off));
		return ret;
	}
	if (whole[rule->cfa]) {
		snprintf(ret, ROWTEXT_MAX, "%s", whole[rule->cfa]);
		return ret;
	}
	n = print_cfa(machine, rule, ret, ROWTEXT_MAX);
	n += print_fp(machine, rule, ret + n, ROWTEXT_MAX - (size_t)n);
	print_ra(machine, rule, ret + n, ROWTEXT_MAX - (size_t)n);
	return ret;
}

/* ---------------------------------------------------------------- from text */

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

/* The longest name that fits: "r1" is not "r10". */
static bool parse_register(enum cfi_machine machine, struct strview *t, unsigned int *ret)
{
	const char *const *names;
	struct strview best = *t;
	size_t n;

	names = register_names(machine, &n);
	for (size_t i = 0; i < n; i++) {
		struct strview rest = *t;

		if (strview_prefix(&rest, names[i]) && rest.p > best.p) {
			best = rest;
			*ret = (unsigned int)i;
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
		    reg != fp_register(machine) || !strview_char(t, ')'))
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

/* A fourth word, of rules that go on with another stack. */
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

static enum rowtext_part read_columns(enum cfi_machine machine, struct strview *text,
				      struct unwind_rule *ret)
{
	if (!parse_cfa(machine, text, ret))
		return ROWTEXT_RULE;
	if (!parse_blanks(text) || !parse_fp(machine, text, ret))
		return ROWTEXT_FP;
	if (!parse_blanks(text) || !parse_ra(machine, text, ret))
		return ROWTEXT_RA;
	parse_switch(text, ret);
	return strview_empty(text) ? ROWTEXT_OK : ROWTEXT_REST;
}

enum rowtext_part rowtext_read(enum cfi_machine machine, struct strview text,
			       struct unwind_rule *ret)
{
	struct unwind_rule rule = {0};
	enum rowtext_part part = ROWTEXT_OK;

	if (!parse_whole(&text, &rule))
		part = read_columns(machine, &text, &rule);
	if (!part)
		*ret = rule;
	return part;
}

bool rowtext_parse(enum cfi_machine machine, struct strview text, struct unwind_rule *ret)
{
	return rowtext_read(machine, text, ret) == ROWTEXT_OK;
}
