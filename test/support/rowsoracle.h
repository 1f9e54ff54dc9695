/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ROWSORACLE_H
#define PODPROF_TEST_SUPPORT_ROWSORACLE_H

/* Compares podprof's rows of a file with the tables printed by readelf, and the walker's results
 * from the packed table with the rows. */

#include <stdint.h>

#include "unwind/rows.h"

struct rowsoracle_report {
	uint64_t bytes;	     /* of tables */
	uint64_t functions;  /* FDEs compared */
	uint64_t overlapped; /* skipped FDEs, partly covered by a later FDE */
	uint64_t rows;	     /* lines of readelf with code */
	uint64_t equal;
	uint64_t different;
	uint64_t unsupported[UNSUPPORTED_MAX]; /* rightly: no rule can express the line */
	uint64_t stops;
	uint64_t signals;
	uint64_t expressions;
	uint64_t packed;  /* lookups in the packed table, each at a row's first or last byte */
	uint64_t skipped; /* entries skipped by podprof as broken */
};

enum rowsoracle_outcome {
	ROWSORACLE_OK = 0,
	ROWSORACLE_NO_TABLES, /* no ELF file of ours, not linked, or without unwind tables */
};

/* An inequality: readelf's text and podprof's text. */
typedef void rowsoracle_told(void *ctx, uint64_t vaddr, const char *theirs, const char *ours);

/* Adds to @report. @told may be NULL. 0, an outcome, -errno. */
int rowsoracle_compare(const char *path, rowsoracle_told *told, void *ctx,
		       struct rowsoracle_report *report);

uint64_t rowsoracle_unsupported(const struct rowsoracle_report *report);

#endif
