/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOFUNCWALK_H
#define PODPROF_GOFILE_GOFUNCWALK_H

/*
 * All functions of a Go file, one after the other in the order of their code. For the one that
 * holds an address there is gopclntab.
 */

#include <stddef.h>
#include <stdint.h>

#include "gofile/gofunc.h"
#include "gofile/gomodule.h"
#include "elf/elfwindow.h"

struct elffile;

/* What the walk says besides enum gomodule_outcome: there are no more. */
#define GOFUNCWALK_END GOMODULE_OUTCOME_MAX

/**
 * struct gofuncwalk - the walk
 * @module:  borrowed
 * @entries: of the function table
 * @records: of the functions
 * @i:       of the next function, which begins at @entry and has its record at @record
 */
struct gofuncwalk {
	const struct gomodule *module;
	struct elfwindow entries;
	struct elfwindow records;
	uint64_t i;
	uint64_t entry;
	uint64_t record;
};

/* @window is the room for records, bytes; entries, of which there are as many, are smaller and get
 * a quarter. 0; GOMODULE_MALFORMED; -errno. */
int gofuncwalk_init(struct gofuncwalk *w, const struct elffile *file, const struct gomodule *module,
		    size_t window);
/* Nothing to do for one that is all zeros. */
void gofuncwalk_deinit(struct gofuncwalk *w);
/* Bytes held. */
size_t gofuncwalk_bytes(const struct gofuncwalk *w);

/* The next function, without @data. 0; GOMODULE_MALFORMED for one that is left out: call again;
 * GOFUNCWALK_END; -errno. */
int gofuncwalk_next(struct gofuncwalk *w, struct gofunc *ret);

#endif
