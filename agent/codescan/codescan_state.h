/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODESCAN_STATE_H
#define PODPROF_CODESCAN_CODESCAN_STATE_H

/*
 * What the two parts of codescan/codescan.h share, and nobody else includes: codescan.c finds where
 * functions begin, codescan_function.c follows one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codescan/codescan.h"
#include "codescan/codestate.h"

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
	CODE_BAD = 4,	    /* one was tried and not understood */
	CODE_INSIDE = 8,    /* of an instruction, behind its first byte */
	CODE_POINTED = 32,  /* data points here */
	CODE_NORETURN = 16, /* a function begins here that does not return */
};

struct codescan_way {
	uint32_t off;
	uint16_t state;
};

/* One executable segment. */
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
	uint16_t *state_at; /* index + 1 */

	struct codestate *states;
	size_t n_states, states_cap;
	uint16_t *slots; /* state's index + 1 by hash; CODESCAN_SLOTS of them */
	/* functions to look at */
	uint32_t *entries;
	size_t n_entries, entries_cap;
	/* the function at hand */
	struct codescan_way *ways;
	size_t n_ways, ways_cap;
	uint32_t *reached; /* its instructions */
	size_t n_reached, reached_cap;
	uint32_t first;
	uint32_t highest;		  /* end of its last instruction */
	uint16_t tables[CODESCAN_TABLES]; /* states of its jumps through tables */
	size_t n_tables;
	bool guessed; /* nothing told that it begins there */
	bool leaves;  /* it returns, or goes on as another function */
	bool returns; /* it was seen to, as functions do */
	bool frames;  /* sets the frame pointer to its frame */
	bool saves;   /* stores the caller's frame pointer */
	bool bad;
	bool lost;    /* some of it could not be followed */
	bool writing; /* what is found becomes rows */
	size_t n_noreturn;
	size_t n_frames, n_saves; /* functions */
};

/* False when enough has been done for this image. */
bool codescan_go_on(struct codescan *s);
/* A function begins at @vaddr, if nothing describes what is there. 0 or -ENOMEM. */
int codescan_add_entry(struct codescan *s, uint64_t vaddr);
/* Follow the function at @off; if @s->writing, add its rows. @guessed: nothing told that one begins
 * there. *@ret_good: it was one. 0, -ENOSPC, -errno. */
int codescan_function(struct codescan *s, uint32_t off, bool guessed, bool *ret_good);

#endif
