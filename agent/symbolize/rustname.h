/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_RUSTNAME_H
#define PODPROF_SYMBOLIZE_RUSTNAME_H

/* Checks that a mangled Rust name (v0, "_R...") is well-formed, in linear time. */

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a name; longer names are not well-formed. Reached: shown unchanged. */
#define RUSTNAME_MAX 1024

struct rustname {
	size_t n_backrefs;
	bool punycode; /* an identifier is not ASCII */
};

/* @ret is set only for a well-formed name. */
bool rustname_check(const char *name, struct rustname *ret);

#endif
