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

const char *rowtext_register(enum cfi_machine machine, unsigned int reg)
{
	if (machine == CFI_ARM64)
		return reg < array_size(arm64_names) ? arm64_names[reg] : "?";
	return reg < array_size(x86_names) ? x86_names[reg] : "?";
}

static int print_curg(enum cfi_machine machine, const struct unwind_rule *rule, char *to,
		      size_t size)
{
	const int curg = rule->cfa_add >> UNWIND_GO_CURG << 3;
	const int add = (rule->cfa_add & ((1 << UNWIND_GO_CURG) - 1)) << 3;

	if (rule->cfa_reg == UNWIND_GO_TLS)
		return snprintf(to, size, "cfa=curg(tls%+d,%d)%+d", rule->cfa_off, curg, add);
	if (rule->cfa_reg == UNWIND_GO_TLS_AT)
		return snprintf(to, size, "cfa=curg(tlsat%+d,%d)%+d", rule->cfa_off, curg, add);
	return snprintf(to, size, "cfa=curg(%s%+d,%d)%+d", rowtext_register(machine, rule->cfa_reg),
			rule->cfa_off, curg, add);
}

static int print_cfa(enum cfi_machine machine, const struct unwind_rule *rule, char *to,
		     size_t size)
{
	const char *reg = rowtext_register(machine, rule->cfa_reg);

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
		return snprintf(to, size, " fp=deref(%s%+d)", machine == CFI_ARM64 ? "x29" : "rbp",
				rule->fp_off);
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
		snprintf(to, size, " ra=%s%s",
			 rowtext_register(machine, (unsigned int)rule->ra_off), more);
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
