/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_EHENTRY_H
#define PODPROF_UNWIND_EHENTRY_H

/*
 * One entry of .eh_frame or .debug_frame. A CIE has data common to many functions. An FDE describes
 * a function or a part of one: its CIE, its addresses and a program of call frame instructions
 * (cfi.h). The callers read the bytes: front to back (ehframe.c), or at one address (ehindex.c).
 *
 * Specification: LSB Core 5.0, "DWARF Extensions"; DWARF 5 section 6.4.1. For open questions,
 * binutils and libgcc are the reference.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "elf/elffile.h"
#include "unwind/cfi.h"

/* Bytes of a CIE; usual CIEs have some 24. FDEs of a larger CIE are skipped as
 * EHFRAME_SKIP_TOO_LARGE. Reached: they have no rows: `too_large`. */
#define EHFRAME_CIE_MAX	 1024
/* Bytes that hold the head of any entry. Reached: -. */
#define EHENTRY_HEAD_MAX 20

/* Reasons to skip an entry. The outcomes of its program follow (EHFRAME_SKIP_CFI + enum
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

/* The head common to all entries; offsets are in the section. */
struct ehentry {
	uint64_t pos; /* of the length */
	uint64_t end;
	uint64_t id_pos;
	uint64_t id;
	bool wide;
};

/* Parses an entry's head from @c at @pos, in a section of @size bytes; @c may end after the head.
 * False if the head is truncated or the entry leaves the section. A length of 0 is an entry without
 * id that ends after the length. */
bool ehentry_parse(struct cursor *c, uint64_t size, uint64_t pos, struct ehentry *ret);
/* @is_eh: in .eh_frame, else in .debug_frame. */
bool ehentry_is_cie(const struct ehentry *e, bool is_eh);
/* The offset of an FDE's CIE. False outside the section. */
bool ehentry_cie(const struct ehentry *fde, bool is_eh, uint64_t size, uint64_t *ret);
/* The offset of the bytes after the head. */
uint64_t ehentry_body(const struct ehentry *e);

/**
 * struct ehcie - a CIE
 * @skip:     -1, or the reason to skip its FDEs (enum ehframe_skip)
 * @encoding: of addresses in its FDEs
 */
struct ehcie {
	int skip;
	bool has_augmentation_length;
	uint8_t encoding;
	struct cfi_common common;
};

/* Parses the bytes after a CIE's head. Sets @skip too. */
void ehcie_parse(struct cursor *c, enum cfi_machine machine, struct ehcie *ret);

struct ehrange {
	uint64_t start;
	uint64_t end;
};

/* Parses the bytes after an FDE's head, at @vaddr: its addresses. @c is then at the program. -1, or
 * the reason to skip. */
int ehfde_parse(const struct ehcie *cie, uint64_t vaddr, struct cursor *c, struct ehrange *ret);

/* The part of the file with .eh_frame. @ret_sized is false if only its begin is known, and a zero
 * ends the list. 0 or ELFFILE_ABSENT. */
int eh_frame_section(const struct elffile *file, struct elffile_section *ret, bool *ret_sized);
/* 0 or ELFFILE_UNSUPPORTED. */
int ehentry_machine(const struct elffile *file, enum cfi_machine *ret);

const char *ehframe_skip_name(unsigned int skip);

#endif
