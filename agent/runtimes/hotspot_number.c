// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot_number.h"

#define BITS 6

bool hotspot_next_byte(struct hotspot_numbers *numbers, uint8_t *ret)
{
	if (!numbers->n)
		return false;
	*ret = *numbers->at++;
	numbers->n--;
	return true;
}

bool hotspot_next_number(struct hotspot_numbers *numbers, uint32_t *ret)
{
	const uint8_t extra = numbers->no_zero ? 1 : 0;
	const uint32_t limit = 256 - (1 << BITS) - extra;
	uint32_t sum = 0;
	uint8_t byte = 0;

	for (unsigned int i = 0; i < HOTSPOT_NUMBER_BYTES; i++) {
		if (!hotspot_next_byte(numbers, &byte) || byte < extra)
			return false;
		sum += (uint32_t)(byte - extra) << (BITS * i);
		if ((uint32_t)(byte - extra) < limit)
			break;
	}
	*ret = sum;
	return true;
}
