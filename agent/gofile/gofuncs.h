/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNCS_H
#define PODPROF_GOFILE_GOFUNCS_H

/* A few functions of a Go program by name, whether it has symbols or not. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct gomodule;

/* Names that can be asked for at once. Reached: -. */
#define GOFUNCS_NAMES_MAX 40

/**
 * struct gofuncs_one - what has one of the names
 * @named: the name is in the program: the linker keeps those of functions that can be reached
 * @entry: vaddr; 0 where the function has no code of its own, being inlined wherever it is called
 * @end:   vaddr of the next function, so there may be padding before it
 */
struct gofuncs_one {
	bool named;
	uint64_t entry;
	uint64_t end;
};

/**
 * gofuncs_find() - the functions that have these names, as Go's table has them
 * @ret: one for each name, in their order; zeros where there is none
 *
 * Reads the program's names, and its functions in the order of their code until all are found: the
 * runtime's come early.
 *
 * Return: 0; GOMODULE_MALFORMED; -errno. On everything but 0 @ret is undefined.
 */
int gofuncs_find(const struct elffile *file, const struct gomodule *module,
		 const char *const *names, size_t n, struct gofuncs_one *ret);

#endif
