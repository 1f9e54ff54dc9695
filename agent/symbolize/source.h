/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SOURCE_H
#define PODPROF_SYMBOLIZE_SOURCE_H

/*
 * Sources of names for a file's code. To add a source, write a constant of this struct and add a
 * row to the list in lookup.c; nothing else knows the kinds.
 *
 * A source reads foreign files, which can block forever: it runs on a thread that may be abandoned
 * (symbolizer.h), and touches only its own data. A source that must wait for somebody else, as for
 * a download, does not block but answers SOURCE_LATER.
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;
struct symbol_line;
struct symbol_lines;

enum source_outcome {
	SOURCE_OK = 0,
	SOURCE_NONE,  /* open(): the file has no such names; find(): no name at this address */
	SOURCE_LATER, /* open(): not yet; asked again with the next addresses of the file */
};

/**
 * struct symbol_source - one kind of source
 * @open:  @file is borrowed and outlives the opened source. 0 with an opened source; an outcome;
 *         -ENOMEM
 * @find:  adds the functions at @vaddr, innermost first, with symbol_lines_add(). 0; SOURCE_NONE;
 *         -ENOMEM
 * @bytes: memory held by an opened source
 */
struct symbol_source {
	const char *name;
	int (*open)(const struct elffile *file, void **ret);
	int (*find)(void *opened, uint64_t vaddr, struct symbol_lines *lines);
	size_t (*bytes)(const void *opened);
	void (*free)(void *opened);
};

/* Copies the line's strings. Above a ceiling the line is left out. 0 or -ENOMEM. */
int symbol_lines_add(struct symbol_lines *lines, const struct symbol_line *line);

/* A Go program's line table, with inlined functions, files and lines. */
extern const struct symbol_source source_go;
/* The symbol table. */
extern const struct symbol_source source_symtab;

#endif
