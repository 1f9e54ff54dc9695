/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_SYNTHETIC_H
#define PODPROF_UNWIND_SYNTHETIC_H

/* Rows for code without a correct table, recognised by its bytes. */

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Bytes of code searched, 2 ms: such code is in a C library, the vDSO, or a static program.
 * Reached: the tables alone describe the image. */
#define SYNTHETIC_SCAN_MAX ((uint64_t)4 << 20)

/**
 * synthetic_add() - add rows for recognised code of a file
 *
 * Signal trampolines: a signal handler returns to a few bytes with a system call that restores the
 * interrupted state. musl and the vDSO of AArch64 have no table for them. Also three functions of
 * glibc with wrong tables.
 *
 * Return: 0; ELFFILE_TRUNCATED if the file changes meanwhile; -errno; -ENOSPC for too many rows.
 */
int synthetic_add(const struct elffile *file, struct rows *rows);

/**
 * synthetic_add_entry() - mark the entry of a process as a function without a caller
 *
 * For entries without another description: in glibc's dynamic linker, in musl. Described code after
 * the entry keeps its description.
 *
 * Return: as synthetic_add().
 */
int synthetic_add_entry(const struct elffile *file, struct rows *rows);

/**
 * synthetic_add_linkage() - add rows for the linkage tables of a file
 *
 * .plt, .plt.got and .plt.sec of x86-64 and .plt of AArch64, as GNU ld and lld write them. lld
 * describes none of them, GNU ld none of AArch64's, and BOLT drops the description. Any other
 * description wins.
 *
 * Return: as synthetic_add().
 */
int synthetic_add_linkage(const struct elffile *file, struct rows *rows);

#endif
