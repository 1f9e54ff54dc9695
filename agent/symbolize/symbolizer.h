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

/**
 * struct symbolizer_opts - borrowed pointers must outlive the symbolizer
 * @proc:        for kallsyms
 * @cache_bytes: ceiling for symbol tables kept
 * @guarded:     files are read on a thread of the symbolizer's own. A read that blocks costs its
 *               file the names, and nothing else. Without it reads block the caller
 * @blocked_ns:  blocked time of such a read; 0: the watchdog's default
 * @sources:     of files' names, @n_sources; NULL: the usual ones
 */
struct symbolizer_opts {
	const struct root *proc;
	size_t cache_bytes;
	bool guarded;
	uint64_t blocked_ns;
	const struct symbol_source *const *sources;
	size_t n_sources;
};

struct root;
struct symbol_source;
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
/* Receives the symbol of address @i, in any order; its strings as in symbolizer_find(). */
typedef int (*symbolizer_fn)(void *ctx, size_t i, const struct symbol *symbol);
/* The same for @n addresses of one image: one exchange with the thread that reads files, for many
 * addresses. 0, -ENOMEM, or the first result of @fn that is not 0. */
int symbolizer_find_all(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx);
/* Read the kernel's names before the first report needs them: 70 ms of CPU time. */
void symbolizer_ahead(struct symbolizer *s);
/* Forget all strings handed out; tables are kept up to the ceiling. Call between reports. */
void symbolizer_release(struct symbolizer *s);
/* Reads of files that were abandoned so far. */
uint64_t symbolizer_blocked(const struct symbolizer *s);
size_t symbolizer_bytes(const struct symbolizer *s);

#endif
