// SPDX-License-Identifier: Apache-2.0
/* The bytes are a server's answer. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "export/otlp_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *begin = (const char *)data, *end = begin + size;
	struct otlp_reply reply;

	otlp_reply_parse(data, size, &reply);
	if (reply.rejected < 0)
		abort();
	if (!strview_empty(&reply.message) && (reply.message.p < begin || reply.message.end > end))
		abort();
	return 0;
}
