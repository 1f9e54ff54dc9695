/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_EHFRAME_H
#define PODPROF_UNWIND_EHFRAME_H

/* Rows from the unwind tables of the linker, .eh_frame and .debug_frame. */

#include <stdint.h>

#include "elf/elffile.h"
#include "unwind/cfi.h"
#include "unwind/rows.h"

/* Reasons for an entry without rows. The outcomes of its program follow (EHFRAME_SKIP_CFI + enum
 * cfi_outcome). */
enum ehframe_skip {
	EHFRAME_SKIP_TRUNCATED = 0,    /* leaves the section, or is cut inside; ends the section */
	EHFRAME_SKIP_TOO_LARGE,	       /* EHFRAME_ENTRY_MAX, EHFRAME_CIE_MAX */
	EHFRAME_SKIP_CIE_POINTER,      /* the CIE pointer leads to no CIE */
	EHFRAME_SKIP_CIE_VERSION,      /* not 1, 3 or 4 with addresses of 8 bytes */
	EHFRAME_SKIP_CIE_AUGMENTATION, /* unknown, and without a length to skip */
	EHFRAME_SKIP_ENCODING,	       /* an address in an unsupported encoding */
	EHFRAME_SKIP_NO_CODE,	       /* an empty range, or code discarded by the linker */
	EHFRAME_SKIP_OUTSIDE,	       /* a range outside the image's code */
	EHFRAME_SKIP_COMPRESSED,       /* the section as a whole: cannot be decompressed */
	EHFRAME_SKIP_CFI,
	EHFRAME_SKIP_MAX = EHFRAME_SKIP_CFI + CFI_OUTCOME_MAX,
};

/* Added to by each ehframe_add(). */
struct ehframe_stats {
	uint64_t bytes; /* of the sections */
	uint64_t fdes;	/* with rows */
	uint64_t skipped[EHFRAME_SKIP_MAX];
};

/* The start of the first and the end of the last executable segment. 0, or ELFFILE_ABSENT without
 * executable segments. */
int ehframe_text(const struct elffile *file, uint64_t *ret_start, uint64_t *ret_end);

/**
 * ehframe_add() - the rows of a file's .eh_frame and .debug_frame
 * @file:  linked, of x86-64 or AArch64
 * @rows:  made for the file's text; gets a range for each good FDE
 * @stats: counts the others by reason
 *
 * Reads the sections front to back in pieces. A malformed entry loses only its own rows.
 *
 * Return: 0, also for a file without such tables; ELFFILE_UNSUPPORTED for another machine or an
 * unlinked file; ELFFILE_TRUNCATED if the file changes meanwhile; -errno; -ENOSPC for more than
 * ROWS_MAX rows. After the last three results @rows is incomplete.
 */
int ehframe_add(const struct elffile *file, struct rows *rows, struct ehframe_stats *stats);

const char *ehframe_skip_name(unsigned int skip);

#endif
