/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_PROFILES_H
#define PODPROF_TEST_SUPPORT_PROFILES_H

#include <stdint.h>

#include "export/export.h"
#include "pprof/pprof.h"

/* The types of each kind as the agent writes these, without time and duration. */
extern const struct pprof_opts profile_types[PROFILE_KIND_MAX];

/* A profile with the labels "service_name" (@service; NULL for none) and "node". Its pprof are @n
 * arbitrary bytes with @mark as the first. The caller owns the profile. */
struct profile *profile_make(enum profile_kind kind, const char *service, uint64_t start_ns,
			     char mark, size_t n);

/* A readable profile of a pod: labels namespace "shop", pod "web-5d4f8c7b9-x2x4k", container "web",
 * node "n1", service_name "shop"; start 1700000000 s, 60 s long. Three samples:
 *
 *	stack				value of type number t
 *	main.work <- main.main		10 + t
 *	do_read (kernel) <- main.main	0 if t is odd, else 20 + t
 *	read (libc) <- main.main	0 if t is even, else 30 + t
 *
 * For CPU the values are samples and their time. The caller owns the profile. */
#define PROFILE_REAL_START_NS 1700000000000000000ull
#define PROFILE_REAL_PERIOD   10309278
struct profile *profile_make_real(enum profile_kind kind);

#endif
