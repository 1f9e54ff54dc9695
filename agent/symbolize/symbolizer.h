/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SYMBOLIZER_H
#define PODPROF_SYMBOLIZE_SYMBOLIZER_H

/*
 * image + vaddr to names. Owned by one thread at a time (the report worker's, or a command's).
 * Keeps symbol tables by image under a ceiling, with eviction of the least used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"

/* Inlined functions at one address; deeper levels are left out. Reached: the outermost are
 * missing. */
#define SYMBOL_LINES_MAX 64

/* A function, possibly inlined, at an address. Strings are borrowed, see below. */
struct symbol_line {
	const char *function; /* for people: demangled; "image+0xoff" where nothing is known */
	const char
		*system_name; /* the name in the file; the same string if there is no difference */
	const char *file;     /* "" if not known */
	uint32_t line;	      /* 0 if not known */
	uint32_t start_line;  /* of the function; 0 if not known */
	bool inlined;	      /* call site in the next line's function */
};

/* All functions at one address, innermost first; at least one. */
struct symbol {
	struct symbol_line lines[SYMBOL_LINES_MAX];
	size_t n_lines;
	bool found; /* false: the only line is "image+0xoff" */
};

struct symbolizer_opts {
	const struct root *proc; /* for kallsyms; borrowed */
	size_t cache_bytes;	 /* ceiling for symbol tables kept */
};

struct root;
struct symbolizer;

int symbolizer_new(const struct symbolizer_opts *opts, struct symbolizer **ret);
void symbolizer_free(struct symbolizer *s);

/**
 * symbolizer_find() - names at an address
 * @vaddr: the address of the instruction: the caller has subtracted 1 from a return address
 * @ret:   its strings are the symbolizer's and live until symbolizer_release()
 *
 * Return: 0 or -ENOMEM. Any problem with the file gives "image+0xoff".
 */
int symbolizer_find(struct symbolizer *s, const struct frame *frame, struct symbol *ret);
/* Read the kernel's names before the first report needs them: 70 ms of CPU time. */
void symbolizer_ahead(struct symbolizer *s);
/* Forget all strings handed out; tables are kept up to the ceiling. Call between reports. */
void symbolizer_release(struct symbolizer *s);
size_t symbolizer_bytes(const struct symbolizer *s);

#endif
