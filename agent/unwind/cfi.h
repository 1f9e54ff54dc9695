/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_CFI_H
#define PODPROF_UNWIND_CFI_H

/*
 * Call frame instructions: the small programs in .eh_frame and .debug_frame. They describe, address
 * by address, where the caller's registers are. This module runs each program once, into rows.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/expr.h"
#include "unwind/rows.h"

/* States kept by DW_CFA_remember_state; compilers nest one. A program with more is CFI_TOO_DEEP.
 * Reached: the function has no rows: `too_deep`. */
#define CFI_REMEMBER_MAX 8

enum cfi_outcome {
	CFI_OK = ROWS_OK,
	CFI_FULL = ROWS_FULL,		  /* the image has too many rows */
	CFI_TRUNCATED = ROWS_OUTCOME_MAX, /* an instruction or expression leaves its bounds */
	CFI_BAD_OPCODE,
	CFI_TOO_DEEP,
	CFI_UNBALANCED,	 /* the address decreases, or exceeds 64 bits */
	CFI_BAD_ADDRESS, /* goes back, or beyond 64 bits */
	CFI_OUTCOME_MAX,
};

enum cfi_machine {
	CFI_X86_64,
	CFI_ARM64,
};

/* Where a caller's register is. */
enum cfi_how {
	CFI_UNSPECIFIED = 0, /* no rule given: the callee has not changed the register */
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA, /* saved at CFA + off */
	CFI_VALUE,  /* is CFA + off */
	CFI_COMPUTED,
	CFI_IN_REGISTER,
	CFI_EXPRESSION, /* saved where expr says */
};

struct cfi_register {
	enum cfi_how how;
	union {
		int64_t off;	  /* AT_CFA, VALUE */
		uint64_t reg;	  /* IN_REGISTER */
		struct expr expr; /* EXPRESSION */
	};
};

enum cfi_known {
	CFI_NOTHING_KNOWN = 0,
	CFI_RULE_KNOWN, /* but not its number */
	CFI_ID_KNOWN,
};

struct cfi_state {
	bool has_cfa;
	bool cfa_is_expr;
	uint64_t cfa_reg;
	int64_t cfa_off;
	struct expr cfa_expr;
	struct cfi_register fp;
	struct cfi_register ra;
	struct cfi_register sp; /* the caller's: nearly always without a rule, and the CFA */
	/* The walker's rule for this state, once computed; kept by the interpreter. */
	struct unwind_rule rule;
	uint32_t rule_id;
	enum cfi_known known;
};

/* Data common to all programs of one CIE. */
struct cfi_common {
	enum cfi_machine machine;
	bool signal;		  /* a signal frame: its caller was interrupted and made no call */
	uint8_t pointer_encoding; /* of addresses in the programs: DW_EH_PE_* */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	struct cfi_state initial; /* result of the CIE's own program (cfi_run_initial()) */
};

/* Run the CIE's program; addresses do not matter yet. Sets @common's initial state. 0, an outcome.
 */
int cfi_run_initial(struct cfi_common *common, struct cursor program);

/**
 * cfi_run() - add the rows of one function
 * @program:       its instructions
 * @program_vaddr: of the first instruction itself, for addresses relative to themselves
 * @start, @end:   the function's addresses; rows outside are left out
 * @rows:          receives the rows; its range is begun
 *
 * Return: 0; an outcome or -ENOMEM, after which the range is to be dropped.
 */
int cfi_run(const struct cfi_common *common, struct cursor program, uint64_t program_vaddr,
	    uint64_t start, struct rows *rows);

/* Reads an address in encoding @encoding, stored at @vaddr. False for a truncated address, and for
 * the encodings that unwind tables of linked files do not need: indirect, relative to text, data or
 * function. */
bool cfi_address(struct cursor *c, uint8_t encoding, uint64_t vaddr, uint64_t *ret);

const char *cfi_outcome_name(int outcome);

#endif
