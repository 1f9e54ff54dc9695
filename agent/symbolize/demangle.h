/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEMANGLE_H
#define PODPROF_SYMBOLIZE_DEMANGLE_H

/* Names of C++ (Itanium ABI) and Rust (legacy and v0) as people write them. */

#include <stdbool.h>

/* Bytes of a readable name, with the NUL; what is longer is cut and ends with "...". Reached: cut,
 * "...". */
#define DEMANGLE_NAME_MAX 4096

/**
 * demangle() - the readable form of a symbol's name
 * @ret: qualified name with template arguments, without parameters and return type; without the
 *       hash that Rust's legacy scheme has at the end
 *
 * Return: whether @name is a mangled name that is taken apart; if not, @ret is not touched. Names
 * that are long, or that would take unreasonable time, are not.
 */
bool demangle(const char *name, char ret[DEMANGLE_NAME_MAX]);

#endif
