/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNC_H
#define PODPROF_GOFILE_GOFUNC_H

/*
 * The two shapes of which Go's function table consists: its entries (address of the code, offset of
 * the record) and the records. All bytes are foreign.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gofile/gocode.h"
#include "gofile/gomodule.h"

/* Bytes of an entry, and of a record's fixed part, in the form that has most. Reached: -. */
#define GOFUNC_ENTRY_BYTES_MAX 16u
/* Bytes of a function's head, of the newest version. Reached: -. */
#define GOFUNC_BYTES_MAX       44u

/* A function record's fixed part, and where it is. */
struct gofunc {
	uint64_t entry; /* vaddr */
	uint64_t end;	/* vaddr */
	uint64_t data;	/* offset in the table of what follows the fixed part */
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

/* From as many bytes as gofunc_entry_bytes() says. */
void gofunc_parse_entry(const struct gomodule *m, const uint8_t *bytes, uint64_t *ret_entry,
			uint64_t *ret_record);
/* From as many bytes as gofunc_bytes() says. @f has entry, end and data already. False if the
 * record is not one of a function that begins at @f->entry; then @f is undefined. */
bool gofunc_parse(const struct gomodule *m, const uint8_t *bytes, struct gofunc *f);

#endif
