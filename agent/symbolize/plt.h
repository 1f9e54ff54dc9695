/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_PLT_H
#define PODPROF_SYMBOLIZE_PLT_H

/*
 * Stubs of the procedure linkage table: each jumps through a slot that the dynamic linker fills. A
 * stub has the name of the symbol in the relocation of its slot.
 *
 * Specification: System V ABI, AMD64 and AArch64 supplements, "Procedure Linkage Table".
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;
struct plt;

/* Bytes of a symbol's name, with the NUL. Reached: cut. */
#define PLT_NAME_MAX 4096

enum plt_outcome {
	PLT_OK = 0,
	PLT_ABSENT,    /* no stubs, or no relocations of slots */
	PLT_NOT_FOUND, /* no stub at this address, or one without a symbol */
};

/* Borrows @file. 0, PLT_ABSENT, -ENOMEM. */
int plt_open(const struct elffile *file, struct plt **ret);
/* NULL is fine. */
void plt_free(struct plt *plt);
size_t plt_bytes(const struct plt *plt);
/* The symbol that the stub around @vaddr jumps to. 0, PLT_NOT_FOUND. */
int plt_find(const struct plt *plt, uint64_t vaddr, char name[PLT_NAME_MAX]);

#endif
