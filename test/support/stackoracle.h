/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STACKORACLE_H
#define PODPROF_TEST_SUPPORT_STACKORACLE_H

/*
 * Compares podprof's walker with elfutils' libdwfl. The oracle stops a running program again and
 * again, at arbitrary places, and unwinds the stack twice from the same registers and memory: by
 * libdwfl, and by the walker of bpf/lib with the tables of the agent. libdwfl knows all registers
 * in all frames and reads the files' unwind tables itself. Without a table libdwfl follows
 * unchecked frame pointers. From there on (generated code, Go's signal frames) libdwfl's frames are
 * guesses and counted separately.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "shared/sample.h"

struct stackoracle_opts {
	pid_t pid;
	bool family;	      /* also children in the same memory (vfork) */
	bool go;	      /* a Go program: libdwfl knows less, see below */
	unsigned int n_stops; /* each at another place, if possible */
	unsigned int n_steps; /* looks at each, an instruction apart */
	unsigned int n_shown; /* printed differences and truncated stacks */
	FILE *to;
};

/*
 * Frames count from the innermost one to libdwfl's last. A stack is complete if the walker reports
 * completeness and libdwfl has no further frame. A stack is short if the walker reports truncation
 * and all its frames are right.
 *
 * Go's tables lack changes of stacks, signal frames and outermost functions. In a Go program
 * libdwfl knows frames up to these places.
 */
struct stackoracle_report {
	uint64_t n_stacks;
	uint64_t n_frames;		 /* frames of libdwfl */
	uint64_t n_equal;		 /* equal frames */
	uint64_t n_guesses;		 /* libdwfl's guessed frames */
	uint64_t n_guessed;		 /* equal guessed frames */
	uint64_t n_complete;		 /* stacks */
	uint64_t n_short;		 /* by reason in n_ends */
	uint64_t n_different;		 /* stacks with a different frame */
	uint64_t n_further;		 /* complete stacks beyond libdwfl's last frame */
	uint64_t n_ends[SAMPLE_END_MAX]; /* of the walker, all stacks */
	uint64_t depth;			 /* the most frames */
};

/* Adds to @report. 0, or -errno; -ESRCH if the program has ended. */
int stackoracle_run(const struct stackoracle_opts *opts, struct stackoracle_report *report);

#endif
