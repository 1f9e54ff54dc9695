/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_ELFWORST_H
#define PODPROF_TEST_SUPPORT_ELFWORST_H

/* ELF files that are the worst input of a parser, of any size: for the tests of growth, and for
 * hostile containers. Each has code at ELFWORST_TEXT. The caller finishes and frees @m. */

#include "support/elfmake.h"

#include <stdbool.h>

#define ELFWORST_TEXT 0x100000u

/* @n functions at the start of the code, owned by the caller. */
Elf64_Sym *elfworst_functions(size_t n);
/* An empty name, and one of @n - 2 bytes; owned by the caller. */
char *elfworst_name(size_t n);
/* A file with code of @n_code bytes, @symbols and @names, both freed. */
void elfworst_symbols(struct elfmake *m, uint16_t type, size_t n_code, Elf64_Sym *symbols, size_t n,
		      char *names, size_t n_names);

/* A function, and labels without a size at a place in the function: @n symbols. */
void elfworst_labels(struct elfmake *m, size_t n);
/* @n symbols with one name of 24 * @n bytes. */
void elfworst_one_name(struct elfmake *m, size_t n);
/* @n writable segments with the same @n_bytes of the file. */
void elfworst_segments(struct elfmake *m, size_t n, size_t n_bytes);

/* An FDE of .eh_frame, relative to the start of the code. */
struct elfworst_fde {
	uint32_t length, cie, start, size;
	uint8_t n_augmentation;
	uint8_t program[7];
};
_Static_assert(sizeof(struct elfworst_fde) == 24, "no padding");

/* @n FDEs for @n_code bytes of code. @fill sets the start, the size and the program of each. */
void elfworst_fdes(struct elfmake *m, size_t n,
		   void (*fill)(struct elfworst_fde *f, size_t i, size_t n), size_t n_code);
/* Adds the linker's sorted index of the @n FDEs, of functions of 32 bytes each, one behind the
 * other.
 */
void elfworst_index(struct elfmake *m, size_t n);
/* For elfworst_fdes(): each function begins inside the one before; 2 * @n bytes of code. */
void elfworst_fill_nested(struct elfworst_fde *f, size_t i, size_t n);
/* For elfworst_fdes(): functions of 32 bytes one behind the other. Each FDE has all later ones in
 * its program. */
void elfworst_fill_growing(struct elfworst_fde *f, size_t i, size_t n);

/* Go's tables of @n functions, which share one table of @n steps for the stack, the lines and the
 * files. The functions lie one behind the other; with @over each second one covers all of the code.
 */
void elfworst_go(struct elfmake *m, size_t n, bool over);

#endif
