// SPDX-License-Identifier: Apache-2.0
/* The bytes are a server's answer. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "export/origin.h"
#include "export/upload_reply.h"

/* A URL with an origin is of this origin. */
static void check_origin(const char *url)
{
	char *origin = origin_text(url);

	if (origin && *origin && !origin_is_of(origin, url))
		abort();
	if (origin_ok(url) && !origin_is_of(url, url))
		abort();
	free(origin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct upload_ticket ticket = {.id = ""};
	uint64_t n = 0;
	bool wanted = false;

	(void)upload_reply_wanted(bytes, size, &wanted);
	(void)upload_reply_size(bytes, size, &n);
	if (upload_reply_ticket(bytes, size, &ticket)) {
		/* it goes into JSON without escapes */
		if (!ticket.id[0] || strpbrk(ticket.id, "\"\\") || strlen(ticket.id) > size)
			abort();
		if (strlen(ticket.url) > size || (ticket.is_direct && ticket.url[0]))
			abort();
		check_origin(ticket.url);
	} else if (ticket.id[0]) {
		abort();
	}
	return 0;
}
