// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <sys/resource.h>

/* Each sampled image keeps its file open. */
#define OPEN_FILES 65536

void open_files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max < OPEN_FILES ? limit.rlim_max : OPEN_FILES;
	/* a refusal shows up in the counters of failed opens */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}
