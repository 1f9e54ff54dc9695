/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_QUANTITY_H
#define PODPROF_BASE_QUANTITY_H

/* Parsers for numbers with units in the user's spelling. False unless the whole string is one
 * number. */

#include <stdbool.h>
#include <stdint.h>

#define QUANTITY_MUST_CHECK __attribute__((warn_unused_result))

/* "250ms", "90s", "5m", "24h", "0"; a bare number other than 0 is refused. In nanoseconds. */
bool quantity_duration(const char *s, uint64_t *ret_ns) QUANTITY_MUST_CHECK;
/* "4096", "256KiB", "96MiB", "2GiB", also "256Ki" and "96Mi". In bytes. */
bool quantity_bytes(const char *s, uint64_t *ret) QUANTITY_MUST_CHECK;
/* A share from 0 to 1, in decimals: "0.02". */
bool quantity_share(const char *s, double *ret) QUANTITY_MUST_CHECK;

#endif
