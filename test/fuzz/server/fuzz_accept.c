// SPDX-License-Identifier: Apache-2.0
/* Any Accept and Accept-Encoding headers have an answer. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "server/accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *header = strview_dup(strview_of_bytes((const char *)data, size));

	if (!header)
		return 0;
	if (!accept_content_type(accept_format(header)))
		abort();
	(void)accept_gzip(header);
	free(header);
	return 0;
}
