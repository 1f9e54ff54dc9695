// SPDX-License-Identifier: Apache-2.0
/*
 * Three shapes, each a list of steps from the first line on:
 *
 * - to 3.9 (co_lnotab): pairs of bytes: instruction bytes unsigned, lines signed. A line holds from
 *   its pair's address on.
 * - 3.10 (co_linetable): the same pairs, but each is the range of instructions with the line. -128
 *   lines: a range without a line.
 * - 3.11 and later: entries of a first byte with bit 7, and others without. Bits 6..3 of the first
 *   are a code, bits 2..0 the number of 2-byte units less one. The codes 0 to 9 keep the line, 10
 *   to 12 add the code less 10, 13 and 14 add a signed number, 15 is a range without a line. The
 *   bytes behind are columns. Numbers have 6 bits a byte, lowest first, and bit 6 continues; bit 0
 *   of a signed number is the sign.
 *
 * Source: Objects/lnotab_notes.txt and Objects/locations.md of CPython.
 */
#include "runtimes/python_line.h"

#include "base/cursor.h"

#define NO_LINE (-128)

#define ENTRY_BEGIN	0x80u
#define ENTRY_ONE_LINE	10u
#define ENTRY_NO_COLUMN 13u
#define ENTRY_LONG	14u
#define ENTRY_NO_LINE	15u
#define NUMBER_BITS	6u

static uint32_t line_of(int64_t line)
{
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_of_lnotab(struct cursor *c, int64_t line, int64_t place)
{
	uint8_t bytes, lines;
	int64_t at = 0;

	while (cursor_u8(c, &bytes) && cursor_u8(c, &lines)) {
		at += bytes;
		if (at > place)
			break;
		line += (int8_t)lines;
	}
	return line_of(line);
}

static uint32_t line_of_linetable(struct cursor *c, int64_t line, int64_t place)
{
	uint8_t bytes, lines;
	int64_t end = 0;

	while (cursor_u8(c, &bytes) && cursor_u8(c, &lines)) {
		end += bytes;
		if ((int8_t)lines != NO_LINE)
			line += (int8_t)lines;
		if (place < end)
			return (int8_t)lines == NO_LINE ? 0 : line_of(line);
	}
	return 0;
}

/* A number behind the first byte of an entry; 0 if the table ends. */
static int64_t signed_number(struct cursor *c)
{
	uint64_t number = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (!cursor_u8(c, &byte))
			return 0;
		if (shift < 32)
			number |= (uint64_t)(byte & 0x3f) << shift;
		shift += NUMBER_BITS;
	} while (byte & 1u << NUMBER_BITS);
	return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

static uint32_t line_of_locations(struct cursor *c, int64_t line, int64_t place)
{
	uint8_t first;
	int64_t end = 0;

	while (cursor_u8(c, &first)) {
		const uint8_t code = first >> 3 & 0xf;

		if (!(first & ENTRY_BEGIN))
			continue; /* a column */
		end += 2 * (int64_t)((first & 7) + 1);
		if (code == ENTRY_NO_COLUMN || code == ENTRY_LONG)
			line += signed_number(c);
		else if (code >= ENTRY_ONE_LINE && code < ENTRY_NO_COLUMN)
			line += code - ENTRY_ONE_LINE;
		if (place < end)
			return code == ENTRY_NO_LINE ? 0 : line_of(line);
	}
	return 0;
}

uint32_t python_line(enum python_lines shape, const uint8_t *table, size_t n, int32_t first_line,
		     int32_t place)
{
	struct cursor c;

	cursor_init(&c, table, n);
	if (place < 0)
		return line_of(first_line);
	switch (shape) {
	case PYTHON_LNOTAB:
		return line_of_lnotab(&c, first_line, place);
	case PYTHON_LINETABLE:
		return line_of_linetable(&c, first_line, 2 * (int64_t)place);
	case PYTHON_LOCATIONS:
		return line_of_locations(&c, first_line, place);
	}
	return 0;
}
