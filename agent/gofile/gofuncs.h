/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNCS_H
#define PODPROF_GOFILE_GOFUNCS_H

/* Finds a few functions of a Go program by name, with or without symbols. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct gomodule;

/* Names in a single call. Reached: -. */
#define GOFUNCS_NAMES_MAX 40

/**
 * struct gofuncs_one - the function with a requested name
 * @named: the program contains the name: the linker keeps the names of reachable functions
 * @entry: vaddr; 0 if the function has no code of its own, because every call is inlined
 * @end:   vaddr of the next function, so there may be padding before @end
 */
struct gofuncs_one {
	bool named;
	uint64_t entry;
	uint64_t end;
};

/**
 * gofuncs_find() - find functions by name in Go's table
 * @ret: one for each name, in the same order; zeros for a name without a function
 *
 * Reads the program's names, and then the functions in the order of their code until all are found.
 * The runtime's functions come early.
 *
 * Return: 0; GOMODULE_MALFORMED; -errno. On everything except 0 @ret is undefined.
 */
int gofuncs_find(const struct elffile *file, const struct gomodule *module,
		 const char *const *names, size_t n, struct gofuncs_one *ret);

#endif
