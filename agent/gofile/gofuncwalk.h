/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNCWALK_H
#define PODPROF_GOFILE_GOFUNCWALK_H

/*
 * All functions of a Go file, in the order of the code. gopclntab finds the function at an address.
 */

#include <stddef.h>
#include <stdint.h>

#include "gofile/gofunc.h"
#include "gofile/gomodule.h"
#include "elf/elfwindow.h"

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
/* Bytes held. */
size_t gofuncwalk_bytes(const struct gofuncwalk *w);

/* The next function, without @data. 0; GOMODULE_MALFORMED for a skipped function: call again;
 * GOFUNCWALK_END; -errno. */
int gofuncwalk_next(struct gofuncwalk *w, struct gofunc *ret);

#endif
