// SPDX-License-Identifier: Apache-2.0
#include "export/profile.h"

#include <stdlib.h>

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	labels_deinit(&profile->labels);
	free(profile->pprof);
	free(profile->pprof_delta);
	free(profile);
}

const char *profile_kind_name(enum profile_kind kind)
{
	static const char *const names[PROFILE_KIND_MAX] = {
		[PROFILE_CPU] = "cpu",		 [PROFILE_OFF_CPU] = "offcpu",
		[PROFILE_GO_HEAP] = "go_heap",	 [PROFILE_GO_MUTEX] = "go_mutex",
		[PROFILE_GO_BLOCK] = "go_block",
	};

	return names[kind];
}

bool profile_kind_is_cumulative(enum profile_kind kind)
{
	return kind == PROFILE_GO_HEAP || kind == PROFILE_GO_MUTEX || kind == PROFILE_GO_BLOCK;
}
