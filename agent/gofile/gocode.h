/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOCODE_H
#define PODPROF_GOFILE_GOCODE_H

/*
 * What Go's tables say of a function's stack: values that gofile/gopcsp reads and unwind/gorows
 * makes rows of.
 */

#include <stddef.h>
#include <stdint.h>

/* Bytes of a name that are kept, with the NUL: enough for the runtime's own functions. Reached:
 * cut. */
#define GOCODE_NAME_MAX 64

/* What the linker knows about a function (since 1.17; 0 before). */
enum gocode_flag {
	GOCODE_TOP_FRAME = 1, /* it has no caller */
	GOCODE_SP_WRITE = 2,  /* it sets the stack pointer in a way that its table does not tell */
	GOCODE_ASSEMBLY = 4,  /* since 1.18 */
};

/* From @start on to the next one, or to the end of the function. */
struct gocode_step {
	uint64_t start; /* vaddr */
	int32_t delta;	/* bytes that the stack pointer is below its value at entry */
};

/**
 * struct gocode_func - one function
 * @entry:   vaddr
 * @end:     vaddr: where the next one begins, so there may be padding before it
 * @flags:   enum gocode_flag
 * @name:    cut to its room; "" for most: only those that have a flag, or a number that marks
 *           special functions, and all in files of Go 1.16 and 1.17, which has few flags
 * @steps:   ascending, the first at @entry; none if the function has no table. Borrowed.
 * @n_steps: of them
 */
struct gocode_func {
	uint64_t entry;
	uint64_t end;
	uint8_t flags;
	char name[GOCODE_NAME_MAX];
	const struct gocode_step *steps;
	size_t n_steps;
};

#endif
