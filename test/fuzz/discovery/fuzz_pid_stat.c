// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/pid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char comm[PID_COMM_MAX];
	struct pid_id id;

	if (pid_parse_stat((const char *)data, size, &id, comm) == 0 &&
	    strnlen(comm, sizeof(comm)) == sizeof(comm))
		abort(); /* a name without a NUL */
	return 0;
}
