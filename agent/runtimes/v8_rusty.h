/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_RUSTY_H
#define PODPROF_RUNTIMES_V8_RUSTY_H

/*
 * V8 in programs of Rust (the crate v8), such as Deno: without the constants for debuggers, and
 * without V8's symbols. The version is a string in the file, and v8_rusty.c has the constants of
 * the versions that were checked.
 */

#include <stdbool.h>

struct elffile;
struct v8_image;

/* Bytes of read-only data that are searched for the version; Deno has 25 to 40 MB. Reached:
 * `absent`, native frames only. */
#define V8_RUSTY_SEARCH_MAX (64u << 20)

/**
 * v8_rusty_read() - read the version, and set its constants
 * @ret:       the version and the constants are set
 * @ret_known: which constants are set, by constant
 *
 * Return: 0, V8_ABSENT, V8_VERSION (the version is set, too), V8_MALFORMED, -errno.
 */
int v8_rusty_read(const struct elffile *ef, struct v8_image *ret, bool *ret_known);

#endif
