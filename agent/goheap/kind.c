// SPDX-License-Identifier: Apache-2.0
#include "goheap/kind.h"

#include <string.h>

const char *go_profile_kind_name(enum go_profile_kind kind)
{
	static const char *const names[GO_PROFILE_KIND_MAX] = {
		[GO_PROFILE_HEAP] = "heap",
		[GO_PROFILE_MUTEX] = "mutex",
		[GO_PROFILE_BLOCK] = "block",
		[GO_PROFILE_GOROUTINE] = "goroutine",
	};

	return names[kind];
}

enum go_profile_kind go_profile_kind_parse(const char *name)
{
	for (int i = 0; i < GO_PROFILE_KIND_MAX; i++)
		if (strcmp(name, go_profile_kind_name((enum go_profile_kind)i)) == 0)
			return (enum go_profile_kind)i;
	return GO_PROFILE_KIND_MAX;
}
