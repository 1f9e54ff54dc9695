// SPDX-License-Identifier: Apache-2.0
/* A mangled name of Rust, without its "_R". */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/rustname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[RUSTNAME_MAX + 64] = "_R";
	struct rustname found;

	if (size > sizeof(name) - 3)
		return 0;
	if (size)
		memcpy(name + 2, data, size);
	if (rustname_check(name, &found) && found.n_backrefs > size)
		abort();
	return 0;
}
