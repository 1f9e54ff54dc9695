/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFINFLATE_H
#define PODPROF_ELF_ELFINFLATE_H

#include "elf/elffile.h"

/**
 * elfinflate() - the contents of a compressed section (SHF_COMPRESSED)
 * @max: ceiling of the uncompressed size
 * @ret: owned by the caller (free()); *@ret_n bytes
 *
 * Return: 0; ELFFILE_UNSUPPORTED for a method other than zlib; ELFFILE_TOO_LARGE;
 * ELFFILE_MALFORMED; ELFFILE_TRUNCATED; -errno.
 */
int elfinflate(const struct elffile *ef, const struct elffile_section *section, size_t max,
	       void **ret, size_t *ret_n);

#endif
