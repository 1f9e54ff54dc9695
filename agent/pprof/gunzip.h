/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_GUNZIP_H
#define PODPROF_PPROF_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Whether @data starts as a gzip file does (RFC 1952 section 2.3.1). */
bool gunzip_is(const void *data, size_t n);
/*
 * Append the contents of a gzip file, all its members. The ceiling of @ret is what stops a small
 * file that is very much larger inside.
 *
 * Return: 0; PPROF_FULL; PPROF_MALFORMED: not gzip, cut short, a wrong checksum, or something
 * behind the last member; -ENOMEM. On a failure @ret keeps its old length.
 */
int gunzip(const void *data, size_t n, struct buf *ret);

#endif
