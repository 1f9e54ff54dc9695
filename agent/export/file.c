// SPDX-License-Identifier: Apache-2.0
#include "export/file.h"

const struct destination_kind destination_file = {
	.name = "file",
	.title = "a folder",
	.path = "",
	.folder = true,
	.types = {[PROFILE_CPU] = "cpu",
		  [PROFILE_OFF_CPU] = "offcpu",
		  [PROFILE_GO_HEAP] = "go_heap",
		  [PROFILE_GO_MUTEX] = "go_mutex",
		  [PROFILE_GO_BLOCK] = "go_block"},
	.limits = {DESTINATION_NO_LIMITS, .profiles = 1},
};
