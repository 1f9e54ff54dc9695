/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_WALKCASE_H
#define PODPROF_TEST_SUPPORT_WALKCASE_H

/*
 * A recorded stack with the walker's expected result: registers, the memory read, the mappings, the
 * rows of the code around each frame. The files are text, easy to read, shorten and write by hand;
 * test/data/walk has the cases, test/tools/walksave.c writes a case from a living process.
 *
 * A line each, numbers in hex, ADDRESS... ascending; "#" begins a comment:
 *
 *	machine x86-64              or aarch64; the first line
 *	unwind auto                 or fp, dwarf (--unwind)
 *	in_syscall                  the pc is after a system call's instruction (x86-64)
 *	reg NAME VALUE              rax to r15, rip, fs_base; x0 to x30, sp, pc; default 0
 *	map START LIMIT BIAS IMAGE  code; vaddr = pc - BIAS. "-" is code without an image
 *	row IMAGE START END RULE    as `podprof inspect unwind --rows` prints
 *	mem ADDRESS WORD...         of 8 bytes; gaps between near lines are zeros
 *	frame PC NAME               expected, innermost first; the name is for people
 *	end ok                      expected: as in podprof_samples_total
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/hostspace.h"
#include "unwind/cfi.h"

/* Limits of one file. */
#define WALKCASE_IMAGES	  32
#define WALKCASE_NAME	  64
#define WALKCASE_MAPPINGS 1024
#define WALKCASE_ROWS	  65536
#define WALKCASE_WORDS	  65536
#define WALKCASE_FRAMES	  640
#define WALKCASE_REGS	  33 /* by DWARF number */

struct walkcase_word {
	uint64_t address;
	uint64_t value;
};

struct walkcase_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t bias;
	uint32_t image; /* 0: none */
};

struct walkcase_row {
	uint64_t start;
	uint64_t end;
	uint32_t image;
	struct unwind_rule rule;
};

struct walkcase_frame {
	uint64_t pc;
	char name[WALKCASE_NAME];
};

struct walkcase {
	struct hostspace space; /* first */
	enum cfi_machine machine;
	uint32_t mode; /* enum settings_unwind */
	bool in_syscall;
	uint64_t pc;
	uint64_t regs[WALKCASE_REGS];
	uint64_t thread_pointer;
	char images[WALKCASE_IMAGES][WALKCASE_NAME]; /* by number; [0] is none */
	uint32_t n_images;
	struct walkcase_mapping *mappings;
	size_t n_mappings, mappings_cap;
	struct walkcase_row *rows;
	size_t n_rows, rows_cap;
	struct walkcase_word *words;
	size_t n_words, words_cap;
	struct walkcase_frame *frames;
	size_t n_frames, frames_cap;
	uint32_t end; /* enum sample_end; SAMPLE_END_MAX: there is no such line */
};

/* The result of a walk. */
struct walkcase_stack {
	uint64_t pcs[WALKCASE_FRAMES];
	size_t n;
	uint32_t end;
};

/* Outcome of walkcase_read(): the error of a line or of the file. */
enum walkcase_outcome {
	WALKCASE_OK = 0,
	WALKCASE_MACHINE, /* not the first line, or not known */
	WALKCASE_WORD,	  /* unknown first word of a line */
	WALKCASE_NUMBER,  /* too few, too many or invalid numbers */
	WALKCASE_NAMED,	  /* an unknown register, image, mode or end */
	WALKCASE_RULE,
	WALKCASE_ORDER,	  /* not ascending */
	WALKCASE_FULL,	  /* beyond one of the limits above */
	WALKCASE_LONG,	  /* a line is */
	WALKCASE_NOTHING, /* no frames or no end: nothing is expected */
	WALKCASE_TABLE,	  /* the rows cannot be packed */
	WALKCASE_OUTCOME_MAX,
};

/* Read a file. 0; -errno; an outcome, with the number of the line (0: the whole) in @ret_line. */
int walkcase_read(int fd, struct walkcase **ret, size_t *ret_line);
int walkcase_load(const char *path, struct walkcase **ret, size_t *ret_line);
void walkcase_free(struct walkcase *c);
const char *walkcase_outcome_name(int outcome);

/* With the walker of the file's machine, on any machine. */
void walkcase_walk(struct walkcase *c, struct walkcase_stack *ret);
/* One walker for each machine. */
void walkcase_walk_x86(struct walkcase *c, struct walkcase_stack *ret);
void walkcase_walk_arm64(struct walkcase *c, struct walkcase_stack *ret);

#endif
