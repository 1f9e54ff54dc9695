/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SOURCE_H
#define PODPROF_SYMBOLIZE_SOURCE_H

/*
 * Sources of names for a file's code. To add a source, write a constant of struct symbol_source and
 * add a row to the list in lookup.c; no other code lists the kinds.
 *
 * A source reads foreign files, and a read can block forever. So the source runs on a thread that
 * may be abandoned (symbolizer.h), and touches no data of other threads. If a source must wait for
 * a download or another process, the source does not block but returns SOURCE_LATER. The file has a
 * work budget.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"

struct debugfile;
struct debuginfod;
struct dwarfreader;
struct elffile;
struct root;
struct symbol_line;
struct symbol_lines;
struct work_budget;

/**
 * struct source_file - the file that a source is for, or the memory of a process
 * @elf:      NULL for memory
 * @build_id: lower-case hex; "" if there is none
 * @path:     as a process sees it
 * @proc:     for files beside @path; may be NULL
 * @pid:      a process with the file mapped; {0}: none is known
 * @work:     the work budget; @elf has the same
 * @began_ns: boot clock; when the program of @pid began; 0: with @pid
 * @wall_at_boot_ns: wall_at_boot() when the program was first seen; 0: not known
 * @perf_map: descriptor of the perf map of @pid, or -1; the source may read the map at any time
 * @perf_map_events: counters by enum perf_map_event, as long as the source is open
 * @jitdump:  the jitdump of @pid, or -1; the same
 * @jitdump_events: counters by enum jitdump_event, the same
 * @dwarf:    NULL: DWARF is not read
 * @debug:    the separate debug file, opened by the first source that asks; outlives the sources
 * @debuginfod: servers that have debug files; NULL: none
 */
struct source_file {
	const struct elffile *elf;
	const char *build_id;
	const char *path;
	const struct root *proc;
	struct pid_id pid;
	uint64_t began_ns;
	uint64_t wall_at_boot_ns;
	struct work_budget *work;
	int perf_map;
	uint64_t *perf_map_events;
	int jitdump;
	uint64_t *jitdump_events;
	struct dwarfreader *dwarf;
	struct debugfile *debug;
	struct debuginfod *debuginfod;
};

enum source_outcome {
	SOURCE_OK = 0,
	SOURCE_NONE,	  /* open(): the file has no such names; find(): no name at this address */
	SOURCE_LATER,	  /* open(): not yet; asked again with the next addresses of the file */
	SOURCE_ABANDONED, /* open(): the file takes too much work; a part may be opened */
};

/**
 * struct symbol_source - a kind of source
 * @only_starts: the source gives starts of functions without names
 * @open:  the objects behind the pointers of @file are borrowed and outlive the opened source;
 *         @file itself does not. 0 with an opened source; SOURCE_ABANDONED with an opened source,
 *         or with @ret untouched; another outcome; -ENOMEM
 * @refresh: reads new contents, before each batch of addresses; NULL: the contents do not change. 0
 *           or -ENOMEM
 * @prepare: called before find(), with all addresses without a name from the sources before. May be
 *           NULL. 0 or -ENOMEM
 * @find:  adds the functions at @vaddr, innermost first, with symbol_lines_add(), or tells only
 *         the start of the function, with symbol_lines_start(). 0; SOURCE_NONE; -ENOMEM
 * @is_final: whether find() gives the same answer for @vaddr from now on; NULL: always. Not called
 *            for a source with refresh(), whose answers are never final
 * @settle: after each batch of addresses: frees the memory that neighbouring addresses share, such
 *          as blocks of the file. NULL: there is none
 * @bytes: memory held by an opened source
 * @any:   whether the opened source has names now; NULL: always
 */
struct symbol_source {
	const char *name;
	int (*open)(const struct source_file *file, void **ret);
	int (*refresh)(void *opened, const struct source_file *file);
	int (*prepare)(void *opened, const uint64_t *vaddrs, size_t n);
	int (*find)(void *opened, uint64_t vaddr, struct symbol_lines *lines);
	bool (*is_final)(void *opened, uint64_t vaddr);
	void (*settle)(void *opened);
	size_t (*bytes)(const void *opened);
	bool (*any)(const void *opened);
	void (*free)(void *opened);
	bool only_starts;
};

/* Copies the line's strings. Above a ceiling the line is left out. 0 or -ENOMEM. */
int symbol_lines_add(struct symbol_lines *lines, const struct symbol_line *line);

/* The answer is the @n functions of @from, whose strings, valid UTF-8, the source keeps until its
 * next prepare() or free(). Above a ceiling there is no answer. 0 or -ENOMEM. */
int symbol_lines_borrow(struct symbol_lines *lines, const struct symbol_line *from, size_t n);

/* The outermost function of the answer gets the name of the next source with a name for the
 * address. Symbol tables have the names of clones, and of code without DWARF. */
void symbol_lines_rename(struct symbol_lines *lines);

/* The function without a name begins at @vaddr. */
void symbol_lines_start(struct symbol_lines *lines, uint64_t vaddr);

/* A Go program's line table, with inlined functions, files and lines. */
extern const struct symbol_source source_go;
/* Inlined functions, files and lines of compilers. */
extern const struct symbol_source source_dwarf;
/* The symbol table of the separate debug file of a stripped file. */
extern const struct symbol_source source_debugfile;
/* The symbol tables .symtab and .dynsym. */
extern const struct symbol_source source_symtab;
/* The symbol table in .gnu_debugdata. */
extern const struct symbol_source source_debugdata;
/* Stubs that call functions of other files: "name@plt". */
extern const struct symbol_source source_plt;
/* Starts of functions in the unwind table, without names. */
extern const struct symbol_source source_ehframe;
/* The jitdump of a process, and the perf map: for code in memory, of no file. */
extern const struct symbol_source source_jitdump;
extern const struct symbol_source source_perf_map;

#endif
