/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOCODE_H
#define PODPROF_GOFILE_GOCODE_H

/*
 * The stack data of a Go function: values read by gofile/gopcsp and converted to rows by
 * unwind/gorows.
 */

#include <stddef.h>
#include <stdint.h>

/* Bytes kept of a name, with the NUL: enough for the runtime's own functions. Reached: cut. */
#define GOCODE_NAME_MAX 64

/* The linker's facts about a function (since 1.17; 0 before). */
enum gocode_flag {
	GOCODE_TOP_FRAME = 1, /* has no caller */
	GOCODE_SP_WRITE = 2,  /* sets the stack pointer to a value outside of the table */
	GOCODE_ASSEMBLY = 4,  /* since 1.18 */
};

/* Valid from @start to the next step, or to the end of the function. */
struct gocode_step {
	uint64_t start; /* vaddr */
	int32_t delta;	/* bytes of the stack pointer below the value at entry */
};

/**
 * struct gocode_func - a function
 * @entry:   vaddr
 * @end:     vaddr of the next function, so there may be padding before @end
 * @flags:   enum gocode_flag
 * @name:    cut to GOCODE_NAME_MAX. Set for functions with a flag or a number of special functions,
 *           and for all functions in files of Go 1.16 and 1.17 with their few flags; "" for the
 *           rest, the majority
 * @steps:   ascending, the first at @entry; none if the function has no table. Borrowed.
 * @n_steps: number of steps
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
