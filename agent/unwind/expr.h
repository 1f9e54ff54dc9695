/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_EXPR_H
#define PODPROF_UNWIND_EXPR_H

/* DWARF expressions in unwind tables, limited to the forms below. */

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

enum expr_form {
	EXPR_OTHER = 0, /* anything else */
	EXPR_REG,	/* reg + off */
	EXPR_DEREF,	/* *(reg + off) + add */
	EXPR_CFA,	/* CFA + off */
	EXPR_PLT,	/* sp + 8, and 8 more if (pc & 15) >= off: the stub has pushed */
};

struct expr {
	enum expr_form form;
	uint8_t reg;
	int64_t off;
	int64_t add;
};

/* The form of @code. @has_cfa: the CFA is on the stack at the start, as in the rules of registers.
 * Never fails: an unsupported expression is EXPR_OTHER. */
struct expr expr_parse(struct cursor code, bool has_cfa);

#endif
