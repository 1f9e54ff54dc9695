/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNC_H
#define PODPROF_GOFILE_GOFUNC_H

/*
 * The two structures of Go's function table: entries (address of the code, offset of the record)
 * and records. All bytes are untrusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elfwindow.h"
#include "gofile/gocode.h"
#include "gofile/gomodule.h"

/* Bytes of a table entry, in the longest form. Reached: -. */
#define GOFUNC_ENTRY_BYTES_MAX 16u
/* Bytes of a record's fixed part, in the longest form. Reached: -. */
#define GOFUNC_BYTES_MAX       44u

/* The fixed part and the position of a function record. */
struct gofunc {
	uint64_t entry; /* vaddr */
	uint64_t end;	/* vaddr */
	uint64_t data;	/* offset in the table of the data after the fixed part */
	uint32_t name;
	uint32_t pc_sp;
	uint32_t pc_file;
	uint32_t pc_line;
	uint32_t n_pcdata;
	uint32_t cu;
	uint32_t start_line;
	uint8_t func_id;
	uint8_t flags; /* enum gocode_flag */
	uint8_t n_funcdata;
};

size_t gofunc_entry_bytes(const struct gomodule *m);
size_t gofunc_bytes(const struct gomodule *m);

/* Reads gofunc_entry_bytes() bytes. */
void gofunc_parse_entry(const struct gomodule *m, const uint8_t *bytes, uint64_t *ret_entry,
			uint64_t *ret_record);
/* Reads gofunc_bytes() bytes. @f has entry, end and data already. False if the record does not
 * belong to a function that begins at @f->entry; then @f is undefined. */
bool gofunc_parse(const struct gomodule *m, const uint8_t *bytes, struct gofunc *f);

/*
 * All functions of a Go file, in the order of the code. gopclntab finds the function at an address.
 */

struct elffile;

/* The end of the walk, in addition to enum gomodule_outcome. */
#define GOFUNCWALK_END GOMODULE_OUTCOME_MAX

/**
 * struct gofuncwalk - the walk
 * @module:  borrowed
 * @entries: of the function table
 * @records: of the functions
 * @i:       number of the next function, which begins at @entry and has its record at @record
 * @lowest:  of the functions so far, to @highest; together they have @bytes
 */
struct gofuncwalk {
	const struct gomodule *module;
	struct elfwindow entries;
	struct elfwindow records;
	uint64_t i;
	uint64_t entry;
	uint64_t record;
	uint64_t lowest, highest, bytes;
};

/* @window is the room for records, in bytes. Entries, equal in number but smaller, get a
 * quarter. 0; GOMODULE_MALFORMED; -errno. */
int gofuncwalk_init(struct gofuncwalk *w, const struct elffile *file, const struct gomodule *module,
		    size_t window);
/* No effect on a walk of all zeros. */
void gofuncwalk_deinit(struct gofuncwalk *w);

/* The next function, without @data. 0; GOMODULE_MALFORMED for a skipped function: call again;
 * GOFUNCWALK_END; -errno. */
int gofuncwalk_next(struct gofuncwalk *w, struct gofunc *ret);

#endif
