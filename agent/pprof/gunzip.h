/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_GUNZIP_H
#define PODPROF_PPROF_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Whether @data starts as a gzip file does (RFC 1952 section 2.3.1). */
bool gunzip_is(const void *data, size_t n);
/*
 * Append the contents of a gzip file, with all members. The ceiling of @ret protects against a
 * small file with very large contents.
 *
 * Return: 0; PPROF_FULL; PPROF_MALFORMED: not gzip, incomplete, a wrong checksum, or bytes behind
 * the last member; -ENOMEM. On failure @ret keeps its old length.
 */
int gunzip(const void *data, size_t n, struct buf *ret);

#endif
