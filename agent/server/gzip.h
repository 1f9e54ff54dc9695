/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_GZIP_H
#define PODPROF_SERVER_GZIP_H

/* One gzip member (RFC 1952), at once or in steps. */

#include <limits.h>
#include <stddef.h>

struct buf;
struct gzip;

/* Bytes compressed by one step: half a millisecond. */
#define GZIP_STEP_BYTES (64u << 10)
/* Not done: another step is needed. */
#define GZIP_MORE	INT_MAX

/* @data: @n bytes, borrowed until gzip_free(). 0, BUF_FULL, -ENOMEM. */
int gzip_new(const void *data, size_t n, struct gzip **ret) __attribute__((warn_unused_result));
/* Appends to @ret. 0: the member is whole; GZIP_MORE; BUF_FULL, -ENOMEM. */
int gzip_step(struct gzip *gzip, struct buf *ret) __attribute__((warn_unused_result));
/* NULL is fine. */
void gzip_free(struct gzip *gzip);

/* All steps. 0, BUF_FULL, -ENOMEM. */
int gzip_append(const void *data, size_t n, struct buf *ret) __attribute__((warn_unused_result));

#endif
