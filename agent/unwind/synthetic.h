/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_SYNTHETIC_H
#define PODPROF_UNWIND_SYNTHETIC_H

/* Rows that we know without a table: of code that is recognised by its bytes. */

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Bytes of code that are searched, 2 ms: what has such code is a C library, the vDSO, or a static
 * program. Larger images are left to their tables. Reached: the tables alone say what there is. */
#define SYNTHETIC_SCAN_MAX ((uint64_t)4 << 20)

/**
 * synthetic_add() - add what is recognised in a file's code
 *
 * Signal trampolines: a signal handler returns to a few bytes that ask the kernel to go back.
 * musl and the vDSO of AArch64 do not describe them in any table. And three functions of glibc
 * that are described wrongly.
 *
 * Return: 0; ELFFILE_TRUNCATED if the file changes meanwhile; -errno; -ENOSPC for too many rows.
 */
int synthetic_add(const struct elffile *file, struct rows *rows);

/**
 * synthetic_add_entry() - add that nobody called the place where a process begins
 *
 * For where nothing else describes it: in glibc's dynamic linker, in musl. What follows it and is
 * described stays so.
 *
 * Return: as synthetic_add().
 */
int synthetic_add_entry(const struct elffile *file, struct rows *rows);

#endif
