// SPDX-License-Identifier: Apache-2.0
/*
 * A pair is one byte, five bits of bytecodes and three of lines beyond the pair before. Or it is
 * 0xff and two signed numbers.
 */
#include "runtimes/hotspot_line.h"

#include "runtimes/hotspot_number.h"

#define PAIR_LONG 0xff

static bool next_signed(struct hotspot_numbers *t, uint32_t *ret)
{
	uint32_t number;

	if (!hotspot_next_number(t, &number))
		return false;
	*ret = number >> 1 ^ -(number & 1); /* the sign is the lowest bit */
	return true;
}

/* The next pair; false at the end. */
static bool next_pair(struct hotspot_numbers *t, uint32_t *bci, uint32_t *line)
{
	uint32_t bytecodes, lines;
	uint8_t byte;

	if (!hotspot_next_byte(t, &byte) || !byte)
		return false;
	if (byte == PAIR_LONG) {
		if (!next_signed(t, &bytecodes) || !next_signed(t, &lines))
			return false;
		*bci += bytecodes;
		*line += lines;
	} else {
		*bci += byte >> 3;
		*line += byte & 7;
	}
	return true;
}

/* Pairs are in any order. The line is that of the nearest bytecode at or before the given one. */
uint32_t hotspot_line(const uint8_t *bytes, size_t n, bool no_zero, uint32_t bci,
		      uint32_t *ret_first)
{
	struct hotspot_numbers t = {bytes, n, no_zero};
	uint32_t at = 0, line = 0, best = 0, best_at = 0, first = 0;

	while (next_pair(&t, &at, &line)) {
		if (line && (!first || line < first))
			first = line;
		if (at <= bci && (!best || at >= best_at)) {
			best = line;
			best_at = at;
		}
	}
	if (ret_first)
		*ret_first = first;
	return best ? best : first;
}
