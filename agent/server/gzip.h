/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_GZIP_H
#define PODPROF_SERVER_GZIP_H

#include <stddef.h>

struct buf;

/* Append @n bytes compressed as one gzip member (RFC 1952). 0, BUF_FULL, -ENOMEM. */
int gzip_append(const void *data, size_t n, struct buf *ret) __attribute__((warn_unused_result));

#endif
