// SPDX-License-Identifier: Apache-2.0
/* The answer of an unknown listener at /-/ready. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "doctor/listener.h"

static void check_text(const char *s, size_t size)
{
	if (!memchr(s, '\0', size))
		abort();
	for (; *s; s++)
		if (utf8_control(s))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct listener listener = {.n = 0};
	char *body = malloc(size + 1);

	if (!body)
		return 0;
	memcpy(body, data, size);
	body[size] = '\0';
	if (!listener_read(body, &listener) && (listener.n || listener.agent))
		abort();
	if (listener.n > LISTENER_CONDITIONS_MAX)
		abort();
	for (size_t i = 0; i < listener.n; i++) {
		check_text(listener.conditions[i].name, sizeof(listener.conditions[i].name));
		check_text(listener.conditions[i].why, sizeof(listener.conditions[i].why));
	}
	free(body);
	return 0;
}
