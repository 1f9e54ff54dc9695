/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_JAVASAMPLING_H
#define PODPROF_TEST_SUPPORT_JAVASAMPLING_H

/* Samples of a Java program, and the functions in their stacks. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/sampler.h"
#include "support/goprocess.h"
#include "support/javas.h"
#include "support/sampling.h"

struct javasampling {
	struct sampling on;
	struct goprocess process;
	bool ended; /* no more names can be read */
};

/* What runs: see javas_run(). */
struct javasampling_program {
	const struct javas *javas;
	const char *path;
	const char *const *options;
	const char *name;
	const char *arg;
};

/* Runs the program and samples it until @enough(@opts.ctx), then until the walker has forgotten it.
 * @opts: rate and functions. The sampler stays for its metrics, until sampling_close(). */
void javasampling_run(struct javasampling *js, const struct javasampling_program *program,
		      struct cpu_sampler_opts opts, bool (*enough)(void *ctx));

/* A function of a stack. */
struct java_called {
	const char *name; /* "": a frame of another kind */
	const char *file;
	uint32_t line;
	bool is_guess;	    /* inlined at a place without debug information of its own ... */
	bool line_is_guess; /* ... or the function of that place */
};

#define JAVA_CALLED_MAX (CPU_STACK_FRAMES_MAX * 4)

/* The functions of a stack, outermost first, with the inlined ones. Returns their number. */
size_t javasampling_called(const struct cpu_stack *stack, struct java_called ret[JAVA_CALLED_MAX]);

#endif
