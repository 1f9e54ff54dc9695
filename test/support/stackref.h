/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STACKREF_H
#define PODPROF_TEST_SUPPORT_STACKREF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/unwind.h"

struct elffile;
struct rows;

/*
 * A reference for unwinding: the stack of a stopped thread by the rows of its images, as plainly as
 * can be, from the rows' meaning (bpf/shared/unwind.h) and nothing else.
 */

#define STACKREF_FRAMES_MAX 1024
#define STACKREF_IMAGES_MAX 64
#define STACKREF_REGS	    33 /* by DWARF number, the larger machine's */

struct stackref_image {
	uint64_t start; /* pc */
	uint64_t limit;
	uint64_t bias; /* vaddr = pc - bias */
	char *path;
	struct elffile *file;
	struct rows *rows;
};

/* What a process has mapped with code. Borrowed by frames. */
struct stackref {
	pid_t pid;
	struct stackref_image images[STACKREF_IMAGES_MAX];
	size_t n;
};

struct stackref_regs {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	uint64_t numbered[STACKREF_REGS];
};

struct stackref_frame {
	uint64_t pc;
	uint64_t sp;
	bool is_return;			    /* pc is a return address: the call is before it */
	const struct stackref_image *image; /* NULL: none has the pc */
	uint64_t vaddr; /* of the pc that was looked up: one less after a call */
	struct unwind_rule rule;
};

enum stackref_end {
	STACKREF_COMPLETE, /* a row says that there is no caller, or the return address is 0 */
	STACKREF_NO_IMAGE,
	STACKREF_GAP,
	STACKREF_UNSUPPORTED,
	STACKREF_UNREADABLE,
	STACKREF_LOW, /* the stack went the wrong way */
	STACKREF_REGISTER,
	STACKREF_TOO_DEEP,
	STACKREF_END_MAX,
};

/* The process must not map more code while it is looked at. The test fails where it cannot be read.
 */
void stackref_open(struct stackref *ref, pid_t pid);
void stackref_close(struct stackref *ref);

/* The registers of a thread that ptrace has stopped. */
void stackref_registers(pid_t tid, struct stackref_regs *ret);
/* Innermost first. */
enum stackref_end stackref_unwind(const struct stackref *ref, const struct stackref_regs *regs,
				  struct stackref_frame frames[STACKREF_FRAMES_MAX], size_t *ret_n);
/* False where the process has no memory. */
bool stackref_read(const struct stackref *ref, uint64_t addr, void *ret, size_t n);

const char *stackref_end_name(enum stackref_end end);

#endif
