/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_CONTENTS_H
#define PODPROF_UNWINDTABLE_CONTENTS_H

/* What an image's rows are made of. */

#include "base/digest.h"
#include "elf/elffile.h"

/**
 * contents_digest() - everything in a file that compile_image() goes by, as one number
 *
 * Files of which it says the same have the same rows, if @key is a secret. Costs a read of all that
 * the file maps: a third of compiling it.
 *
 * Return: 0; ELFFILE_TRUNCATED if the file changes meanwhile; -errno.
 */
int contents_digest(const struct elffile *file, const struct digest_key *key, uint64_t *ret);

#endif
