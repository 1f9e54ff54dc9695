// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[DEMANGLE_NAME_MAX];
	char *mangled = malloc(size + 1);

	if (!mangled)
		abort();
	memcpy(mangled, data, size);
	mangled[size] = '\0';
	if (demangle(mangled, name) && strlen(name) >= sizeof(name))
		abort();
	free(mangled);
	return 0;
}
