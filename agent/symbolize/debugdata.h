/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEBUGDATA_H
#define PODPROF_SYMBOLIZE_DEBUGDATA_H

/*
 * .gnu_debugdata ("minidebuginfo"): a stripped file's small ELF file, compressed with xz, with the
 * symbols that .dynsym lacks. Fedora's and Red Hat's packages have this table.
 */

#include <stddef.h>

struct elffile;

/* Uncompressed bytes; libraries have some 100 KiB, the largest programs 10 MiB. Reached: no name.
 */
#define DEBUGDATA_MAX ((size_t)64 << 20)

/* The uncompressed file of @file, owned by the caller (free()). 0; ELFFILE_ABSENT;
 * ELFFILE_TOO_LARGE above the ceiling; ELFFILE_MALFORMED; ELFFILE_ABANDONED; another outcome of
 * reading; -errno. */
int debugdata_read(const struct elffile *file, void **ret, size_t *ret_n);

#endif
