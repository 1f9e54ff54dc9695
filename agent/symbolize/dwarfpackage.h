/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFPACKAGE_H
#define PODPROF_SYMBOLIZE_DWARFPACKAGE_H

/*
 * Packages of split DWARF (.dwp): one file with the contents of all .dwo files of a program. A unit
 * of the package is copied to a memory file with the form of a .dwo file. Documentation: DWARF 5,
 * 7.3.5; for DWARF 4 GCC's wiki, "DebugFissionDWP".
 */

#include <stddef.h>
#include <stdint.h>

struct dwarfpackage;
struct elffile;

/* Bytes of a unit's copy. Reached: counts as absent. */
#define DWARFPACKAGE_UNIT_MAX (16u << 20)

enum dwarfpackage_outcome {
	DWARFPACKAGE_OK = 0,
	DWARFPACKAGE_ABSENT,	/* no package, or the unit is not in the package */
	DWARFPACKAGE_MALFORMED, /* or truncated, compressed, or too much work */
	DWARFPACKAGE_TOO_LARGE,
};

/* Takes @file on success. 0, DWARFPACKAGE_ABSENT, DWARFPACKAGE_MALFORMED, -ENOMEM. */
int dwarfpackage_open(struct elffile *file, struct dwarfpackage **ret);
/* NULL is fine. */
void dwarfpackage_free(struct dwarfpackage *package);
/* A memory file with the unit @id, at most @max bytes, that nobody can change: the caller's. 0, an
 * outcome, -errno. */
int dwarfpackage_unit(const struct dwarfpackage *package, uint64_t id, size_t max, int *ret_fd,
		      size_t *ret_bytes);

#endif
