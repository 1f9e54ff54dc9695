/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CAPABILITY_H
#define PODPROF_BASE_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* The capabilities(7) that are in force for this thread, a bit for each CAP_*. False where the
 * kernel does not tell. */
bool capabilities_here(uint64_t *ret);

static inline bool capability_in(uint64_t capabilities, unsigned int capability)
{
	return capabilities >> capability & 1;
}

#endif
