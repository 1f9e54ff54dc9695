/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODESTATE_H
#define PODPROF_CODESCAN_CODESTATE_H

/*
 * The frame of a function at one instruction: the effect of each instruction in turn, and the
 * resulting row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "shared/unwind.h"
#include "unwind/cfi.h"
#include "codescan/insn.h"

/**
 * struct codestate - distances are below the CFA, in bytes
 * @sp:        of the stack pointer, if @sp_known
 * @fp:        of the frame pointer's target, if @fp_frame
 * @fp_at:     where the caller's frame pointer is stored; 0: it is in the register
 * @ra_at:     the same of the return address
 * @kept_at:   distance of the stack pointer's copy, if there is one
 * @kept:      the register of the copy, by DWARF's number plus 1; 0: there is no copy. With a copy,
 *             @sp is unknown
 * @outermost: there is no caller
 *
 * Equal states are equal bytes.
 */
struct codestate {
	int32_t sp;
	int32_t fp;
	int32_t fp_at;
	int32_t ra_at;
	int32_t kept_at;
	uint8_t kept;
	bool sp_known;
	bool fp_frame;
	bool outermost;
};

/* At a function's first instruction. */
struct codestate codestate_entry(enum cfi_machine machine);
/* Applies an instruction. False for an instruction that no usual function has. */
bool codestate_step(struct codestate *st, const struct insn *insn);
/* After the alignment of the stack pointer: register @reg keeps what it was. Not for a state
 * without a known stack pointer. */
void codestate_keep_sp(struct codestate *st, uint8_t reg);
/* The register gives the stack pointer back. */
void codestate_give_back_sp(struct codestate *st);
/* The register has another value. */
void codestate_lose_kept(struct codestate *st);
/* Whether the caller sees the same state as at the function's first instruction. */
bool codestate_is_balanced(enum cfi_machine machine, const struct codestate *st);
/* A gap if the stack is not known. */
void codestate_rule(enum cfi_machine machine, const struct codestate *st, struct unwind_rule *ret);

#endif
