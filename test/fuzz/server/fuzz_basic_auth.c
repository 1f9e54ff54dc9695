// SPDX-License-Identifier: Apache-2.0
/* Any Authorization header has a name and a password, or none. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "server/basic_auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *header = strview_dup(strview_of_bytes((const char *)data, size));
	struct basic_credentials c;

	if (!header)
		return 0;
	if (basic_credentials_parse(header, &c) &&
	    (strchr(c.name, ':') || strlen(c.name) + strlen(c.password) + 1 > size))
		abort();
	free(header);
	return 0;
}
