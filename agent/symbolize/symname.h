/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SYMNAME_H
#define PODPROF_SYMBOLIZE_SYMNAME_H

/* Rules common to names in all symbol tables. */

#include <stdbool.h>
#include <stddef.h>

/* Cut the version off: "memcpy@@GLIBC_2.14" is "memcpy". In place. */
void symname_cut_version(char *name);

/* Marks of the assembler between code and data ("$x", "$d.12"; Arm's "ELF for the Arm 64-bit
 * Architecture", "Mapping symbols"; RISC-V has the same) and its local labels (".L12"). */
bool symname_is_mark(const char *name);
/* Bytes of a name that decide on a mark. */
#define SYMNAME_MARK_BYTES 3

/* Whether @a is better than @b as the name of a function: first by fewer leading underscores, then
 * by length, then by alphabet. */
bool symname_is_better(const char *a, const char *b);

#endif
