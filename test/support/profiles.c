// SPDX-License-Identifier: Apache-2.0
#include "support/profiles.h"

#include <stdlib.h>

#include "support/test.h"

struct profile *profile_make(enum profile_kind kind, const char *service, uint64_t start_ns,
			     char mark, size_t n)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	profile->kind = kind;
	profile->start_ns = start_ns;
	profile->duration_ns = 60000000000;
	profile->pprof = calloc(1, n);
	profile->pprof[0] = mark;
	profile->pprof_len = n;
	if (service)
		assert_int_equal(labels_set(&profile->labels, "service_name", service), 0);
	assert_int_equal(labels_set(&profile->labels, "node", "n1"), 0);
	return profile;
}
