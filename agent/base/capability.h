/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CAPABILITY_H
#define PODPROF_BASE_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* The effective capabilities(7) of this thread, one bit for each CAP_*. False if the kernel does
 * not report the capabilities. */
bool capabilities_here(uint64_t *ret);

static inline bool capability_in(uint64_t capabilities, unsigned int capability)
{
	return capabilities >> capability & 1;
}

#endif
