/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEMANGLE_H
#define PODPROF_SYMBOLIZE_DEMANGLE_H

/* Readable names of C++ (Itanium ABI) and Rust (legacy and v0) symbols. */

#include <stdbool.h>

/* Bytes of a readable name, with the NUL. Reached: cut, "...". */
#define DEMANGLE_NAME_MAX 4096

/**
 * demangle() - the readable form of a symbol's name
 * @ret: qualified name with template arguments, without parameters and return type; without the
 *       trailing hash of Rust's legacy scheme, and without the compilers' ends of clones, ".cold"
 *
 * Return: whether @name is mangled or a clone's, and @ret differs; if not, @ret is not touched.
 * Names that are too long, or would take unreasonable time, are not demangled.
 */
bool demangle(const char *name, char ret[DEMANGLE_NAME_MAX]);

#endif
