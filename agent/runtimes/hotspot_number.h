/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_NUMBER_H
#define PODPROF_RUNTIMES_HOTSPOT_NUMBER_H

/*
 * HotSpot's compressed numbers ("UNSIGNED5"): in the line tables of methods and in the scopes of
 * compiled code. A number has up to five bytes of six bits, lowest first; a byte below 192 is the
 * last. Since 20, each byte has one added, so that a zero byte is never in a number, and the limit
 * is 191.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a number at most. */
#define HOTSPOT_NUMBER_BYTES 5

/* A reader of @n bytes at @at. */
struct hotspot_numbers {
	const uint8_t *at;
	size_t n;
	bool no_zero; /* numbers have no zero bytes: since 20 */
};

/* Each takes what it returns. False at the end, and for a byte that is in no number. */
bool hotspot_next_byte(struct hotspot_numbers *numbers, uint8_t *ret);
bool hotspot_next_number(struct hotspot_numbers *numbers, uint32_t *ret);

#endif
