/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODEFUNCTION_H
#define PODPROF_CODESCAN_CODEFUNCTION_H

/*
 * The scan of an image's code, and following one function in it. codescan.c chooses the functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codescan/codescan.h"
#include "codescan/codestate.h"
#include "codescan/insn.h"

/* Different states of one function's jumps through tables. */
#define CODESCAN_TABLES	    4
/* Slots by hash. */
#define CODESCAN_SLOTS	    ((size_t)2 * CODESCAN_STATES_MAX)
/* Entries of a list: more than any image can have. */
#define CODESCAN_EVERYTHING ((size_t)1 << 26)

/* Of each byte. */
enum {
	CODE_GAP = 1,	    /* nothing describes this byte */
	CODE_ENTRY = 2,	    /* a function begins here */
	CODE_BAD = 4,	    /* an attempt at a function here failed */
	CODE_FOLLOWED = 8,  /* of an instruction of a function; first bytes have a state, too */
	CODE_POINTED = 32,  /* data points here */
	CODE_NORETURN = 16, /* a function without a return begins here */
};

struct codescan_way {
	uint32_t off;
	uint16_t state;
};

/* Instructions of a path, one after the other, in [@off, @end). */
struct codescan_run {
	uint32_t off;
	uint32_t end;
};

/* The beginning of a range, or a place in it where the state changes. */
struct codescan_line {
	uint32_t off;
	uint32_t end;	/* of the range; or 0 */
	uint16_t state; /* as in state_at; not of a range */
};

/* An image, window by window: gaps near each other, with the code between them. */
struct codescan {
	const struct elffile *file;
	struct rows *rows;
	struct codescan_stats *stats;
	insn_decode_fn *decode;
	enum cfi_machine machine;
	uint64_t vaddr; /* of code[0] */
	uint8_t *code;
	size_t n;
	uint8_t *flags;	    /* CODE_*, for each byte */
	uint16_t *state_at; /* index + 1, for first bytes of instructions; 0 for others */
	uint8_t *plain;	    /* length of the plain instruction here; 0: not known to be one */

	/* of all windows */
	struct codestate *states;
	size_t n_states, states_cap;
	uint16_t *slots; /* state's index + 1 by hash; CODESCAN_SLOTS entries */
	/* functions to look at */
	uint32_t *entries;
	size_t n_entries, entries_cap;
	size_t n_scanned; /* entries looked at in this round */
	/* the function at hand */
	struct codescan_way *ways;
	size_t n_ways, ways_cap;
	struct codescan_run *runs; /* its instructions */
	size_t n_runs, runs_cap;
	struct codescan_line *lines; /* of all good functions, for rows */
	size_t n_lines, lines_cap;
	uint32_t first;
	uint32_t highest;		  /* end of its last instruction */
	uint16_t tables[CODESCAN_TABLES]; /* states of its jumps through tables */
	size_t n_tables;
	bool guessed;  /* the entry is a guess */
	bool leaves;   /* it returns, or continues as another function */
	bool returns;  /* a return was seen */
	bool frames;   /* sets the frame pointer to its frame */
	bool saves;    /* stores the caller's frame pointer */
	bool clobbers; /* sets the frame pointer without having stored the caller's */
	bool bad;
	bool lost; /* a part could not be followed */
	size_t n_noreturn;
	/* functions of this round */
	size_t n_frames, n_saves, n_good, n_dropped;
};

/* A flag of one byte times this is the flag of eight. */
#define CODE_EACH_BYTE 0x0101010101010101ull

static inline bool codescan_inside(const struct codescan *s, uint64_t vaddr)
{
	return vaddr >= s->vaddr && vaddr - s->vaddr < s->n;
}

/* Counts @n steps. False when enough has been done for this image. */
bool codescan_steps(struct codescan *s, uint32_t n);
/* Adds a function at @vaddr, if the code there is undescribed. 0 or -ENOMEM. */
int codescan_add_entry(struct codescan *s, uint64_t vaddr);
/* Follows the function at @off and adds its lines. @guessed: the entry is a guess. *@ret_good: it
 * was a function. 0, -errno. */
int codescan_function(struct codescan *s, uint32_t off, bool guessed, bool *ret_good);
/* Writes the lines as rows, and counts the functions. 0, -ENOSPC, -errno. */
int codescan_write(struct codescan *s);
/* Forgets all functions, except that they are there and whether they return. */
void codescan_forget_all(struct codescan *s);

#endif
