// SPDX-License-Identifier: Apache-2.0
#include "support/threads.h"
#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

static size_t n_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

void threads_wait(void)
{
	while (n_threads() > 1)
		usleep(1000);
}
