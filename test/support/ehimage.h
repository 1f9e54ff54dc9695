/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_EHIMAGE_H
#define PODPROF_TEST_SUPPORT_EHIMAGE_H

/* Small ELF files with unwind tables, made in memory from bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EHIMAGE_TEXT	    0x10000 /* first address of code */
#define EHIMAGE_TEXT_END    0x20000
#define EHIMAGE_EH_FRAME    0x400	      /* address and file offset of .eh_frame */
#define EHIMAGE_SECTION_MAX ((size_t)1 << 20) /* largest bytes of each table */

/* An entry of the linker's index: a function, and the place of its FDE in .eh_frame. */
struct ehimage_pair {
	uint32_t vaddr;
	uint32_t pos;
};

struct rows;

struct ehimage {
	uint16_t machine; /* EM_X86_64 when 0 */
	uint16_t type;	  /* ET_DYN when 0 */
	const void *eh_frame;
	size_t n_eh_frame;
	const void *debug_frame;
	size_t n_debug_frame;
	const void *text; /* bytes of code, from EHIMAGE_TEXT on */
	size_t n_text;
	uint64_t entry;			  /* the program's, an address; 0: none */
	const char *build_id;		  /* the bytes as a string; NULL: none */
	bool compressed;		  /* .debug_frame's flag */
	bool no_sections;		  /* .eh_frame is found through PT_GNU_EH_FRAME alone */
	uint64_t more;			  /* extra length in the header of .eh_frame */
	const struct ehimage_pair *pairs; /* the index, at the end of the file */
	size_t n_pairs;			  /* 0: no index */
};

/* Owned by the caller (free()); NULL without memory. */
void *ehimage_build(const struct ehimage *image, size_t *ret_n);
/* Whether finished rows of such a file keep their promises: sorted, inside of the code, each found
 * by its address, and the last without a rule. */
bool ehimage_rows_are_sane(const struct rows *rows);

#endif
