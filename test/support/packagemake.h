/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PACKAGEMAKE_H
#define PODPROF_TEST_SUPPORT_PACKAGEMAKE_H

/* Packages of split DWARF, made in memory. The package has one unit, the second of two rows. */

#include <stddef.h>
#include <stdint.h>

#include "support/elfmake.h"

#define PACKAGEMAKE_ID	    0x1122334455667788u
#define PACKAGEMAKE_INFO    "unit" /* 4 bytes; those before are of another unit */
#define PACKAGEMAKE_COLUMNS 4
#define PACKAGEMAKE_SLOTS   4

/* The index: its numbers may be changed before packagemake_finish(). */
struct packagemake {
	struct elfmake elf;
	struct packagemake_index {
		uint32_t version, columns, units, slots;
		uint64_t ids[PACKAGEMAKE_SLOTS];
		uint32_t rows[PACKAGEMAKE_SLOTS];
		uint32_t kinds[PACKAGEMAKE_COLUMNS];
		uint32_t offs[2][PACKAGEMAKE_COLUMNS];
		uint32_t sizes[2][PACKAGEMAKE_COLUMNS];
	} __attribute__((packed)) index;
};

/* The unit has @n strings with the offsets @offs in the section @strings of @n_strings bytes. */
void packagemake_init(struct packagemake *p, uint32_t version, const uint32_t *offs, size_t n,
		      const char *strings, size_t n_strings);
/* The file is @p->elf.data, of @p->elf.n bytes; packagemake_deinit() frees it. */
void packagemake_finish(struct packagemake *p);
void packagemake_deinit(struct packagemake *p);

#endif
