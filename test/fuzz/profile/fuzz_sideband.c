// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "profile/sideband_record.h"

/* The bytes are one record with a corrected length field, because the ring reader checks the
 * length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sideband_record record;
	uint16_t length = (uint16_t)size;
	uint8_t *copy;

	if (size < SIDEBAND_HEADER_BYTES || size > UINT16_MAX)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	memcpy(copy + 6, &length, sizeof(length));
	if (!sideband_decode(copy, size, &record)) {
		if (strlen(record.name) >= size || record.kind >= SIDEBAND_KIND_MAX)
			abort();
		if (record.kind == SIDEBAND_MMAP && record.start + record.length < record.start)
			abort();
	}
	free(copy);
	return 0;
}
