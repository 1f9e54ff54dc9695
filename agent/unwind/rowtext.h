/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_ROWTEXT_H
#define PODPROF_UNWIND_ROWTEXT_H

/*
 * Rules as text, for people:
 *
 *	cfa=rsp+8 fp=same ra=cfa-8
 *
 * cfa is REG+N, plt10 or plt11 (or another number), or deref(REG+N)+M; fp is same, cfa-N or
 * deref(REG+N); ra is cfa-N or a register. A fourth word "switch" means a caller on another stack.
 * cfa=cgo(G,DEPTH)+N is UNWIND_CFA_GO_CGO, and cfa=curg(WHERE,OFFSET)+N is UNWIND_CFA_GO_CURG with
 * WHERE being REG+0, tls+M or tlsat+M. Each N and M has its sign. Instead of the three words there
 * may be gap, stop, signal, frame (only the frame pointer's record is known) or unsupported=REASON.
 * Registers have readelf's names: rax to r15; x0 to x30 and sp.
 */

#include "unwind/cfi.h"

/* Characters with the NUL; the longest has 70. Reached: -. */
#define ROWTEXT_MAX 96

/* Returns @ret. */
const char *rowtext_print(enum cfi_machine machine, const struct unwind_rule *rule,
			  char ret[ROWTEXT_MAX]);

/* A register's name; "?" for an invalid number. */
const char *rowtext_register(enum cfi_machine machine, unsigned int reg);

#endif
