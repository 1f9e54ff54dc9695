/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_EHINDEX_H
#define PODPROF_UNWIND_EHINDEX_H

/*
 * The function around an address, by the linker's sorted index of .eh_frame, .eh_frame_hdr, or by
 * the entries of .eh_frame in a file without an index. A stripped file keeps both. A function that
 * the compiler split has a range for each part.
 *
 * Specification: LSB Core 5.0, "DWARF Extensions".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/ehentry.h"

struct ehindex;

/* Borrows @file. 0; ELFFILE_ABSENT without functions; ELFFILE_ABANDONED; ELFFILE_UNSUPPORTED;
 * -errno. */
int ehindex_open(const struct elffile *file, struct ehindex **ret);
/* NULL is fine. */
void ehindex_free(struct ehindex *x);
/* False if the index was made from all entries. */
bool ehindex_is_linkers(const struct ehindex *x);
size_t ehindex_bytes(const struct ehindex *x);
/* Frees the blocks of the file that are held for further look-ups. */
void ehindex_drop_blocks(struct ehindex *x);

/* The FDE's range around @vaddr. 0; ELFFILE_ABSENT if no FDE has @vaddr, or it is malformed;
 * -errno. */
int ehindex_find(struct ehindex *x, uint64_t vaddr, struct ehrange *ret);
/* The offset of that FDE in .eh_frame, likewise. */
int ehindex_fde(struct ehindex *x, uint64_t vaddr, uint64_t *ret_pos);
/* The start of the last range that starts at or before @vaddr. 0; ELFFILE_ABSENT; -errno. */
int ehindex_start(struct ehindex *x, uint64_t vaddr, uint64_t *ret);

#endif
