/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_ROWFILE_H
#define PODPROF_UNWINDTABLE_ROWFILE_H

/*
 * Row files: unwind rows that the user gives for an image whose own tables are missing or wrong.
 * They lie in one folder, each named by its image's build id in lower-case hex, BUILDID.rows, and
 * have the lines that `podprof inspect unwind --rows` prints:
 *
 *	1040 1051 cfa=rsp+8 fp=same ra=cfa-8	# and a comment
 *
 * What such a line says of its range is taken instead of what the image says; where lines overlap,
 * the later one holds. A line that cannot be used is left out and reported, the others are used.
 * Written for users in docs/unwind-rows.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/rows.h"

struct elffile;

/* Bytes of a file; all rows of libLLVM are 75 MB. Above it, ROOT_TOO_LARGE in the report. Reached:
 * `podprof_unwind_row_files_total{outcome="unreadable"}`. */
#define ROWFILE_BYTES_MAX (256u << 20)
/* Bad lines of a file that are reported one by one. Reached: all are counted. */
#define ROWFILE_BAD_MAX	  10

/* What a line is. */
enum rowfile_line {
	ROWFILE_ROW = 0,
	ROWFILE_NOTHING,   /* empty, or a comment */
	ROWFILE_ADDRESSES, /* does not begin with two addresses */
	ROWFILE_EMPTY,	   /* the second is not above the first */
	ROWFILE_RULE,	   /* neither one of the words nor "cfa=" with what may stand behind it */
	ROWFILE_FP,
	ROWFILE_RA,
	ROWFILE_REST,	 /* more than a rule */
	ROWFILE_OUTSIDE, /* not all in the image's code */
	ROWFILE_LONG,	 /* longer than LINE_READER_MAX */
	ROWFILE_FULL,	 /* more than ROWS_MAX rows; those behind it are not looked at */
	ROWFILE_LINE_MAX,
};

/* Which file it was, so that a change can be seen. All zeros: there was none. */
struct rowfile_id {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	uint64_t mtime_ns;
};

/**
 * struct rowfile_report - what became of an image's row file
 * @id:     zeros if it has none
 * @opened: 0, or why a file that is there was not read (enum root_outcome, -errno)
 * @n_rows: lines used
 * @n_bad:  lines left out; the first ones are in @bad
 */
struct rowfile_report {
	struct rowfile_id id;
	int opened;
	uint64_t n_rows;
	uint64_t n_bad;
	struct rowfile_bad {
		uint64_t line; /* from 1 on */
		enum rowfile_line why;
	} bad[ROWFILE_BAD_MAX];
};

/* Whether the image had a row file, and whether all of it was used. */
bool rowfile_exists(const struct rowfile_report *report);
bool rowfile_good(const struct rowfile_report *report);

/**
 * rowfile_add() - add what the user says of an image
 * @dir: the folder; it need not exist
 *
 * Return: 0, whatever is wrong with the file; -errno where our side fails.
 */
int rowfile_add(const char *dir, const struct elffile *image, struct rows *rows,
		struct rowfile_report *ret);

/* The lines of an open file, from its position on. 0, or -ENOMEM; reports into all but @id. */
int rowfile_read(int fd, enum cfi_machine machine, struct rows *rows, struct rowfile_report *ret);

/* DIR/BUILDID.rows, owned by the caller; NULL without memory. */
char *rowfile_path(const char *dir, const char *build_id);
/* Which file there is now for an image with this build id. */
struct rowfile_id rowfile_find(const char *dir, const char *build_id);
bool rowfile_id_equal(const struct rowfile_id *a, const struct rowfile_id *b);

/* A sentence about a line that cannot be used, without its end: "the rule is not understood: ...".
 */
const char *rowfile_line_text(enum rowfile_line line);
/* Why a file that is there was not read. */
const char *rowfile_opened_text(int opened);

#endif
