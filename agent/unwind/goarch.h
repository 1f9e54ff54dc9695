/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_GOARCH_H
#define PODPROF_UNWIND_GOARCH_H

/*
 * The machine-dependent part of gorows: the form of Go's frames, and the few places of code without
 * a description in tables. Code is only matched at places where a table shows the start of an
 * instruction, or in the few functions of the runtime that change stacks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/unwind.h"

#define GOARCH_NEVER UINT64_MAX

/* The range of a rule's cfa_add. */
#define GOARCH_CURG_LIMIT (8 * (INT16_MAX >> UNWIND_GO_CURG))

/* The beginning of a function's code, searched for places. */
struct gocode {
	uint64_t entry; /* vaddr of bytes[0] */
	const uint8_t *bytes;
	size_t n;
};

/**
 * struct goframe - the frame setup of a function
 * @fp_saved: from this vaddr on the caller's frame pointer is in the frame; GOARCH_NEVER: it stays
 *            in the register
 * @fp_set:   from this vaddr on the frame pointer points at this frame's record
 * @ra_saved: the return address is in the frame (always so where calls put it there)
 */
struct goframe {
	uint64_t fp_saved;
	uint64_t fp_set;
	bool ra_saved;
};

/* A call of C by asmcgocall. */
struct gocall {
	uint64_t from;	/* vaddr after the change of sp */
	uint64_t start; /* g and depth are stored from here on */
	uint64_t end;	/* sp is the caller's again */
	uint8_t g;	/* offset from sp of where the goroutine is kept */
	uint8_t depth;	/* and of the depth on the goroutine's stack */
};

/* From a goroutine's stack, and from the thread's own. */
#define GOARCH_CALLS 2

/**
 * struct goswitch - where systemstack returns to the goroutine's stack
 * @back:  from this vaddr on sp is the goroutine's again
 * @g:     the code's way to its g: UNWIND_GO_*, or a register
 * @tls:   UNWIND_CFA_GO_CURG's cfa_off
 * @curg:  offset of curg in Go's runtime.m
 */
struct goswitch {
	uint64_t back;
	uint8_t g;
	int32_t tls;
	uint16_t curg;
};

struct goarch {
	uint8_t fp;	  /* register */
	int32_t injected; /* bytes below sp for the call that a signal handler pretends */
	int32_t popped;	  /* the only delta below 0 with a known rule; 0: none */
	/* The frame of a function whose instruction before @first allocates @delta bytes. */
	void (*frame)(const struct gocode *code, uint64_t first, int32_t delta,
		      struct goframe *ret);
	/* The rule at @pc, with the stack pointer @delta below its value at entry. */
	void (*rule)(const struct goframe *f, uint64_t pc, int32_t delta, struct unwind_rule *ret);
	/* The offset of the CFA from the frame pointer, from @fp_set on. */
	int32_t (*cfa_of_fp)(int32_t delta);
	/* Where the stack pointer has been set for the first time. GOARCH_NEVER if nowhere. */
	uint64_t (*sp_written)(const struct gocode *code);
	/* The start of the instruction that ends at @end and frees stack space. @end if unknown. */
	uint64_t (*gives_back)(const struct gocode *code, uint64_t end);
	/* In asmcgocall, ascending. Returns how many; 0 if none is found. */
	size_t (*cgo_calls)(const struct gocode *code, struct gocall ret[GOARCH_CALLS]);
	uint8_t cgo_sp; /* register with the caller's sp between @from and @start */
	/* For systemstack. False if not found. */
	bool (*come_back)(const struct gocode *code, struct goswitch *ret);
};

extern const struct goarch goarch_x86;
extern const struct goarch goarch_arm64;

#endif
