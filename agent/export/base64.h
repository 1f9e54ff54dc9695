/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_BASE64_H
#define PODPROF_EXPORT_BASE64_H

/* Base64 of RFC 4648, section 4, with padding. */

#include <stddef.h>
#include <stdint.h>

struct buf;

/* The number of characters for @n bytes; below 2^62. */
static inline uint64_t base64_len(uint64_t n)
{
	return (n + 2) / 3 * 4;
}

/* Appends. 0, BUF_FULL, -ENOMEM. */
int base64_put(struct buf *to, const void *data, size_t n);

#endif
