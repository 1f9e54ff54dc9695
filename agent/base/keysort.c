// SPDX-License-Identifier: Apache-2.0
/*
 * Byte by byte, from the lowest to the highest in which two keys differ. The addresses of a file
 * differ in two to four bytes.
 */
#include "base/keysort.h"

#include <stdint.h>
#include <string.h>

#define VALUES 256

static uint64_t key_of(const unsigned char *items, size_t i)
{
	uint64_t key;

	memcpy(&key, items + i * KEYSORT_BYTES, sizeof(key));
	return key;
}

/* One byte of the keys decides; the order is otherwise kept. */
static void sort_by_byte(const unsigned char *from, unsigned char *to, size_t n, unsigned int shift)
{
	size_t at[VALUES] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[key_of(from, i) >> shift & 0xff]++;
	for (size_t i = 0; i < VALUES; i++) {
		const size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(to + at[key_of(from, i) >> shift & 0xff]++ * KEYSORT_BYTES,
		       from + i * KEYSORT_BYTES, KEYSORT_BYTES);
}

void *keysort(void *items, void *room, size_t n)
{
	unsigned char *from = items, *to = room;
	uint64_t differ = 0;

	for (size_t i = 1; i < n; i++)
		differ |= key_of(from, i) ^ key_of(from, 0);
	for (unsigned int shift = 0; shift < 64 && differ >> shift; shift += 8) {
		unsigned char *sorted = to;

		if (!(differ >> shift & 0xff))
			continue;
		sort_by_byte(from, to, n, shift);
		to = from;
		from = sorted;
	}
	return from;
}
