/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PROFILES_H
#define PODPROF_TEST_SUPPORT_PROFILES_H

#include <stdint.h>

#include "export/export.h"

/* A profile with labels "service_name" (@service; NULL for none) and "node", whose pprof are @n
 * bytes that say nothing, the first of them @mark. The caller's. */
struct profile *profile_make(enum profile_kind kind, const char *service, uint64_t start_ns,
			     char mark, size_t n);

#endif
