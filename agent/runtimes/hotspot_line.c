// SPDX-License-Identifier: Apache-2.0
/*
 * A pair is one byte, five bits of bytecodes and three of lines beyond the pair before. Or it is
 * 0xff and two signed numbers. A number has up to five bytes of six bits, lowest first; a byte
 * below 192 is the last. Since 20, each byte has one added, so that a zero byte is never in a
 * number, and the limit is 191.
 */
#include "runtimes/hotspot_line.h"

#define PAIR_LONG 0xff
#define N_BYTES	  5
#define BITS	  6

struct table {
	const uint8_t *at;
	size_t n;
	bool no_zero;
};

/* False at the end of the table. */
static bool next_byte(struct table *t, uint8_t *ret)
{
	if (!t->n)
		return false;
	*ret = *t->at++;
	t->n--;
	return true;
}

static bool next_number(struct table *t, int32_t *ret)
{
	const uint8_t extra = t->no_zero ? 1 : 0;
	const uint32_t limit = 256 - (1 << BITS) - extra;
	uint32_t sum = 0;
	uint8_t byte = 0;

	for (unsigned int i = 0; i < N_BYTES; i++) {
		if (!next_byte(t, &byte) || byte < extra)
			return false;
		sum += (uint32_t)(byte - extra) << (BITS * i);
		if ((uint32_t)(byte - extra) < limit)
			break;
	}
	*ret = (int32_t)(sum >> 1 ^ -(sum & 1)); /* the sign is the lowest bit */
	return true;
}

/* The next pair; false at the end. */
static bool next_pair(struct table *t, uint32_t *bci, uint32_t *line)
{
	int32_t bytecodes, lines;
	uint8_t byte;

	if (!next_byte(t, &byte) || !byte)
		return false;
	if (byte == PAIR_LONG) {
		if (!next_number(t, &bytecodes) || !next_number(t, &lines))
			return false;
		*bci += (uint32_t)bytecodes;
		*line += (uint32_t)lines;
	} else {
		*bci += byte >> 3;
		*line += byte & 7;
	}
	return true;
}

/* Pairs are in any order. The line is that of the nearest bytecode at or before the given one. */
uint32_t hotspot_line(const uint8_t *bytes, size_t n, bool no_zero, uint32_t bci, size_t *ret_bytes,
		      uint32_t *ret_first)
{
	struct table t = {bytes, n, no_zero};
	uint32_t at = 0, line = 0, best = 0, best_at = 0, first = 0;

	while (next_pair(&t, &at, &line)) {
		if (line && (!first || line < first))
			first = line;
		if (at <= bci && (!best || at >= best_at)) {
			best = line;
			best_at = at;
		}
	}
	if (ret_bytes)
		*ret_bytes = (size_t)(t.at - bytes);
	if (ret_first)
		*ret_first = first;
	return best ? best : first;
}
