/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFSECTIONS_H
#define PODPROF_SYMBOLIZE_DWARFSECTIONS_H

/*
 * The sections with DWARF of one file. libelf maps the file and finds the sections; a compressed
 * section is uncompressed at its first use. A mapped file may shrink, so only the process without
 * rights (dwarfchild.h) uses this module.
 */

#include "base/cursor.h"

enum dwarfsection {
	DWARFSECTION_INFO,
	DWARFSECTION_ABBREV,
	DWARFSECTION_LINE,
	DWARFSECTION_STR,
	DWARFSECTION_LINE_STR,
	DWARFSECTION_RANGES,
	DWARFSECTION_RNGLISTS,
	DWARFSECTION_ADDR,
	DWARFSECTION_STR_OFFSETS,
	DWARFSECTION_TYPES,
	DWARFSECTION_MAX,
};

enum dwarfsections_outcome {
	DWARFSECTIONS_OK = 0,
	DWARFSECTIONS_UNSUPPORTED, /* no 64-bit little-endian ELF file, or without DWARF */
};

struct dwarfsections;

/* Borrows @fd. 0, DWARFSECTIONS_UNSUPPORTED, -ENOMEM. */
int dwarfsections_open(int fd, struct dwarfsections **ret);
/* Over borrowed bytes of each section (fuzzers, tests). 0 or -ENOMEM. */
int dwarfsections_open_memory(const struct cursor sections[DWARFSECTION_MAX],
			      struct dwarfsections **ret);
/* NULL is fine. */
void dwarfsections_free(struct dwarfsections *s);
/* All bytes of a section; none if the section is absent or damaged. Borrowed. */
struct cursor dwarfsections_get(struct dwarfsections *s, enum dwarfsection section);
/* The same, from @off on; none if @off is outside. */
struct cursor dwarfsections_at(struct dwarfsections *s, enum dwarfsection section, uint64_t off);
/* The string at @off, borrowed. NULL outside, without an end, or above DWARFWIRE_STRING_MAX. */
const char *dwarfsections_string(struct dwarfsections *s, enum dwarfsection section, uint64_t off);

#endif
