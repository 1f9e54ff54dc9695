/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_RUNTIME_V8_ARCH_BPF_H
#define PODPROF_BPF_LIB_RUNTIME_V8_ARCH_BPF_H

/*
 * The beginning and the end of V8's code, by machine. Each of the files included here has
 *
 *	V8_CLOSURE	the unwind tables' number of the register with the function at its beginning
 *	V8_LEFT_BYTES	from the stack pointer of V8_POPPED down to where the frame pointer led
 *	v8_edge()	where in a function the place of interruption is: enum v8_edge
 *	v8_frameless()	the plan of V8_PUSHES, V8_POPPED and V8_DROPPED
 */

#include "lib/regs_arch.bpf.h"
#include "lib/runtime_plan.bpf.h"

/* At the places before the frame pointer is set, or the function is in its slot. */
enum v8_edge {
	V8_WHOLE,
	V8_PUSHES,  /* the frame pointer is pushed next, or soon */
	V8_PUSHED,  /* ... is pushed, and set next */
	V8_PENDING, /* ... is set; the function is not pushed */
	V8_POPPED,  /* nothing but the return address is left, and the frame below it */
	V8_DROPPED, /* nothing but the return address is left */
	V8_EDGES = 7,
	/* with one of the first three: */
	V8_OF_JS = 8,	  /* of a function */
	V8_OF_OTHER = 16, /* of other code; with the marker in bits 15..8 */
};

#if defined(__TARGET_ARCH_x86)
#include "lib/runtime_v8_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lib/runtime_v8_arm64.bpf.h"
#endif

#endif
