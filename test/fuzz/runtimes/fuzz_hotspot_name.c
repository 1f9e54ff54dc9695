// SPDX-License-Identifier: Apache-2.0
/* Three texts: class, method, signature; the size of the result; a source file. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot_name.h"

#define TEXTS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *texts[TEXTS], *all, *result;
	size_t n, at = 0;

	if (!size)
		return 0;
	n = data[0] + 1u;
	all = calloc(1, size + TEXTS);
	result = malloc(n);
	if (!all || !result)
		abort();
	memcpy(all, data + 1, size - 1);
	for (int i = 0; i < TEXTS; i++) {
		texts[i] = all + at;
		at += strlen(texts[i]) + 1;
		at = at < size ? at : size;
	}
	hotspot_name(texts[0], texts[1], texts[2], texts[3], result, n);
	if (strlen(result) >= n)
		abort();
	hotspot_file(texts[0], texts[3], result, n);
	if (strlen(result) >= n)
		abort();
	free(result);
	free(all);
	return 0;
}
