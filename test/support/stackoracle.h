/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STACKORACLE_H
#define PODPROF_TEST_SUPPORT_STACKORACLE_H

/*
 * Our walker against another one: a running program is stopped again and again, wherever it happens
 * to be, and its stack is unwound by elfutils' libdwfl and by the walker of bpf/lib with the tables
 * that the agent would make, from the same registers and memory. libdwfl knows all registers in all
 * frames and reads the files' unwind tables for itself. Where a file says nothing it follows frame
 * pointers, unchecked: from there on (code made at run time, Go's signal frames) its frames are
 * guesses, which are counted apart.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "shared/sample.h"

struct stackoracle_opts {
	pid_t pid;
	bool family;	      /* its children too, if they are in its memory (vfork) */
	bool go;	      /* a Go program, of which libdwfl knows less, see below */
	unsigned int n_stops; /* each at another place, as far as the program has them */
	unsigned int n_steps; /* looks at each, an instruction apart */
	unsigned int n_shown; /* differences, and stacks that end early, that are printed */
	FILE *to;
};

/*
 * Frames are counted from the innermost one, as far as libdwfl goes. A stack is complete if the
 * walker says so and libdwfl knows of no frame more; it is short if the walker says why it ends
 * early and all that it has is right.
 *
 * Go's tables do not tell libdwfl where Go changes stacks, which frames a signal made, and which
 * functions nobody has called: of a Go program it knows frames up to those.
 */
struct stackoracle_report {
	uint64_t n_stacks;
	uint64_t n_frames;		 /* that libdwfl knows */
	uint64_t n_equal;		 /* of them */
	uint64_t n_guesses;		 /* its other ones */
	uint64_t n_guessed;		 /* of them, that are equal */
	uint64_t n_complete;		 /* stacks */
	uint64_t n_short;		 /* by reason in n_ends */
	uint64_t n_different;		 /* stacks in which a frame is another one */
	uint64_t n_further;		 /* complete stacks whose end libdwfl did not reach */
	uint64_t n_ends[SAMPLE_END_MAX]; /* of the walker, all stacks */
	uint64_t depth;			 /* the most frames */
};

/* Adds to @report. 0, or -errno; -ESRCH if the program has ended. */
int stackoracle_run(const struct stackoracle_opts *opts, struct stackoracle_report *report);

#endif
