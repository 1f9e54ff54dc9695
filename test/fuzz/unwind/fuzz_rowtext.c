// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "support/rowparse.h"
#include "unwind/rowtext.h"

/* The parsed rule is printed and parsed again, with the same result. */
static void try(enum cfi_machine machine, const uint8_t *data, size_t size)
{
	struct unwind_rule rule, again;
	char text[ROWTEXT_MAX];

	if (!rowparse(machine, strview_of_bytes((const char *)data, size), &rule))
		return;
	rowtext_print(machine, &rule, text);
	if (!rowparse(machine, strview_of(text), &again) ||
	    memcmp(&rule, &again, sizeof(rule)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try(CFI_X86_64, data, size);
	try(CFI_ARM64, data, size);
	return 0;
}
