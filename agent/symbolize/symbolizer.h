/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SYMBOLIZER_H
#define PODPROF_SYMBOLIZE_SYMBOLIZER_H

/*
 * image + vaddr to names. Owned by a single thread at a time (the report worker's, or a command's).
 * Keeps symbol tables by image under a ceiling, with eviction of the least recently used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"

/* Inlined functions at an address; deeper levels are left out. Reached: the outermost are
 * missing. */
#define SYMBOL_LINES_MAX 64

/* A function, possibly inlined, at an address. Strings are borrowed, see below. */
struct symbol_line {
	const char *function; /* for people: demangled; a placeholder where nothing is known */
	const char
		*system_name; /* the name in the file; the same string if there is no difference */
	const char *file;     /* "" if not known */
	uint32_t line;	      /* 0 if not known */
	uint32_t column;      /* 0 if not known */
	uint32_t start_line;  /* of the function; 0 if not known */
	bool inlined;	      /* call site in the next line's function */
};

/* Why an address has no name. */
enum symbol_missing {
	SYMBOL_NAMED = 0,
	SYMBOL_STRIPPED,	  /* the file has no symbol table and no debug file was found */
	SYMBOL_NO_SYMBOL,	  /* the symbol table has no function there */
	SYMBOL_AWAITS_DEBUG_FILE, /* a server is asked for the debug file */
	SYMBOL_TRUNCATED_ELF,	  /* an ELF file whose headers or tables leave the file */
	SYMBOL_UNREADABLE_ELF,	  /* no ELF file, or no 64-bit one */
	SYMBOL_DENIED,		  /* the agent may not open the file */
	SYMBOL_NOT_OPENED,	  /* gone, or not opened yet */
	SYMBOL_OVERWRITTEN,	  /* another content was written into the file */
	SYMBOL_SLOW_FILE,	  /* the file blocked a reader */
	SYMBOL_OVER_BUDGET,	  /* the file, or the whole report, takes too much work */
	SYMBOL_NO_PERF_MAP,	  /* compiled code of a process without a perf map or jitdump */
	SYMBOL_NOT_IN_PERF_MAP,	  /* ... with one that lacks this function */
	SYMBOL_NO_MAPPING,	  /* no known mapping has the address */
	SYMBOL_KERNEL_HIDDEN,	  /* the agent does not see the kernel's addresses */
	SYMBOL_NOT_IN_KERNEL,	  /* the kernel lists no function there */
	SYMBOL_RUNTIME,		  /* frames of a language runtime that could not be read */
	SYMBOL_MISSING_MAX,
};

/* "stripped_no_debug", ...; NULL for SYMBOL_NAMED. */
extern const char *const symbol_missing_names[SYMBOL_MISSING_MAX];

/* All functions at an address, innermost first; not empty. */
struct symbol {
	struct symbol_line lines[SYMBOL_LINES_MAX];
	size_t n_lines;
	bool found; /* false: the only line is a placeholder */
	enum symbol_missing missing;
};

/**
 * struct symbolizer_opts - borrowed pointers must outlive the symbolizer
 * @proc:        for kallsyms and debug files; NULL: without both
 * @cache_bytes: ceiling for symbol tables kept
 * @guarded:     read files on a separate thread: a blocked read costs the names of this file only.
 *               Otherwise a blocked read blocks the caller
 * @blocked_ns:  blocked time of such a read; 0: the watchdog's default
 * @report_ns:   CPU time of all lookups between two symbolizer_release(); 0: any. Above it,
 *               addresses have no names
 * @dwarf:       read DWARF, in a process of its own; NULL: not. Copied
 * @debuginfod:  servers that have debug files; NULL: none. A reference is taken
 * @sources:     the @n_sources symbol sources of files; NULL: the usual ones
 */
struct symbolizer_opts {
	const struct root *proc;
	size_t cache_bytes;
	bool guarded;
	uint64_t blocked_ns;
	uint64_t report_ns;
	const struct dwarfreader_opts *dwarf;
	struct debuginfod *debuginfod;
	const struct symbol_source *const *sources;
	size_t n_sources;
};

struct debuginfod;
struct dwarfreader_opts;
struct root;
struct symbol_source;
struct symbolizer;

int symbolizer_new(const struct symbolizer_opts *opts, struct symbolizer **ret);
void symbolizer_free(struct symbolizer *s);

/**
 * symbolizer_find() - names at an address
 * @vaddr: the address of the instruction: the caller has subtracted 1 from a return address
 * @ret:   the strings are the symbolizer's and live until symbolizer_release()
 *
 * Return: 0 or -ENOMEM. Any problem with the file gives the placeholder "image+0xVADDR", with the
 * start of the function if known. Others: "[kernel]", "[unknown]", the name of anonymous memory.
 */
int symbolizer_find(struct symbolizer *s, const struct frame *frame, struct symbol *ret);
/* Receives the symbol of address @i, in ascending order; strings as in symbolizer_find(). */
typedef int (*symbolizer_fn)(void *ctx, size_t i, const struct symbol *symbol);
/* The same for @n addresses of an image, with a single exchange with the reading thread. 0,
 * -ENOMEM, or the first result of @fn other than 0. */
int symbolizer_find_all(struct symbolizer *s, struct image *image, const uint64_t *vaddrs, size_t n,
			symbolizer_fn fn, void *ctx);
/* Distinct addresses of an image. */
struct symbolizer_addresses {
	struct image *image;
	const uint64_t *vaddrs;
	size_t n;
};
/*
 * Find names that later calls will ask for, of @n distinct files and vDSOs, with as few exchanges
 * with the reading thread as possible: on a busy node each exchange takes a tenth of a second.
 * Answers that may change are not kept; symbolizer_find_all() then asks again. 0 or -ENOMEM.
 */
int symbolizer_learn(struct symbolizer *s, const struct symbolizer_addresses *files, size_t n);
/* Receives a source of a file's names, the best first, and the bytes held in memory.
 * @is_present: the file has such names. */
typedef int (*symbolizer_source_fn)(void *ctx, const char *name, bool is_present, size_t bytes);
/**
 * struct symbolizer_state - the names of a file as a whole
 * @missing:    why an address without a name has none
 * @debug_file: path of the separate debug file, as the kernel shows it; "": none
 */
struct symbolizer_state {
	enum symbol_missing missing;
	char debug_file[PATH_MAX];
};
/* Opens the sources of @image. 0 or -ENOMEM. */
int symbolizer_state(struct symbolizer *s, struct image *image, struct symbolizer_state *ret);
/* The separate debug file of @image, if earlier calls have found one and its tables are in the
 * cache; else -1. Borrowed until the next call for any image. */
int symbolizer_debug_fd(const struct symbolizer *s, const struct image *image);
/* Opens the sources of @image; @fn may be NULL. 0, -ENOMEM, or the first result of @fn that is not
 * 0. */
int symbolizer_sources(struct symbolizer *s, struct image *image, symbolizer_source_fn fn,
		       void *ctx);
/* Read the kernel's names before the first report needs them: 70 ms of CPU time. */
void symbolizer_ahead(struct symbolizer *s);
/* Until the next call, all waiting for DWARF takes no longer than @dwarf_ns: half of it until the
 * first symbolizer_release(), then no longer than the reader's patience between two releases.
 * Without a call there is no common limit. */
void symbolizer_begin(struct symbolizer *s, uint64_t dwarf_ns);
/* Free all returned strings; tables are kept up to the ceiling. Call between reports. */
void symbolizer_release(struct symbolizer *s);
/* First and later reads of files for names: once for each file, until the table is evicted. */
enum symbol_read {
	SYMBOL_READ_OK,
	SYMBOL_READ_ABSENT,    /* the file has no names */
	SYMBOL_READ_ABANDONED, /* the file takes too much work: not again for half an hour */
	SYMBOL_READ_SLOW,      /* blocked */
	SYMBOL_READ_MAX,
};
/* By outcome, so far: SYMBOL_READ_MAX numbers, borrowed. */
const uint64_t *symbolizer_reads(const struct symbolizer *s);
extern const char *const symbol_read_names[SYMBOL_READ_MAX];
/* Events of perf maps so far: PERF_MAP_EVENT_MAX numbers (symbolize/perf_map.h), borrowed. */
const uint64_t *symbolizer_perf_map_events(const struct symbolizer *s);
/* The same of jitdumps: JITDUMP_EVENT_MAX numbers (symbolize/jitdump.h). */
const uint64_t *symbolizer_jitdump_events(const struct symbolizer *s);
/* Requests for DWARF by outcome, so far: DWARFREADER_OUTCOME_MAX numbers (dwarfreader.h). */
void symbolizer_dwarf_counts(const struct symbolizer *s, uint64_t *ret);
/* From any thread, for good: addresses without a name so far have none, so that a report ends soon.
 * Known answers stay. Only with @guarded. */
void symbolizer_stop(struct symbolizer *s);
size_t symbolizer_bytes(const struct symbolizer *s);

#endif
