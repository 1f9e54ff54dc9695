/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PROFILES_H
#define PODPROF_TEST_SUPPORT_PROFILES_H

#include <stdint.h>

#include "export/export.h"

/* A profile with the labels "service_name" (@service; NULL for none) and "node". Its pprof are @n
 * arbitrary bytes with @mark as the first. The caller owns the profile. */
struct profile *profile_make(enum profile_kind kind, const char *service, uint64_t start_ns,
			     char mark, size_t n);

#endif
