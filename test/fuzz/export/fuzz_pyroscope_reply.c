// SPDX-License-Identifier: Apache-2.0
/* The first byte is the number of OTLP profiles in the request, the rest a server's answer. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "export/pyroscope_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum pyroscope_fate fates[256];
	size_t n, n_failures = 0;

	if (!size)
		return 0;
	n = data[0];
	if (!pyroscope_reply_fates(strview_of_bytes((const char *)data + 1, size - 1), n, fates))
		return 0;
	for (size_t i = 0; i < n; i++)
		n_failures += fates[i] != PYROSCOPE_STORED;
	if (!n_failures)
		abort();
	return 0;
}
