/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ROWSORACLE_H
#define PODPROF_TEST_SUPPORT_ROWSORACLE_H

/* The rows that we make of a file, compared with the tables that readelf prints of it; and what the
 * walker finds in the packed table, compared with the rows. */

#include <stdint.h>

#include "unwind/rows.h"

struct rowsoracle_report {
	uint64_t bytes;	     /* of tables */
	uint64_t functions;  /* FDEs compared */
	uint64_t overlapped; /* FDEs that a later one covers in part: left out */
	uint64_t rows;	     /* lines of readelf that cover code */
	uint64_t equal;
	uint64_t different;
	uint64_t unsupported[UNSUPPORTED_MAX]; /* rightly: no rule can say it */
	uint64_t stops;
	uint64_t signals;
	uint64_t expressions;
	uint64_t packed;  /* lookups in the packed table, each at a row's first or last byte */
	uint64_t skipped; /* entries that we left out for being broken */
};

enum rowsoracle_outcome {
	ROWSORACLE_OK = 0,
	ROWSORACLE_NO_TABLES, /* no ELF file of ours, not linked, or without unwind tables */
};

/* What is not plainly equal: what readelf says and what we say, as text. */
typedef void rowsoracle_told(void *ctx, uint64_t vaddr, const char *theirs, const char *ours);

/* Adds to @report. @told may be NULL. 0, an outcome, -errno. */
int rowsoracle_compare(const char *path, rowsoracle_told *told, void *ctx,
		       struct rowsoracle_report *report);

uint64_t rowsoracle_unsupported(const struct rowsoracle_report *report);

#endif
