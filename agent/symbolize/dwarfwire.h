/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFWIRE_H
#define PODPROF_SYMBOLIZE_DWARFWIRE_H

/*
 * Requests and answers between podprof and its process that reads DWARF (dwarfreader.h). Both run
 * the same program on one machine, so numbers have the machine's form. A request's fields are
 * podprof's own; an answer is foreign, because a file may have taken over the process.
 *
 *	request  struct dwarfwire_request with the files' descriptors, then n_addresses uint64_t
 *	answer   struct dwarfwire_answer, then n_bytes:
 *	         uint32_t n_strings; of each: uint16_t length, bytes
 *	         of each address: uint8_t n_lines; of each: struct dwarfwire_line;
 *	           or DWARFWIRE_LEFT: the time for the request was over
 *	         of each wanted file of split DWARF: uint32_t unit, uint64_t id,
 *	           uint16_t length, path
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"

struct symbol_line;

/* Descriptors of a request: the file with DWARF, and its alternate file. Reached: - */
#define DWARFWIRE_FILES_MAX   2
/* Files of split DWARF (.dwo) for one file, each of a compile unit with sampled addresses. Reached:
 * the code of other units has the functions of the symbol table. */
#define DWARFWIRE_SPLITS_MAX  128
#define DWARFWIRE_DESCRIPTORS (DWARFWIRE_FILES_MAX + DWARFWIRE_SPLITS_MAX)
/* Bytes of an answer: 1,024 addresses of 5 functions take 200 KB. Reached: the names of the other
 * addresses come from other sources. */
#define DWARFWIRE_ANSWER_MAX  (8u << 20)
/* Instead of a number of lines. */
#define DWARFWIRE_LEFT	      UINT8_MAX
/* Bytes of a name or path. Reached: counts as missing. */
#define DWARFWIRE_STRING_MAX  16384u

/**
 * struct dwarfwire_request - addresses of a file
 * @file:     number of the file, not used for another file
 * @n_files:  descriptors that come along
 * @n_splits: descriptors behind these, of split DWARF for the units with the numbers @units
 */
struct dwarfwire_request {
	uint64_t file;
	uint32_t id;
	uint32_t n_addresses;
	uint32_t n_files;
	uint32_t n_splits;
	uint32_t units[DWARFWIRE_SPLITS_MAX];
};

enum dwarfwire_status {
	DWARFWIRE_OK = 0,
	DWARFWIRE_NO_DWARF, /* libdw cannot read the file */
	DWARFWIRE_STATUS_MAX,
};

/* @id is that of the request, @status an enum dwarfwire_status. @retires: the process wants to be
 * replaced (0 or 1). */
struct dwarfwire_answer {
	uint32_t id;
	uint32_t status;
	uint32_t n_bytes;
	uint32_t retires;
};

/* Strings by number; an unknown name is string 0, which is empty. */
struct dwarfwire_line {
	uint32_t function;
	uint32_t file;
	uint32_t line;
	uint32_t column;
	uint32_t start_line;
};

/* An answer's bytes, address by address. */
struct dwarfwire_reader {
	struct arena memory; /* of the strings */
	const char **strings;
	uint32_t n_strings;
	struct cursor left;
};

enum dwarfwire_outcome {
	DWARFWIRE_READ = 0,
	DWARFWIRE_MALFORMED,
	DWARFWIRE_NOT_ASKED, /* the address is to be asked for again */
};

/* Reads the strings and borrows the rest of @bytes. 0, DWARFWIRE_MALFORMED, -ENOMEM. */
int dwarfwire_reader_init(struct dwarfwire_reader *reader, const void *bytes, size_t n);
void dwarfwire_reader_deinit(struct dwarfwire_reader *reader);
/* The lines of the next address, innermost first, none empty, and in *@ret_n the number;
 * their strings, valid UTF-8, live as long as the reader. @ret has SYMBOL_LINES_MAX items. 0,
 * DWARFWIRE_NOT_ASKED, DWARFWIRE_MALFORMED. */
int dwarfwire_next(struct dwarfwire_reader *reader, struct symbol_line *ret, size_t *ret_n);

/* A file of split DWARF that the process needs for a compile unit. */
struct dwarfwire_wanted {
	uint32_t unit;
	uint64_t id;	  /* of the unit in a package */
	const char *path; /* absolute; or "": only a package may have the unit */
};
/* After the last address: the next wanted file; the path lives as long as the reader. False: none,
 * or malformed. */
bool dwarfwire_wanted(struct dwarfwire_reader *reader, struct dwarfwire_wanted *ret);

#endif
