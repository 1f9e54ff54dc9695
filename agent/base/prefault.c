// SPDX-License-Identifier: Apache-2.0
#include "base/prefault.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Below this size, a few faults cost no more than the call, and malloc usually reuses a block. */
#define PREFAULT_BYTES_MIN (32u << 10)
/* Linux 5.14; older headers lack the constant. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void prefault(void *block, size_t n_bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)block + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)block + n_bytes) & ~(page - 1);

	if (n_bytes < PREFAULT_BYTES_MIN || from >= to)
		return;
	/* on failure the pages are faulted in singly */
	(void)!madvise((void *)from, to - from,
		       MADV_POPULATE_WRITE); // NOLINT(performance-no-int-to-ptr)
}
