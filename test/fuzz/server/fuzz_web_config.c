// SPDX-License-Identifier: Apache-2.0
/* A web configuration is good, or the error is a single line. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "server/web_config.h"

static size_t sum(const struct web_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += strlen(list->items[i]);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[WEB_ERROR_MAX] = "";
	struct web_config c;
	int r = web_config_parse((const char *)data, size, "/d", &c, error);

	if (r == WEB_CONFIG_BAD && (!*error || strlen(error) >= sizeof(error)))
		abort();
	if (r)
		return 0;
	for (size_t i = 0; i < c.n_users; i++)
		if (!*c.users[i].name || strlen(c.users[i].hash) != WEB_HASH_LEN)
			abort();
	if (sum(&c.sans) + sum(&c.ciphers) + sum(&c.ciphers13) + sum(&c.curves) > size * 64 ||
	    (!c.tls12 && !c.tls13) || (!c.has_tls && c.client_auth))
		abort();
	web_config_deinit(&c);
	return 0;
}
